//! Lists the live objects that a prune rule of an entry matches.

use addons_plan::Target;
use addons_plan::snapshot::LiveObject;
use common::api::catalogue::PruneKind;
use common::manifest::kinds::KindTable;

use super::address::Collection;
use super::addressed;
use super::cluster::Cluster;
use super::error::EngineError;
use super::snapshot;

/// Lists the live objects that match a prune rule: one LIST, or one for each of its namespaces. A kind that is not served has none.
///
/// # Errors
/// Those of the requests.
pub async fn list(
    cluster: &Cluster,
    kinds: &KindTable,
    rule: &PruneKind,
) -> Result<Vec<(Target, LiveObject)>, EngineError> {
    let Some((gvk, info)) = kinds.preferred(&rule.group, &rule.kind) else {
        return Ok(Vec::new());
    };
    let namespaces: Vec<Option<&str>> = match rule.namespaces.as_slice() {
        named if info.namespaced && !named.is_empty() => named
            .iter()
            .map(|namespace| Some(namespace.as_str()))
            .collect(),
        _ => vec![None],
    };
    let selectors = [
        ("labelSelector", &rule.label_selector),
        ("fieldSelector", &rule.field_selector),
    ];
    let selectors: Vec<(&str, &str)> = selectors
        .into_iter()
        .filter_map(|(name, selector)| Some((name, selector.as_deref()?)))
        .collect();
    let mut found = Vec::new();
    for namespace in namespaces {
        let collection = Collection::new(gvk.clone(), info, namespace);
        let live = addressed::list_metadata(cluster, &collection, &selectors).await?;
        for metadata in live {
            found.push((
                collection.target(&metadata),
                snapshot::to_live_object(metadata),
            ));
        }
    }
    Ok(found)
}
