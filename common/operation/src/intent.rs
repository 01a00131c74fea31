//! What is to be done, whoever says so: flags, a record, a loop.

use std::sync::Arc;

use common::api::catalogue::FormField;
use common::api::installation::ValuesFrom;
use common::values;
use common::values::set::{Assignment, Removal};
use serde_json::{Value, json};

use crate::declared::DeclaredSet;
use crate::directory::DirectorySync;
use crate::error::OperationError;

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Intent {
    /// Install these add-ons; one that is installed already is upgraded.
    Install(Vec<NewInstallation>),
    /// Upgrade these installations; none = all.
    Upgrade {
        /// Names of installations, with the version that is asked for.
        installations: Vec<Target>,
        /// Changes of their values.
        edits: Edits,
    },
    /// Upgrade what is installed of these names, and install the rest.
    InstallOrUpgrade {
        /// The names; none = upgrade all.
        named: Vec<NewInstallation>,
        /// Changes of the values of all, where none is named.
        edits: Edits,
    },
    /// Give an installation the spec and the entry of an earlier revision.
    Rollback {
        /// Its name.
        installation: String,
        /// The revision; `None` = the last one that succeeded before the newest.
        revision: Option<i64>,
    },
    /// Give these installations the spec that a set declares.
    Declared(DeclaredSet),
    /// Install or upgrade every add-on of the indexes that are on offer.
    ApplyIndex,
    /// Install or upgrade every add-on of a directory, and repair what was edited.
    SyncDirectory(Arc<DirectorySync>),
}

/// An add-on or installation by name, and perhaps a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Name of an add-on or installation.
    pub name: String,
    /// Version, read tolerantly.
    pub version: Option<String>,
}

/// An installation that may be new.
#[derive(Clone, Debug, Default)]
pub struct NewInstallation {
    /// The add-on.
    pub addon: Target,
    /// Name of the installation; `None` = that of the add-on.
    pub name: Option<String>,
    /// Target namespace; `None` = the version's own, else the add-on's name.
    pub target_namespace: Option<String>,
    /// Core add-on.
    pub core: bool,
    /// Changes of its values.
    pub edits: Edits,
}

/// Changes of an installation: of its values, in their order, and of what else its record says.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// The changes; later ones win.
    pub values: Vec<Edit>,
    /// Other Secrets that values are read from; an empty list = none.
    pub values_from: Option<Vec<ValuesFrom>>,
    /// Another private registry; empty text = none.
    pub registry: Option<String>,
    /// Whether the definitions in `crds/` of charts are left out; `None` = as before.
    pub skip_crds: Option<bool>,
    /// Whether the record names no version any more: from then on, it follows the newest that fits.
    pub unpin: bool,
}

/// One change of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Merge a map over the values. A null stays: it takes away what the catalogue or the package sets.
    Merge(Value),
    /// `PATH=VALUE`, in their order.
    Set(Vec<Assignment>),
    /// The same for one of several add-ons, by the name that is typed: [`Edits::of`].
    SetOf(String, Vec<Assignment>),
    /// Take values away: what the layers below say counts again.
    Unset(Vec<Removal>),
    /// Drop all values.
    Reset,
}

impl Target {
    /// Splits `NAME@VERSION` at the first `@`.
    #[must_use]
    pub fn parse(typed: &str) -> Self {
        match typed.split_once('@') {
            Some((name, version)) => Self {
                name: name.to_owned(),
                version: Some(version.to_owned()),
            },
            None => Self {
                name: typed.to_owned(),
                version: None,
            },
        }
    }
}

impl Edits {
    /// The changes that are about one add-on or installation, by its name.
    #[must_use]
    pub fn of(&self, name: &str) -> Self {
        let edit = |edit: &Edit| match edit {
            Edit::SetOf(of, assignments) if of == name => Some(Edit::Set(assignments.clone())),
            Edit::SetOf(..) => None,
            edit => Some(edit.clone()),
        };
        Self {
            values: self.values.iter().filter_map(edit).collect(),
            values_from: self.values_from.clone(),
            registry: self.registry.clone(),
            skip_crds: self.skip_crds,
            unpin: self.unpin,
        }
    }

    /// The values with the changes, of which the form of the add-on types some.
    ///
    /// # Errors
    /// A change that does not go with what is there.
    pub fn over(&self, values: Option<Value>, form: &[FormField]) -> Result<Value, OperationError> {
        let mut merged = values.unwrap_or_else(|| json!({}));
        for edit in &self.values {
            match edit {
                Edit::Merge(map) => values::merge::overlay(&mut merged, map),
                Edit::Set(assignments) => values::set::apply(&mut merged, assignments, form)?,
                // Of another.
                Edit::SetOf(..) => {}
                Edit::Unset(removals) => values::set::remove(&mut merged, removals),
                Edit::Reset => merged = json!({}),
            }
        }
        Ok(merged)
    }

    /// The paths that are to be taken away from these values and that they do not have.
    pub(crate) fn absent(&self, values: Option<&Value>) -> Vec<String> {
        let removals = self.values.iter().flat_map(|edit| match edit {
            Edit::Unset(removals) => removals.as_slice(),
            _ => &[],
        });
        let absent = removals.filter(|one| !values.is_some_and(|values| one.is_in(values)));
        absent.map(ToString::to_string).collect()
    }
}
