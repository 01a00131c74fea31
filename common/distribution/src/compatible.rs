//! Stores in the namespace of each cluster a catalogue of the versions that fit it (semantics 1.7).
//!
//! It is a copy, and does not count as a duplicate of the catalogues. Installations are resolved from it only where the catalogues
//! themselves cannot be read.

use addons_engine::catalogues::{self, CatalogueWrite};
use addons_engine::{identity, local};
use addons_operation::context::{Context, Offer};
use addons_operation::error::CatalogueFileError;
use common::api::catalogue::AddonCatalogue;
use common::api::names::{COMPATIBLE_ADDONS, LABEL_DERIVED_FROM};
use common::catalogue::{Catalogue, compatible, derived_from};
use futures::{StreamExt as _, stream};

use super::push::{CataloguePushOutcome, PushedCopy};
use crate::error::DistributionError;

/// How many clusters are handled at the same time.
const CONCURRENT_CLUSTERS: usize = 16;

/// Stores for each cluster with a labelled namespace the versions that fit it, and returns the result for each. If the version of a cluster
/// cannot be read, its copy stays unchanged, and the others are still stored.
///
/// # Errors
/// The catalogues or the namespaces cannot be read.
pub async fn store(ctx: &Context) -> Result<Vec<CataloguePushOutcome>, DistributionError> {
    let catalogue = ctx.catalogue(&Offer::Catalogues).await?;
    // Keep what is stored: the entries of a catalogue that cannot be read are unknown.
    if let Some(unread) = catalogue.unread.first() {
        return Err(CatalogueFileError::from(unread).into());
    }
    let home = ctx.home().await?;
    let uid = identity::namespace_uid(home, identity::KUBE_SYSTEM).await?;
    let mut namespaces = local::list_of_other_clusters(home).await?;
    namespaces.extend(local::list_namespaces(home).await?);
    // The catalogues themselves are there.
    namespaces.remove(&ctx.settings().system_namespace);
    let storing = namespaces.into_iter().map(async |namespace| {
        let of_namespace = ctx.for_namespace_now(&namespace).await;
        let written = store_for_cluster(&of_namespace, &catalogue, &namespace, &uid).await;
        let name = COMPATIBLE_ADDONS.to_owned();
        let pushed = written.map(|written| vec![PushedCopy { name, written }]);
        (namespace, pushed)
    });
    let storing = stream::iter(storing).buffer_unordered(CONCURRENT_CLUSTERS);
    Ok(storing.collect().await)
}

async fn store_for_cluster(
    ctx: &Context,
    catalogue: &Catalogue,
    namespace: &str,
    uid: &str,
) -> Result<CatalogueWrite, DistributionError> {
    let facts = ctx.cluster_facts_for(catalogue.versions()).await?;
    let mut wanted = AddonCatalogue::new(COMPATIBLE_ADDONS, compatible::derive(catalogue, &facts)?);
    wanted.metadata.namespace = Some(namespace.to_owned());
    wanted.metadata.labels = Some([(LABEL_DERIVED_FROM.to_owned(), uid.to_owned())].into());
    let home = ctx.home().await?;
    let live = catalogues::get(home, namespace, COMPATIBLE_ADDONS).await?;
    let holder = live.as_ref().map(|live| derived_from(&live.metadata));
    if let Some(holder) = holder.filter(|holder| *holder != Some(uid)) {
        let holder = holder.map(str::to_owned);
        let object = format!("catalogue {COMPATIBLE_ADDONS}");
        return Err(DistributionError::NotOurs { object, holder });
    }
    Ok(catalogues::put_named(home, live.as_ref(), &wanted).await?)
}
