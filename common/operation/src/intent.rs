//! What a command should do, whether flags, a record or a loop ask for it.

use addons_plan::history::RevisionRequest;
use addons_plan::prune::limit::PruneLimit;
use common::api::catalogue::FormField;
use common::api::installation::{AddonInstallation, ObjectPatch, ValuesFromSource};
use common::values;
use common::values::set::{Assignment, ValueRemoval};
use serde_json::{Value, json};

use crate::error::OperationError;

/// What a command should do.
#[derive(Clone, Debug)]
pub enum Intent {
    /// Install these add-ons; one that is already installed is upgraded.
    Install(Vec<NewInstallation>),
    /// Upgrade these installations; none = all.
    Upgrade {
        /// The names of installations, with the versions that are asked for.
        installations: Vec<VersionedName>,
        /// Changes of their values.
        edits: Edits,
    },
    /// Upgrade those of these names that are installed, and install the rest.
    InstallOrUpgrade {
        /// The names; none = upgrade all.
        named: Vec<NewInstallation>,
        /// Changes of the values of all installations, if none is named.
        edits: Edits,
    },
    /// Give an installation the spec and the entry of an earlier revision.
    Rollback {
        /// Its name.
        installation: String,
        /// The revision.
        to: RevisionRequest,
    },
    /// Give these installations the spec that a set declares.
    Declared(DeclaredSet),
}

/// A set, and whether members that are no longer in its file are uninstalled.
#[derive(Clone, Debug, Default)]
pub struct DeclaredSet {
    /// The installations in the file.
    pub installations: Vec<AddonInstallation>,
    /// The name of the set, whose members its installations become.
    pub name: Option<String>,
    /// How many members may be uninstalled because they are no longer in the file; `None` = all of them stay.
    pub prune: Option<PruneLimit>,
}

/// The name of an add-on or installation, and optionally a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionedName {
    /// Name of an add-on or installation.
    pub name: String,
    /// Version, read tolerantly.
    pub version: Option<String>,
}

/// An installation that may be new.
#[derive(Clone, Debug, Default)]
pub struct NewInstallation {
    /// The add-on.
    pub addon: VersionedName,
    /// Name of the installation; `None` = that of the add-on.
    pub name: Option<String>,
    /// Target namespace; `None` = the version's own, else the add-on's name.
    pub target_namespace: Option<String>,
    /// Core add-on.
    pub core: bool,
    /// The name of the installation that is uninstalled once this one is installed. Objects that both contain change their owner.
    pub replaces: Option<String>,
    /// Changes of its values.
    pub edits: Edits,
}

/// Changes of an installation: of its values, in their order, and of other fields of its record.
#[derive(Clone, Debug, Default)]
pub struct Edits {
    /// The changes; later ones win.
    pub values: Vec<Edit>,
    /// The values that a user gave another tool for the same chart: below the changes, and only for an add-on that is a chart.
    pub former: Option<Value>,
    /// Other Secrets that values are read from; an empty list = none.
    pub values_from: Option<Vec<ValuesFromSource>>,
    /// Another private registry; empty text = none.
    pub registry: Option<String>,
    /// Whether the definitions in `crds/` of charts are left out; `None` = unchanged.
    pub skip_crds: Option<bool>,
    /// Other patches of the rendered objects; an empty list = none.
    pub patches: Option<Vec<ObjectPatch>>,
    /// Whether to remove the version from the record, which then follows the newest one that fits.
    pub unpin: bool,
}

/// One change of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Merge a map over the values. A null stays, and removes what the catalogue or the package sets.
    Merge(Value),
    /// Apply assignments `PATH=VALUE`, in their order.
    Set(Vec<Assignment>),
    /// Apply assignments to one of several add-ons, by the name that the user typed: [`Edits::for_name`].
    SetOf(String, Vec<Assignment>),
    /// Remove values, so that the layers below apply again.
    Unset(Vec<ValueRemoval>),
    /// Drop all values.
    Reset,
}

impl VersionedName {
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
    /// Returns the changes for one add-on or installation, by its name.
    #[must_use]
    pub fn for_name(&self, name: &str) -> Self {
        let edit = |edit: &Edit| match edit {
            Edit::SetOf(of, assignments) if of == name => Some(Edit::Set(assignments.clone())),
            Edit::SetOf(..) => None,
            edit => Some(edit.clone()),
        };
        Self {
            values: self.values.iter().filter_map(edit).collect(),
            former: self.former.clone(),
            values_from: self.values_from.clone(),
            registry: self.registry.clone(),
            skip_crds: self.skip_crds,
            patches: self.patches.clone(),
            unpin: self.unpin,
        }
    }

    /// Applies the changes to the values. The form of the add-on decides the type of some of them.
    ///
    /// # Errors
    /// A change does not fit the existing values.
    pub fn apply_to(
        &self,
        values: Option<Value>,
        form: &[FormField],
    ) -> Result<Value, OperationError> {
        let mut merged = values.unwrap_or_else(|| json!({}));
        for edit in &self.values {
            match edit {
                Edit::Merge(map) => values::merge::overlay(&mut merged, map),
                Edit::Set(assignments) => {
                    values::set::apply_assignments(&mut merged, assignments, form)?
                }
                // For another add-on.
                Edit::SetOf(..) => {}
                Edit::Unset(removals) => values::set::remove_values(&mut merged, removals),
                Edit::Reset => merged = json!({}),
            }
        }
        Ok(merged)
    }

    /// Returns the paths to remove that the values do not have.
    pub(crate) fn missing_paths(&self, values: Option<&Value>) -> Vec<String> {
        let removals = self.values.iter().flat_map(|edit| match edit {
            Edit::Unset(removals) => removals.as_slice(),
            _ => &[],
        });
        let absent = removals.filter(|one| !values.is_some_and(|values| one.is_in(values)));
        absent.map(ToString::to_string).collect()
    }
}
