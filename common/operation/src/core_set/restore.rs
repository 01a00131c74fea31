//! Restores deleted core records from the existing objects of their add-ons; no object changes (semantics 14.7).

use addons_clusters::core_set::CoreSet;
use addons_clusters::core_set::change::add_guard;
use addons_engine::core_set;
use addons_plan::choices::Choices;
use common::api::installation::AddonInstallation;
use common::api::names::{InstallationName, installation_name};

use super::{ClusterCore, CoreSetTexts};
use crate::context::Offer;
use crate::error::{OperationError, RestoreError};
use crate::intent::NewInstallation;
use crate::plan::{Plan, plan_rebuild};
use crate::resolve::{Answers, Resolver};
use crate::verdict;

impl Resolver<'_> {
    /// Plans to restore the records of deleted core installations: as the core set of the cluster lists them, or else as `install --core`
    /// would write them. Objects with their label become their inventory. If the reconciler has created the record in the meantime, only
    /// the inventory is recorded. The plan writes nothing but the records.
    ///
    /// # Errors
    /// [`RestoreError`]; the verdict is a denial; the errors of the requests.
    pub async fn restore_core(&self, named: &[NewInstallation]) -> Result<Plan, OperationError> {
        let texts = CoreSetTexts::read(self.ctx).await?;
        let set = if texts.is_missing() {
            CoreSet::default()
        } else {
            let home = core_set::read_home(self.ctx.home().await?, self.namespace()).await?;
            let labels = home.unwrap_or_default().labels;
            let found = ClusterCore::read(self.ctx, texts, labels).await?;
            found.set.map_err(RestoreError::Unknown)?
        };
        let mut installations = Vec::new();
        for one in named {
            let name = InstallationName {
                namespace: self.namespace().to_owned(),
                name: match &one.name {
                    Some(name) => name.clone(),
                    None => installation_name(&one.addon.name),
                },
            };
            let (record, is_new) = match self.records.get(&name) {
                Some(record) if record.spec.core_addon => (record.clone(), false),
                Some(_) => return Err(RestoreError::NotCore(name).into()),
                None => (self.restored_core_record(&name, one, &set).await?, true),
            };
            let is_listed = set.addons.contains_key(&name.name);
            let planned = plan_rebuild(self, &record, false).await?;
            installations.push(planned.ok_or(if is_new {
                RestoreError::Nothing { name, is_listed }
            } else {
                RestoreError::Recorded(name)
            })?);
        }
        Plan::without_rendering(Choices::default(), installations)
    }

    /// Returns the record to restore.
    async fn restored_core_record(
        &self,
        name: &InstallationName,
        said: &NewInstallation,
        set: &CoreSet,
    ) -> Result<AddonInstallation, OperationError> {
        let Some((addon, _)) = set.addons.get(&name.name) else {
            let wanted = NewInstallation {
                name: Some(name.name.clone()),
                core: true,
                ..said.clone()
            };
            return Ok(self
                .resolve_install(&wanted, &Answers::default())
                .await?
                .wanted);
        };
        let edits = &said.edits;
        let is_said = said.addon.version.is_some()
            || !edits.values.is_empty()
            || edits.values_from.is_some()
            || edits.registry.is_some()
            || edits.skip_crds.is_some()
            || !matches!(self.offer, Offer::Catalogues);
        if is_said {
            return Err(RestoreError::Listed(name.clone()).into());
        }
        let mut resolved = self.resolve_core(name, addon).await?;
        resolved
            .wanted
            .spec
            .target_namespace
            .clone_from(&said.target_namespace);
        add_guard(&mut resolved.wanted);
        verdict::complete_and_check(self.ctx, &mut resolved, &self.facts).await?;
        Ok(resolved.wanted)
    }
}
