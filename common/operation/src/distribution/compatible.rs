//! What fits each cluster is stored in the namespace that stands for it, by reference alone (semantics 1).
//!
//! It is a ConfigMap and not an AddonCatalogue: a version of that has a source, and references are not to be installed from. So it
//! counts nowhere as a catalogue.

use addons_engine::catalogues::Written;
use addons_engine::{config_map, identity, local};
use common::api::names::{COMPATIBLE_ADDONS, LABEL_DERIVED_FROM};
use common::catalogue::{Catalogue, compatible, derived_from};
use futures::StreamExt as _;
use futures::stream;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::DistributionError;
use super::push::{Outcome, Pushed};
use crate::context::{Context, Offer};
use crate::error::OperationError;

/// Clusters that are looked at at the same time.
const AT_ONCE: usize = 16;
/// The key of the ConfigMap.
const KEY: &str = "addons.json";

/// Stores for each cluster that a namespace with a label stands for which versions fit it, and says what became of each. One that
/// cannot be asked for its version stops no other, and keeps what was stored.
///
/// # Errors
/// The catalogues or the namespaces cannot be read.
pub async fn store(ctx: &Context) -> Result<Vec<Outcome>, OperationError> {
    let catalogue = ctx.catalogue(&Offer::Catalogues).await?;
    // What is stored stays: what a catalogue lists that cannot be read is not known.
    if let Some(unread) = catalogue.unread.first() {
        return Err(DistributionError::from(unread).into());
    }
    let home = ctx.home().await?;
    let uid = identity::namespace_uid(home, identity::KUBE_SYSTEM).await?;
    let mut namespaces = local::of_other_clusters(home).await?;
    namespaces.extend(local::namespaces(home).await?);
    let storing = namespaces.into_iter().map(async |namespace| {
        let of_namespace = ctx.of_namespace_now(&namespace).await;
        let written = one(&of_namespace, &catalogue, &namespace, &uid).await;
        let name = COMPATIBLE_ADDONS.to_owned();
        let pushed = written.map(|written| vec![Pushed { name, written }]);
        (namespace, pushed)
    });
    let storing = stream::iter(storing).buffer_unordered(AT_ONCE);
    Ok(storing.collect().await)
}

async fn one(
    ctx: &Context,
    catalogue: &Catalogue,
    namespace: &str,
    uid: &str,
) -> Result<Written, OperationError> {
    let facts = ctx.fit_for(catalogue.versions()).await?;
    let text = compatible::references(catalogue, &facts).map_err(DistributionError::from)?;
    let home = ctx.home().await?;
    let live = config_map::get(home, namespace, COMPATIBLE_ADDONS).await?;
    let holder = live.as_ref().map(|live| derived_from(&live.metadata));
    if let Some(holder) = holder.filter(|holder| *holder != Some(uid)) {
        let holder = holder.map(str::to_owned);
        let place = format!("ConfigMap {COMPATIBLE_ADDONS}");
        return Err(OperationError::from(DistributionError::NotOurs { holder }).at(place));
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
