//! Pushes the catalogues of this cluster to other clusters: merged into one for each class, and each catalogue by reference unchanged
//! (semantics 1.5, 1.6).
//!
//! A copy carries the label of copies with the uid of this cluster as its value. Copies from another cluster, and catalogues that are not
//! copies, are left alone. Copies are never merged themselves, so this cluster may be among the targets.

use std::sync::Arc;

use addons_admission::rules::catalogue::{is_source, lost_to_others};
use addons_admission::{AdmissionFacts, AdmissionSettings};
use addons_engine::catalogues::{self, CatalogueWrite};
use addons_engine::{Cluster, EngineError, identity, local};
use addons_operation::catalogue::file::check_size;
use addons_operation::context::Context;
use addons_operation::error::{CatalogueFileError, within};
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec, CatalogueClass};
use common::api::names::LABEL_DERIVED_FROM;
use common::catalogue::{derived_from, merged, offers_entries};
use futures::{StreamExt as _, stream};

use super::targets::PushTarget;
use crate::error::DistributionError;

/// How many clusters are written at the same time.
const CONCURRENT_CLUSTERS: usize = 16;

/// The result for one copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedCopy {
    /// The name of the copy.
    pub name: String,
    /// What was done.
    pub written: CatalogueWrite,
}

/// Returns the copies for every target: the merged catalogues of this cluster, one for each class, and its catalogues by reference.
///
/// # Errors
/// Catalogues have the same entries; a copy does not fit into an object; there is no catalogue; those of the requests.
pub async fn merge(ctx: &Context) -> Result<Vec<AddonCatalogue>, DistributionError> {
    let namespace = ctx.settings().system_namespace.clone();
    let all = ctx.catalogues().await?;
    let settings = AdmissionSettings {
        system_namespace: namespace.clone(),
        ..AdmissionSettings::default()
    };
    let sources: Vec<&AddonCatalogue> = all
        .iter()
        .filter(|it| is_source(&it.metadata, &settings) && offers_entries(&it.metadata))
        .collect();
    // Without it, its entries would be removed from every target.
    if let Some((source, unreadable)) = sources
        .iter()
        .find_map(|source| Some((source, source.spec.unreadable.as_ref()?)))
    {
        let name = source.metadata.name.clone().unwrap_or_default();
        return Err(CatalogueFileError::unreadable(name, unreadable).into());
    }
    if sources.is_empty() {
        return Err(DistributionError::NoSources);
    }
    let facts = AdmissionFacts {
        catalogues: all.iter().map(|it| Arc::new(it.clone().into())).collect(),
        settings,
        ..AdmissionFacts::default()
    };
    let lost = sources.iter().flat_map(|source| {
        let name = source.metadata.name.clone().unwrap_or_default();
        let lost = lost_to_others(source, &facts).into_iter();
        lost.map(move |problem| format!("catalogue {name}: {problem}"))
    });
    let lost: Vec<String> = lost.collect();
    if !lost.is_empty() {
        return Err(DistributionError::HeldTwice { lost });
    }
    let uid = identity::namespace_uid(ctx.home().await?, identity::KUBE_SYSTEM).await?;
    let copy = |name: &str, spec| {
        let mut copy = AddonCatalogue::new(name, spec);
        copy.metadata.namespace = Some(namespace.clone());
        copy.metadata.labels = Some([(LABEL_DERIVED_FROM.to_owned(), uid.clone())].into());
        copy
    };
    let (references, whole): (Vec<_>, Vec<_>) = sources
        .into_iter()
        .partition(|source| source.spec.reference().is_some());
    let mut copies = Vec::new();
    for class in [CatalogueClass::Custom, CatalogueClass::Core] {
        let name = merged::name(class);
        let spec = merged::merge(&whole, class)?;
        check_size(name, &spec)?;
        copies.push(copy(name, spec));
    }
    for source in references {
        let name = source.metadata.name.as_deref().unwrap_or_default();
        let name = merged::name_of_reference(name);
        copies.push(copy(&name, source.spec.clone()));
    }
    Ok(copies)
}

/// The result for one cluster, with the name of the target.
pub type CataloguePushOutcome = (String, Result<Vec<PushedCopy>, DistributionError>);

