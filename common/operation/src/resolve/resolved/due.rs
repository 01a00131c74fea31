//! Decides whether an installation is due, and what is then recorded (semantics 11, 12.1).

use common::api::installation::{InstallationPhase, Installed, ReconcilePolicy};
use common::catalogue::due::{DueReason, DueVerdict, decide_due, decide_inputs_due};

use super::Resolved;
use crate::render::inputs::Inputs;
use crate::set::declared::set_of;

impl Resolved {
    /// Returns what will be recorded as installed. The hash of the manifest is only known after fetching.
    #[must_use]
    pub fn target(&self, inputs: &Inputs) -> Installed {
        let version = &self.entry.version;
        Installed {
            version: version.version.clone(),
            id: version.id.clone(),
            manifest_hash: self.entry.verifiable_hash().unwrap_or_default().to_owned(),
            values_hash: inputs.values_hash.clone(),
            template_data_hash: inputs.template_data_hash.clone(),
            secrets_hash: inputs.secrets_hash.clone(),
            registry: self
                .entry
                .registry_for(&self.wanted.spec)
                .map(str::to_owned),
            rules: Some(self.rules.to_rule_set()),
            requires: version.requires.clone(),
            health_check_exprs: version.health_check_exprs.clone(),
            ..Installed::default()
        }
    }

    /// Returns whether the installation is due. `manifest_hash` is that of the fetched manifest, if it was fetched. Without it, an entry
    /// without a verifiable hash is compared by version and id alone.
    pub(crate) fn check_due(&self, inputs: &Inputs, manifest_hash: Option<&str>) -> DueVerdict {
        let yes = |reason| DueVerdict::Yes { reason };
        let (status, installed) = (self.status(), self.installed());
        if status.is_some_and(|status| status.operation.is_some()) {
            return yes(DueReason::Interrupted);
        }
        let shared = self.shared.as_ref();
        let shared = shared.and_then(|shared| shared.due.clone());
        let (existing, status, installed) = match (&self.existing, status, installed, &shared) {
            (_, _, _, Some(verdict @ (DueVerdict::Yes { .. } | DueVerdict::Downgrade { .. }))) => {
                return verdict.clone();
            }
            (Some(existing), Some(status), Some(installed), _) => (existing, status, installed),
            (_, _, _, Some(DueVerdict::No)) => return DueVerdict::No,
            (_, _, _, None) => return yes(DueReason::NotInstalled),
        };
        let (entry, spec, values_hash) = (&self.entry, &self.wanted.spec, &inputs.values_hash);
        let verdict = match shared {
            // The record of the other tool says that the entry is installed.
            Some(_) => decide_inputs_due(installed, entry, spec, values_hash),
            None => decide_due(
                installed,
                entry,
                spec,
                self.rules,
                manifest_hash,
                values_hash,
            ),
        };
        if verdict != DueVerdict::No {
            return verdict;
        }
        if status.phase == Some(InstallationPhase::Failed) {
            return yes(DueReason::Failed);
        }
        if installed.template_data_hash != inputs.template_data_hash {
            return yes(DueReason::TemplateDataChanged);
        }
        let is_kept = self.keeps_spec
            || (existing.spec == self.wanted.spec && set_of(existing) == set_of(&self.wanted));
        // Other clients may have changed the spec, with kubectl or from Git.
        if !is_kept || !existing.is_observed().unwrap_or(!self.keeps_spec) {
            return yes(DueReason::InstallationChanged);
        }
        // What differs from the entry that another tool has installed is an edit.
        if installed.adopted && shared.is_none() {
            return yes(DueReason::Adopted);
        }
        DueVerdict::No
    }

    /// Whether edits are repaired although nothing is due.
    pub(crate) fn is_ensured(&self) -> bool {
        self.wanted.spec.effective_reconcile() == ReconcilePolicy::Ensure
    }
}
