//! Choices of the caller that affect how plans are made.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::prune::KeptKind;
use super::prune::limit::PruneLimit;
use common::api::installation::{AddonInstallation, ConflictPolicy};

/// Choices of the caller that affect how plans are made. A plan file stores them, so that the plan can be made again in the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Choices {
    /// Restore objects that were edited or deleted, even if no other version is due.
    pub repair: bool,
    /// Accept a lower version.
    pub allow_downgrade: bool,
    /// The maximum share of the installed objects to prune, in percent.
    pub allow_prune: PruneLimit,
    /// Kinds to delete although they hold data.
    pub delete: BTreeSet<KeptKind>,
    /// Keep the objects of an uninstallation and forget the installation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
    /// How to handle fields that other managers changed; `None` uses the policy of the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<ConflictPolicy>,
    /// Objects that may be recreated if one of their fields cannot change, as `KIND/NAME`.
    pub recreate: Vec<String>,
    /// Accept that changed CRDs break live objects.
    pub allow_breakage: bool,
    /// Accept that objects are written again because a CRD drops the version in which they are stored.
    pub migrate_stored_versions: bool,
    /// Adopt objects that exist and that no installation owns.
    pub adopt: bool,
    /// Adopt them even if a live Argo CD or Flux object applies them.
    pub force_adopt: bool,
    /// Edit installations that Argo CD or Flux applies from Git.
    pub force: bool,
    /// Only change owners: create, apply and prune nothing. Plan files never set it.
    #[serde(skip)]
    pub only_owners: bool,
    /// Do not read live objects if nothing is due, even with `reconcile: Ensure`. Plan files never set it.
    #[serde(skip)]
    pub only_due: bool,
    /// How long to wait for types that add-ons require; `None` does not wait, because the plan is only shown. Plans do not depend on it.
    #[serde(skip)]
    pub wait_for_types: Option<Duration>,
}

impl Choices {
    /// Returns the choices as a record stores them, or `None` if all of them are defaults.
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

    /// Reads the choices that a record stores. Returns the defaults if another release wrote something that this one cannot read.
    #[must_use]
    pub fn from_record(record: &AddonInstallation) -> Self {
        let status = record.status.as_ref();
        let recorded = status.and_then(|status| status.choices.clone());
        let choices = recorded.map(serde_json::from_value);
        choices.and_then(Result::ok).unwrap_or_default()
    }
}
