//! Checks whether the owner of a live object is gone. It may be recorded in another namespace, or in the cluster of the objects if the
//! records of this command are elsewhere. This is looked up only if an object with such an owner is met (semantics 7.4).

use std::collections::{BTreeMap, BTreeSet};

use addons_engine::record;
use addons_plan::claims::Claims;
use addons_plan::snapshot::Snapshot;
use common::api::names::{InstallationName, owner_hash};

use crate::context::Context;
use crate::error::OperationError;
use crate::records::{Records, name_of};

/// Adds to `claims` which of the owners of live objects exist, and which may exist.
///
/// # Errors
/// Those of the requests.
pub(super) async fn complete_claims(
    ctx: &Context,
    records: &Records,
    own: &InstallationName,
    snapshot: &Snapshot,
    claims: &mut Claims,
) -> Result<(), OperationError> {
    let own = owner_hash(&own.namespace, &own.name);
    for (owner, name) in list_owners(snapshot) {
        if owner == own || claims.owners.contains(&owner) {
            continue;
        }
        match is_recorded(ctx, records, &owner, name.as_ref()).await? {
            Some(true) => claims.owners.insert(owner),
            Some(false) => false,
            None => claims.unknown.insert(owner),
        };
    }
    Ok(())
}

/// Returns the owners of live objects, each with its name if the annotation of an object names it correctly.
fn list_owners(snapshot: &Snapshot) -> BTreeMap<String, Option<InstallationName>> {
    let mut found: BTreeMap<String, Option<InstallationName>> = BTreeMap::new();
    for live in snapshot.live.values() {
        let Some(owner) = &live.owner else {
            continue;
        };
        let known = found.entry(owner.clone()).or_default();
        if known.is_none() {
            *known = live.installation.as_deref().and_then(|named| {
                let (namespace, name) = named.split_once('/')?;
                (owner_hash(namespace, name) == *owner).then(|| InstallationName {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            });
        }
    }
    found
}

/// Whether a record has this value of the owner label; `None` if this is not known.
pub(crate) async fn is_recorded(
    ctx: &Context,
    records: &Records,
    owner: &str,
    name: Option<&InstallationName>,
) -> Result<Option<bool>, OperationError> {
    let is_remote = ctx.is_remote().await?;
    let is_read = records.all.iter().any(|record| {
        let name = name_of(record);
        owner_hash(&name.namespace, &name.name) == owner
    });
    if is_read {
        return Ok(Some(true));
    }
    if !is_remote && !records.is_partial {
        return Ok(Some(false));
    }
    let has = |owners: Option<BTreeSet<String>>| owners.map(|owners| owners.contains(owner));
    let here = has(record::list_owners(ctx.home().await?, name).await?);
    if here == Some(true) || !is_remote {
        return Ok(here);
    }
    let there = has(record::list_owners(ctx.cluster().await?, name).await?);
    Ok(match (here, there) {
        (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use addons_plan::snapshot::LiveObject;
    use common::manifest::key::ObjectKey;

    use super::*;

    #[test]
    fn an_owner_is_named_only_by_an_annotation_that_fits_its_label() {
        let live = |owner: &str, installation: Option<&str>| LiveObject {
            owner: Some(owner.to_owned()),
            installation: installation.map(str::to_owned),
            ..LiveObject::default()
        };
        let web = owner_hash("shop", "web");
        let snapshot = Snapshot {
            live: [
                ("a", live(&web, None)),
                ("b", live(&web, Some("shop/web"))),
                ("c", live(&web, Some("shop/other"))),
                ("d", live("0123", Some("shop/web"))),
                ("e", LiveObject::default()),
            ]
            .map(|(name, live)| {
                let key = ObjectKey {
                    group: String::new(),
                    kind: "ConfigMap".to_owned(),
                    namespace: Some("shop".to_owned()),
                    name: name.to_owned(),
                };
                (key, live)
            })
            .into(),
            ..Snapshot::default()
        };
        let name = InstallationName {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        assert_eq!(
            list_owners(&snapshot),
            BTreeMap::from([(web, Some(name)), ("0123".to_owned(), None)])
        );
    }
}
