//! What the caller decided about how plans are made.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::prune::KeptKind;
use super::prune::limit::PruneLimit;
use common::api::installation::{AddonInstallation, Conflicts};

/// What the caller decided about how plans are made. A plan file holds it: a plan is made again with the same choices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Choices {
    /// Restore what was edited or deleted, even where no other version is due.
    pub repair: bool,
    /// Accept a lower version.
    pub allow_downgrade: bool,
    /// How much of what is installed may be pruned, in percent.
    pub allow_prune: PruneLimit,
    /// Kinds that are deleted although they hold data.
    pub delete: BTreeSet<KeptKind>,
    /// Keep the objects of an uninstallation and forget the installation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// What happens to fields that others changed; `None` = as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<Conflicts>,
    /// Objects that may be recreated where a field of them cannot change, as `KIND/NAME`.
    pub recreate: Vec<String>,
    /// Accept that changed definitions break live objects.
    pub allow_breakage: bool,
    /// Accept that objects are written again because a definition drops the version that they are stored in.
    pub migrate_stored_versions: bool,
    /// Take over objects that exist and that no installation owns.
    pub adopt: bool,
    /// Take them over also where a live Argo CD or Flux object applies them.
    pub force_adopt: bool,
    /// Edit installations that Argo CD or Flux applies from Git.
    pub force: bool,
    /// Change owners and nothing else: nothing is created, applied or pruned. No plan file is made with it.
    #[serde(skip)]
    pub only_owners: bool,
    /// Leave live objects unread where nothing is due: `reconcile: Ensure` is for another time. No plan file is made with it.
    #[serde(skip)]
    pub only_due: bool,
    /// How long types are waited for that add-ons require; `None` = not at all, for a plan that is only shown. A plan does not
    /// depend on it.
    #[serde(skip)]
    pub wait_for_types: Option<Duration>,
}

impl Choices {
    /// What a record holds of them; nothing where they are what is decided where no one says anything.
    #[must_use]
    pub fn to_record(&self) -> Option<Value> {
        let recorded = Self {
            only_owners: false,
            only_due: false,
            wait_for_types: None,
            ..self.clone()
        };
        let is_decided = recorded != Self::default();
        is_decided.then(|| serde_json::to_value(recorded).ok())?
    }

    /// Those that a record holds; the defaults where another release wrote something that this one cannot read.
    #[must_use]
    pub fn of_record(record: &AddonInstallation) -> Self {
        let status = record.status.as_ref();
        let recorded = status.and_then(|status| status.choices.clone());
        let choices = recorded.map(serde_json::from_value);
        choices.and_then(Result::ok).unwrap_or_default()
    }
}
