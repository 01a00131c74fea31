//! The parts of KKP's TemplateData that are not plain JSON values, with their types in Go.

use addons_gotemplate::value::{StructType, Type};

const BOOL_POINTER: Type = Type::Pointer(&Type::Bool);
const TEXTS: Type = Type::List(&Type::Text);
const ALLOCATIONS: Type = Type::Dict(&Type::Record(&ALLOCATION));

/// Fields of `.Cluster`.
pub(super) const CLUSTER: &[(&str, Type)] = &[
    (
        "KubeVirtInfraStorageClasses",
        Type::List(&Type::Record(&STORAGE_CLASS)),
    ),
    (
        "KubeVirtInfraVolumeSnapshotClasses",
        Type::List(&Type::Record(&SNAPSHOT_CLASS)),
    ),
    ("Version", Type::Version),
];

/// Fields of `.Cluster.CSI`.
pub(super) const CSI: &[(&str, Type)] = &[("SsSegmentedIscsiNetwork", BOOL_POINTER)];

/// Fields of `.Cluster.Network`.
pub(super) const NETWORK: &[(&str, Type)] = &[
    ("StrictArp", BOOL_POINTER),
    ("PodCIDRBlocks", TEXTS),
    ("ServiceCIDRBlocks", TEXTS),
    ("IPAMAllocations", ALLOCATIONS),
];

/// All fields of KKP's `ClusterNetwork` that the hash covers, in the order of the struct.
pub(super) static HASHED: StructType = StructType {
    type_name: "addon.ClusterNetwork",
    fields: &[
        ("DNSDomain", Type::Text),
        ("DNSClusterIP", Type::Text),
        ("DNSResolverIP", Type::Text),
        ("PodCIDRBlocks", TEXTS),
        ("ServiceCIDRBlocks", TEXTS),
        ("ProxyMode", Type::Text),
        ("StrictArp", BOOL_POINTER),
        ("DualStack", Type::Bool),
        ("PodCIDRIPv4", Type::Text),
        ("PodCIDRIPv6", Type::Text),
        ("NodeCIDRMaskSizeIPv4", Type::Int),
        ("NodeCIDRMaskSizeIPv6", Type::Int),
        ("IPAMAllocations", ALLOCATIONS),
        ("NodePortRange", Type::Text),
    ],
};

/// The type of the values in the set of features.
pub(super) static NOTHING: StructType = StructType {
    type_name: "struct {}",
    fields: &[],
};

static ALLOCATION: StructType = StructType {
    type_name: "addon.IPAMAllocation",
    fields: &[
        ("Type", Type::Text),
        ("CIDR", Type::Text),
        ("Addresses", TEXTS),
    ],
};

static STORAGE_CLASS: StructType = StructType {
    type_name: "addon.StorageClass",
    fields: &[
        ("Name", Type::Text),
        ("IsDefaultClass", BOOL_POINTER),
        ("VolumeBindingMode", Type::Pointer(&Type::Text)),
        ("Labels", Type::Dict(&Type::Text)),
        ("Zones", TEXTS),
        ("Regions", TEXTS),
        ("VolumeProvisioner", Type::Text),
        ("ReclaimPolicy", Type::Text),
        ("AllowVolumeExpansion", Type::Bool),
    ],
};

static SNAPSHOT_CLASS: StructType = StructType {
    type_name: "addon.VolumeSnapshotClass",
    fields: &[
        ("InfraVolumeSnapshotClass", Type::Text),
        ("IsDefaultClass", BOOL_POINTER),
        ("DeletionPolicy", Type::Text),
    ],
};
