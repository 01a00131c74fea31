//! Runs `preflight`: what a future release of Kubernetes would do to what is installed. It only reads.

use std::collections::{BTreeMap, BTreeSet};

use crate::preflight::lifecycle::{KubernetesRelease, Lifecycle};
use crate::preflight::order::{UpgradeOrder, upgrade_order};
use crate::preflight::risk::{OwnerIndex, Risk};
use crate::preflight::{
    ApiWriter, PreflightFinding, UpgradeClusters, api_services, check_installation, next_entry,
    stored, webhooks,
};
use addons_engine::live::LiveSelection;
use addons_engine::preflight::{UpgradeObstacles, read_obstacles};
use addons_plan::inventory::Inventory;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use common::catalogue::select::ClusterVersions;
use common::catalogue::{Catalogue, version_label};
use common::manifest::key::ObjectKey;
use serde_json::Value;

use addons_operation::context::Context;
use addons_operation::error::OperationError;
use addons_operation::health;
use addons_operation::records::{Records, name_of};
use addons_operation::render;
use addons_operation::resolve::origin::catalogue_of;

/// The result of `preflight`.
#[derive(Clone, Debug, Default)]
pub struct PreflightResult {
    /// The findings, in the order of the records.
    pub installations: Vec<(InstallationName, PreflightFinding)>,
    /// What else can block the upgrade.
    pub risks: Vec<Risk>,
    /// The order of the upgrades.
    pub order: UpgradeOrder,
    /// What could not be read, and why: one sentence each.
    pub unread: Vec<String>,
}

/// Checks installations of this cluster as if it had the version of Kubernetes in `to`. Sends one LIST for each kind of their objects of
/// which Kubernetes ever deprecated a version, and one for each kind that can block an upgrade. If an add-on owns CRDs, its next version is
/// fetched and rendered. `are_named`: only risks of these installations are reported.
///
/// # Errors
/// The server cannot be reached, or refuses a request. An origin that cannot be read is part of the finding.
pub async fn check(
    ctx: &Context,
    known: &Records,
    records: &[&AddonInstallation],
    are_named: bool,
    to: &ClusterVersions,
) -> Result<PreflightResult, OperationError> {
    let table = Lifecycle::default();
    let mut found = PreflightResult::default();
    let writers = read_writers(ctx, records, &table, &mut found.unread).await?;
    let here: Vec<&AddonInstallation> = known.in_cluster().collect();
    let owners = OwnerIndex::from_records(here.iter().copied());
    let obstacles = read_obstacles(ctx.cluster().await?, |configurations, system| {
        webhooks::called_services(configurations, system)
    })
    .await?;
    found.add_risks(&obstacles, &owners, to, &table);
    for record in records {
        let is_of_directory = record.spec.addon_ref.directory.is_some();
        let catalogue = match is_of_directory {
            // The manifests of a directory have no constraints.
            true => None,
            false => Some(catalogue_of(ctx, record).await),
        };
        let now = match &catalogue {
            Some(Ok(catalogue)) => ctx.cluster_facts_for(catalogue.versions()).await?,
            _ => ctx.cluster_facts().await?,
        };
        let then = ClusterVersions {
            kubernetes: to.kubernetes.clone(),
            ..now.clone()
        };
        let clusters = UpgradeClusters { now, then };
        let of_catalogue = catalogue.as_ref().map(|read| match read {
            Ok(catalogue) => Ok(&**catalogue),
            Err(error) => Err(error.to_string()),
        });
        let finding = check_installation(
            record,
            of_catalogue,
            &writers,
            &clusters,
            ctx.settings().rules,
            &table,
        );
        if let Some(Ok(catalogue)) = &catalogue {
            let upgrade = (*record, &**catalogue, &clusters);
            found
                .add_upgrade_risks(ctx, upgrade, &obstacles.definitions, &owners)
                .await;
        }
        found.installations.push((name_of(record), finding));
    }
    if are_named {
        let names: BTreeSet<_> = records.iter().map(|record| name_of(record)).collect();
        found
            .risks
            .retain(|risk| risk.owner().is_some_and(|owner| names.contains(owner)));
    }
    let findings = found.installations.iter().map(|(_, finding)| finding);
    let findings: Vec<_> = records.iter().copied().zip(findings).collect();
    found.order = upgrade_order(&findings, &here, &known.system);
    Ok(found)
}

