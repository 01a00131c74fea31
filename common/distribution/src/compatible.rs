//! Stores in the namespace of each cluster references to the versions that fit it (semantics 1.7).
//!
//! They are in a ConfigMap and not in an AddonCatalogue, because versions there have a source and references cannot be installed from. So
//! they never count as a catalogue.

use addons_engine::catalogues::CatalogueWrite;
use addons_engine::{config_map, identity, local};
use addons_operation::context::{Context, Offer};
use addons_operation::error::CatalogueFileError;
use common::api::names::{COMPATIBLE_ADDONS, LABEL_DERIVED_FROM};
use common::catalogue::{Catalogue, compatible, derived_from};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::push::{CataloguePushOutcome, PushedCopy};
use crate::error::DistributionError;

/// How many clusters are handled at the same time.
const CONCURRENT_CLUSTERS: usize = 16;
/// The key of the ConfigMap.
const KEY: &str = "addons.json";

/// Stores for each cluster with a labelled namespace the versions that fit it, and returns the result for each. If the version of a cluster
/// cannot be read, its ConfigMap stays unchanged, and the others are still stored.
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
    let text = compatible::list_references(catalogue, &facts)?;
    let home = ctx.home().await?;
    let live = config_map::get(home, namespace, COMPATIBLE_ADDONS).await?;
    let holder = live.as_ref().map(|live| derived_from(&live.metadata));
    if let Some(holder) = holder.filter(|holder| *holder != Some(uid)) {
        let holder = holder.map(str::to_owned);
        let object = format!("ConfigMap {COMPATIBLE_ADDONS}");
        return Err(DistributionError::NotOurs { object, holder });
    }
    let wanted = ConfigMap {
        metadata: ObjectMeta {
            name: Some(COMPATIBLE_ADDONS.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some([(LABEL_DERIVED_FROM.to_owned(), uid.to_owned())].into()),
            ..ObjectMeta::default()
        },
        data: Some([(KEY.to_owned(), text)].into()),
        ..ConfigMap::default()
    };
    Ok(config_map::put(home, live, &wanted).await?)
}