/// Pushes copies to several clusters, and returns the result for each in their order. A cluster that fails or is slow does not hold up the
/// others.
pub async fn push_all(
    targets: Vec<PushTarget>,
    copies: &[AddonCatalogue],
) -> Vec<CataloguePushOutcome> {
    let pushing = targets.into_iter().enumerate().map(async |(at, target)| {
        let pushed = match target.cluster {
            Ok(cluster) => push(&cluster, copies).await,
            Err(error) => Err(error),
        };
        (at, (target.name, pushed))
    });
    let pushing = stream::iter(pushing).buffer_unordered(CONCURRENT_CLUSTERS);
    let mut pushed: Vec<(usize, CataloguePushOutcome)> = pushing.collect().await;
    pushed.sort_by_key(|(at, _)| *at);
    pushed.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Pushes copies to a cluster. A copy that is up to date is not written again, and one without add-ons is only written over an existing
/// one. Copies of catalogues by reference that no longer exist are emptied.
async fn push(
    cluster: &Cluster,
    copies: &[AddonCatalogue],
) -> Result<Vec<PushedCopy>, DistributionError> {
    let place = |copy: &AddonCatalogue| {
        let name = copy.metadata.name.as_deref().unwrap_or_default();
        format!("catalogue {name}")
    };
    let Some(first) = copies.first() else {
        return Ok(Vec::new());
    };
    // All of them are in one namespace.
    let namespace = first.metadata.namespace.as_deref().unwrap_or_default();
    let there = within(catalogues::list(cluster, namespace).await, || place(first))?;
    let mut pushed = Vec::new();
    for copy in copies.iter().chain(&empty_orphaned_copies(copies, &there)) {
        let written = put_copy(cluster, copy, &there, place(copy)).await?;
        if let Some(written) = written {
            let name = copy.metadata.name.clone().unwrap_or_default();
            pushed.push(PushedCopy { name, written });
        }
    }
    Ok(pushed)
}

/// Returns empty versions of our copies of catalogues by reference that no longer exist: a distributor may not delete them.
fn empty_orphaned_copies(
    copies: &[AddonCatalogue],
    there: &[AddonCatalogue],
) -> Vec<AddonCatalogue> {
    let ours = copies.first().and_then(|copy| derived_from(&copy.metadata));
    let gone = there.iter().filter(|live| {
        let mut copies = copies.iter();
        merged::is_of_reference(&live.metadata)
            && derived_from(&live.metadata) == ours
            && !copies.any(|copy| copy.metadata.name == live.metadata.name)
    });
    let emptied = gone.map(|live| AddonCatalogue {
        spec: AddonCatalogueSpec {
            class: live.spec.class,
            ..AddonCatalogueSpec::default()
        },
        ..live.clone()
    });
    emptied.collect()
}

async fn put_copy(
    cluster: &Cluster,
    copy: &AddonCatalogue,
    there: &[AddonCatalogue],
    object: String,
) -> Result<Option<CatalogueWrite>, DistributionError> {
    let live = there
        .iter()
        .find(|it| it.metadata.name == copy.metadata.name);
    match live {
        None if copy.spec.addons.is_empty() => return Ok(None),
        Some(live) if derived_from(&live.metadata) != derived_from(&copy.metadata) => {
            return Err(DistributionError::NotOurs {
                object,
                holder: derived_from(&live.metadata).map(str::to_owned),
            });
        }
        Some(live) if live.spec == copy.spec => return Ok(Some(CatalogueWrite::Unchanged)),
        _ => {}
    }
    Ok(Some(within(write_copy(cluster, copy).await, || object)?))
}

/// Writes a copy, and creates its namespace if it is missing.
async fn write_copy(
    cluster: &Cluster,
    copy: &AddonCatalogue,
) -> Result<CatalogueWrite, EngineError> {
    let namespace = copy.metadata.namespace.as_deref().unwrap_or_default();
    match catalogues::put(cluster, copy).await {
        Err(EngineError::Api { code: 404, .. }) => {
            local::ensure(cluster, namespace).await?;
            catalogues::put(cluster, copy).await
        }
        other => other,
    }
}