impl PreflightResult {
    /// Adds the risks in a cluster for this version.
    fn add_risks(
        &mut self,
        obstacles: &UpgradeObstacles,
        owners: &OwnerIndex,
        to: &ClusterVersions,
        table: &Lifecycle,
    ) {
        let UpgradeObstacles {
            webhooks: configurations,
            system,
            backends,
            api_services: services,
            definitions,
            unread,
        } = obstacles;
        for (kind, why) in unread {
            self.unread.push(format!(
                "{kind} cannot be read, so what of it is in the way is not known: {why}"
            ));
        }
        let of_webhooks = configurations
            .iter()
            .flat_map(|one| webhooks::find_webhook_risks(one, system, backends, owners));
        self.risks.extend(of_webhooks.map(Risk::Webhook));
        let release = to.kubernetes.as_ref().map(KubernetesRelease::from);
        let of_services = services
            .iter()
            .filter_map(|one| api_services::find_api_service_risk(one, release?, table, owners));
        self.risks.extend(of_services.map(Risk::ApiService));
        let stored = definitions
            .iter()
            .filter_map(|one| stored::find_stored_risk(one, owners));
        self.risks.extend(stored.map(Risk::StoredVersions));
    }

    /// Adds the stored versions that the next version of an add-on lacks. They replace the risk that was found for the same CRD.
    async fn add_upgrade_risks(
        &mut self,
        ctx: &Context,
        (record, catalogue, clusters): (&AddonInstallation, &Catalogue, &UpgradeClusters),
        definitions: &[Value],
        owners: &OwnerIndex,
    ) {
        let owned: Vec<&Value> = definitions
            .iter()
            .filter(|one| owners.owner(one) == Some(name_of(record)))
            .collect();
        let rules = ctx.settings().rules;
        let Some(entry) =
            next_entry(record, catalogue, clusters, rules).filter(|_| !owned.is_empty())
        else {
            return;
        };
        let version = version_label(&entry.version.version, &entry.version.id);
        let kubernetes = clusters.then.kubernetes.as_ref().map(ToString::to_string);
        let rendered = match render::render_entry(ctx, entry, kubernetes.as_deref()).await {
            Ok(rendered) => rendered,
            Err(error) => {
                self.unread.push(format!(
                    "{} {version} cannot be rendered, so its definitions are not judged: {}",
                    entry.addon,
                    error.chain()
                ));
                return;
            }
        };
        let wanted = rendered.manifests.iter().map(|manifest| &*manifest.object);
        for risk in stored::find_upgrade_risks(&owned, wanted, &version, owners) {
            self.risks.retain(
                |other| !matches!(other, Risk::StoredVersions(other) if other.name == risk.name),
            );
            self.risks.push(Risk::StoredVersions(risk));
        }
    }
}

/// Reads which managers wrote the objects of these installations, and in which API version.
async fn read_writers(
    ctx: &Context,
    records: &[&AddonInstallation],
    table: &Lifecycle,
    unread: &mut Vec<String>,
) -> Result<BTreeMap<ObjectKey, Vec<ApiWriter>>, OperationError> {
    let inventories = records
        .iter()
        .map(|record| Inventory::from_status(record.status.as_ref()));
    let keys = inventories.flat_map(|inventory| inventory.objects.into_keys());
    let keys = keys.filter(|key| table.has_changed(&key.group, &key.kind));
    let selections: BTreeSet<LiveSelection> = keys
        .map(|key| LiveSelection {
            group: key.group,
            kind: key.kind,
            namespace: key.namespace,
            whole: true,
        })
        .collect();
    if selections.is_empty() {
        return Ok(BTreeMap::new());
    }
    let cluster = ctx.cluster().await?;
    let (live, unreadable) = health::read_live(cluster, &selections, None).await?;
    for (LiveSelection { kind, .. }, why) in unreadable {
        unread.push(format!(
            "{kind} cannot be read, so who writes such objects is not known: {why}"
        ));
    }
    let writers = live.into_iter().map(|(key, object)| {
        let entries = object["metadata"]["managedFields"].as_array();
        let all = entries.into_iter().flatten().filter_map(parse_writer);
        (key, all.collect())
    });
    Ok(writers.collect())
}

fn parse_writer(entry: &Value) -> Option<ApiWriter> {
    Some(ApiWriter {
        manager: entry["manager"].as_str()?.to_owned(),
        api_version: entry["apiVersion"].as_str()?.to_owned(),
    })
}
