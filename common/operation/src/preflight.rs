//! `preflight`: what a future release of Kubernetes would do to what is installed. Reads, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::live::Selection;
use common::api::installation::AddonInstallation;
use common::api::names::InstallationName;
use common::catalogue::select::ClusterFacts;
use common::manifest::key::ObjectKey;
use common::plan::inventory::Inventory;
use common::preflight::lifecycle::Lifecycle;
use common::preflight::{Clusters, Finding, Writer, judge};
use serde_json::Value;

use crate::context::Context;
use crate::error::OperationError;
use crate::health;
use crate::origin::catalogue_of;
use crate::records::name_of;

/// What was found of all installations.
#[derive(Clone, Debug, Default)]
pub struct Preflight {
    /// Of each, in the order of the records.
    pub installations: Vec<(InstallationName, Finding)>,
    /// Kinds that could not be read, and why: who writes objects of these is not known.
    pub unread: BTreeMap<String, String>,
}

/// Judges installations of this cluster as if it had the version of Kubernetes in `to`: one LIST for each kind of theirs of which Kubernetes ever deprecated a version.
///
/// # Errors
/// The server cannot be reached, or refuses. An origin that cannot be read is part of the finding.
pub async fn check(
    ctx: &Context,
    records: &[&AddonInstallation],
    to: &ClusterFacts,
) -> Result<Preflight, OperationError> {
    let table = Lifecycle::default();
    let mut found = Preflight::default();
    let writers = writers(ctx, records, &table, &mut found.unread).await?;
    for record in records {
        let is_of_directory = record.spec.addon_ref.directory.is_some();
        let catalogue = match is_of_directory {
            // Its manifests have no constraints.
            true => None,
            false => Some(catalogue_of(ctx, record).await),
        };
        let now = match &catalogue {
            Some(Ok(catalogue)) => ctx.fit_for(catalogue.versions()).await?,
            _ => ctx.version().await?,
        };
        let then = ClusterFacts {
            kubernetes: to.kubernetes.clone(),
            ..now.clone()
        };
        let of_catalogue = catalogue.as_ref().map(|read| match read {
            Ok(catalogue) => Ok(&**catalogue),
            Err(error) => Err(error.to_string()),
        });
        let finding = judge(
            record,
            of_catalogue,
            &writers,
            &Clusters { now, then },
            ctx.settings().rules,
            &table,
        );
        found.installations.push((name_of(record), finding));
    }
    Ok(found)
}

/// Who wrote the objects of these installations, and in which API version.
async fn writers(
    ctx: &Context,
    records: &[&AddonInstallation],
    table: &Lifecycle,
    unread: &mut BTreeMap<String, String>,
) -> Result<BTreeMap<ObjectKey, Vec<Writer>>, OperationError> {
    let inventories = records
        .iter()
        .map(|record| Inventory::of(record.status.as_ref()));
    let keys = inventories.flat_map(|inventory| inventory.objects.into_keys());
    let keys = keys.filter(|key| table.has_changed(&key.group, &key.kind));
    let selections: BTreeSet<Selection> = keys
        .map(|key| Selection {
            group: key.group,
            kind: key.kind,
            namespace: key.namespace,
        })
        .collect();
    if selections.is_empty() {
        return Ok(BTreeMap::new());
    }
    let cluster = ctx.cluster().await?;
    let (live, unreadable) = health::read(cluster, &selections, None).await?;
    for (Selection { kind, .. }, why) in unreadable {
        unread.insert(kind, why);
    }
    let writers = live.into_iter().map(|(key, object)| {
        let entries = object["metadata"]["managedFields"].as_array();
        let all = entries.into_iter().flatten().filter_map(writer);
        (key, all.collect())
    });
    Ok(writers.collect())
}

fn writer(entry: &Value) -> Option<Writer> {
    Some(Writer {
        manager: entry["manager"].as_str()?.to_owned(),
        api_version: entry["apiVersion"].as_str()?.to_owned(),
    })
}
