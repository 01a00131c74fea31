//! Restores deleted core records from the existing objects of their add-ons; no object changes (semantics 14.7).

use addons_clusters::core_set::CoreSet;
use addons_engine::core_set;
use addons_operation::context::Offer;
use addons_operation::intent::NewInstallation;
use addons_operation::plan::{Plan, plan_rebuild};
use addons_operation::resolve::{Answers, Resolver, verdict};
use addons_plan::choices::Choices;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::add_guard;
use common::api::names::{InstallationName, installation_name};

use super::{ClusterCore, CoreSetTexts, resolve_core};
use crate::error::{DistributionError, RestoreError};

/// Plans to restore the records of deleted core installations: as the core set of the cluster lists them, or else as `install --core`
/// would write them. Objects with their label become their inventory. If the reconciler has created the record in the meantime, only
/// the inventory is recorded. The plan writes nothing but the records.
///
/// # Errors
/// [`RestoreError`]; the verdict is a denial; the errors of the requests.
pub async fn restore_core(
    resolver: &Resolver<'_>,
    named: &[NewInstallation],
) -> Result<Plan, DistributionError> {
    let texts = CoreSetTexts::read(resolver.ctx).await?;
    let set = if texts.is_missing() {
        CoreSet::default()
    } else {
        let home = core_set::read_home(resolver.ctx.home().await?, resolver.namespace()).await?;
        let labels = home.unwrap_or_default().labels;
        let found = ClusterCore::read(resolver.ctx, texts, labels).await?;
        found.set.map_err(RestoreError::Unknown)?
    };
    let mut installations = Vec::new();
    for one in named {
        let name = InstallationName {
            namespace: resolver.namespace().to_owned(),
            name: match &one.name {
                Some(name) => name.clone(),
                None => installation_name(&one.addon.name),
            },
        };
        let (record, is_new) = match resolver.records.get(&name) {
            Some(record) if record.spec.core_addon => (record.clone(), false),
            Some(_) => return Err(RestoreError::NotCore(name).into()),
            None => (
                restored_core_record(resolver, &name, one, &set).await?,
                true,
            ),
        };
        let is_listed = set.addons.contains_key(&name.name);
        let planned = plan_rebuild(resolver, &record, false).await?;
        installations.push(planned.ok_or(if is_new {
            RestoreError::Nothing { name, is_listed }
        } else {
            RestoreError::Recorded(name)
        })?);
    }
    Ok(Plan::without_rendering(Choices::default(), installations)?)
}

/// Returns the record to restore.
async fn restored_core_record(
    resolver: &Resolver<'_>,
    name: &InstallationName,
    said: &NewInstallation,
    set: &CoreSet,
) -> Result<AddonInstallation, DistributionError> {
    let Some((addon, _)) = set.addons.get(&name.name) else {
        let wanted = NewInstallation {
            name: Some(name.name.clone()),
            core: true,
            ..said.clone()
        };
        return Ok(resolver
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
        || edits.patches.is_some()
        || !matches!(resolver.offer, Offer::Catalogues);
    if is_said {
        return Err(RestoreError::Listed(name.clone()).into());
    }
    let mut resolved = resolve_core(resolver, name, addon).await?;
    resolved
        .wanted
        .spec
        .target_namespace
        .clone_from(&said.target_namespace);
    add_guard(&mut resolved.wanted);
    verdict::complete_and_check(resolver.ctx, &mut resolved, &resolver.facts).await?;
    Ok(resolved.wanted)
}
