//! Structs that templates of KKP can see (`golden/kkp/README.md`, "What is not a plain value").

use super::{Element, List, Pointer, Value};

/// A struct: its fields in the order of its [`Shape`].
#[derive(Clone, Debug)]
pub struct Record {
    shape: Shape,
    fields: Vec<Value>,
}

/// Which struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// struct {}: what a set has as values
    Empty,
    /// An entry of `.Cluster.Network.IPAMAllocations`.
    Allocation,
    /// An entry of `.Cluster.KubeVirtInfraStorageClasses`.
    StorageClass,
    /// An entry of `.Cluster.KubeVirtInfraVolumeSnapshotClasses`.
    SnapshotClass,
}

impl Shape {
    /// Its fields in order.
    #[must_use]
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Empty => &[],
            Self::Allocation => &["Type", "CIDR", "Addresses"],
            Self::StorageClass => &[
                "Name",
                "IsDefaultClass",
                "VolumeBindingMode",
                "Labels",
                "Zones",
                "Regions",
                "VolumeProvisioner",
                "ReclaimPolicy",
                "AllowVolumeExpansion",
            ],
            Self::SnapshotClass => &[
                "InfraVolumeSnapshotClass",
                "IsDefaultClass",
                "DeletionPolicy",
            ],
        }
    }

    /// The zero value of `field`, one of [`Shape::fields`].
    fn zero(self, field: &str) -> Value {
        match field {
            "IsDefaultClass" => Value::Pointer(Pointer::Bool(None)),
            "VolumeBindingMode" => Value::Pointer(Pointer::Text(None)),
            "AllowVolumeExpansion" => Value::Bool(false),
            "Labels" => Value::Dict(super::Dict::new(Element::Text, [])),
            "Addresses" | "Zones" | "Regions" => Value::List(List::new(Element::Text, Vec::new())),
            _ => Value::text(""),
        }
    }

    /// Its name in error messages and `%T`.
    #[must_use]
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Empty => "struct {}",
            Self::Allocation => "addon.IPAMAllocation",
            Self::StorageClass => "addon.StorageClass",
            Self::SnapshotClass => "addon.VolumeSnapshotClass",
        }
    }
}

impl Record {
    /// With all fields at their zero values.
    #[must_use]
    pub fn zero(shape: Shape) -> Self {
        let fields = shape.fields().iter().map(|field| shape.zero(field));
        Self {
            shape,
            fields: fields.collect(),
        }
    }

    /// Which struct it is.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The value of `field`; `None` where the struct has no such field.
    #[must_use]
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.fields()
            .find(|(name, _)| *name == field)
            .map(|(_, value)| value)
    }

    /// Sets `field` while the record is built; whether it has such a field.
    pub fn set(&mut self, field: &str, value: Value) -> bool {
        let names = self.shape.fields().iter();
        let slot = names
            .zip(&mut self.fields)
            .find(|(name, _)| **name == field);
        slot.map(|(_, slot)| *slot = value).is_some()
    }

    /// Names and values in order.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.shape.fields().iter().copied().zip(&self.fields)
    }
}
