//! Candidates from the records of the cluster: namespaces, revisions, objects.

use std::collections::BTreeSet;

use addons_engine::{local, record, revisions};
use addons_plan::history::StoredRevision;
use addons_plan::inventory::Inventory;
use addons_plan::prune::KeptKind;
use clap_complete::engine::CompletionCandidate;
use common::api::installation::{AddonInstallation, ObjectState};

use super::{run_query, typed_words};
use crate::session::Session;
use crate::words::{list_changes, plan::version_label};

/// Completes the namespaces of installations: the system namespace, those that stand for this cluster, and those with records.
pub fn namespaces() -> Vec<CompletionCandidate> {
    run_query(async |session| {
        let cluster = session.cluster().await?;
        let mut names = BTreeSet::from([session.global().system_namespace.clone()]);
        // Each of the two may be forbidden.
        names.extend(local::list_namespaces(cluster).await.unwrap_or_default());
        let records = record::list(cluster, None).await.unwrap_or_default();
        names.extend(records.into_iter().filter_map(|one| one.metadata.namespace));
        Ok(names.into_iter().map(CompletionCandidate::new).collect())
    })
}

/// Completes the namespaces of the cluster.
pub fn all_namespaces() -> Vec<CompletionCandidate> {
    run_query(async |session| {
        let names = local::list_selected(session.cluster().await?, "").await?;
        Ok(names.into_iter().map(CompletionCandidate::new).collect())
    })
}

/// Completes the numbers of the revisions of the typed installation, newest first, each with its version.
pub fn revisions() -> Vec<CompletionCandidate> {
    run_query(async |session| {
        let kept = typed_revisions(session).await?;
        let earlier = kept.iter().skip(1).map(Some).chain([None]);
        let candidates = kept.iter().zip(earlier).enumerate();
        let candidates = candidates.map(|(place, (revision, before))| {
            let operation = &revision.operation;
            let mut help = format!("{} {}", operation.verb, version_label(&operation.installed));
            let changes = before.map(|before| list_changes(before, revision));
            for change in changes.unwrap_or_default() {
                help.push_str(", ");
                help.push_str(&change);
            }
            CompletionCandidate::new(revision.number.to_string())
                .help(Some(help.into()))
                .display_order(Some(place))
        });
        Ok(candidates.collect())
    })
}

/// Completes the versions of the revisions of the typed installation that succeeded.
pub fn revision_versions() -> Vec<CompletionCandidate> {
    run_query(async |session| {
        let kept = typed_revisions(session).await?;
        let done = kept.iter().filter(|one| one.operation.is_done());
        let versions: BTreeSet<&str> = done
            .map(|one| one.operation.installed.version.as_str())
            .filter(|version| !version.is_empty())
            .collect();
        Ok(versions.into_iter().map(CompletionCandidate::new).collect())
    })
}

/// Completes the objects of the typed installations that may be recreated, or of all if none is typed.
pub fn objects() -> Vec<CompletionCandidate> {
    run_query(async |session| {
        let records = read_records(session).await?;
        let typed: Vec<&AddonInstallation> = records.iter().filter(is_typed).collect();
        let meant = match typed.is_empty() {
            true => records.iter().collect(),
            false => typed,
        };
        let mut found = BTreeSet::new();
        for record in meant {
            let inventory = Inventory::from_status(record.status.as_ref());
            let objects = inventory.objects.into_iter();
            let objects = objects.filter(|(key, item)| {
                let is_ours = item.object.state != ObjectState::Preexisting;
                is_ours && KeptKind::from_key(key).is_none()
            });
            found.extend(objects.map(|(key, _)| format!("{}/{}", key.kind, key.name)));
        }
        Ok(found.into_iter().map(CompletionCandidate::new).collect())
    })
}

async fn read_records(session: &Session) -> anyhow::Result<Vec<AddonInstallation>> {
    let namespace = session.global().namespace.as_deref();
    Ok(record::list(session.cluster().await?, namespace).await?)
}

/// Returns the revisions of the first installation whose name is typed.
async fn typed_revisions(session: &Session) -> anyhow::Result<Vec<StoredRevision>> {
    let records = read_records(session).await?;
    match records.iter().find(is_typed) {
        Some(record) => Ok(revisions::list(session.cluster().await?, record).await?),
        None => Ok(Vec::new()),
    }
}

/// Whether a finished word names the installation, with or without a version.
fn is_typed(record: &&AddonInstallation) -> bool {
    let finished = typed_words().split_last().map(|(_, finished)| finished);
    let mut names = finished.into_iter().flatten().map(|word| {
        let name = word.split('@').next().unwrap_or_default();
        name.rsplit('/').next().unwrap_or_default()
    });
    names.any(|name| record.metadata.name.as_deref() == Some(name))
}
