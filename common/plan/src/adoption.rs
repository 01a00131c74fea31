//! Adoption of live objects that no installation owns: their former owner, and what prevents it (semantics 12.10).

use serde::{Deserialize, Serialize};

use super::claims::Claims;
use super::planner::RefusalReason;
use super::snapshot::LiveObject;
use common::manifest::key::ObjectKey;

/// An object that the installation adopts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Adoption {
    /// Its former owner, for display: `Helm release shop/web`, `kubectl`, `unknown`.
    pub from: String,
    /// Its uid. An object with the same name and another uid is not adopted.
    pub uid: String,
    /// Whether only the owner changes and the object is not applied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_owner: bool,
}

impl Adoption {
    pub(super) fn from_live(live: &LiveObject) -> Self {
        let from = live.other_owner.as_ref().or(live.managed_by.as_ref());
        Self {
            from: from.map_or("unknown", String::as_str).to_owned(),
            uid: live.uid.clone(),
            only_owner: false,
        }
    }
}

/// Returns why the installation cannot take over an object, whatever the user accepts; `None` if it can.
pub(super) fn find_obstacle(
    claims: &Claims,
    key: &ObjectKey,
    live: &LiveObject,
) -> Option<RefusalReason> {
    let claim = claims.objects.get(key).or_else(|| claims.retained.get(key));
    if let Some(other) = claim {
        return Some(RefusalReason::of_installation(other));
    }
    if let Some(label) = &live.owner {
        let named = live.other_owner.clone();
        return Some(RefusalReason::Claimed {
            by: named.unwrap_or_else(|| format!("another installation (owner label {label})")),
        });
    }
    if let Some(controller) = &live.controlled_by {
        return Some(RefusalReason::Controlled {
            by: format!("{} {}", controller.kind, controller.name),
        });
    }
    let by = Box::new(live.reconciled_by.clone()?);
    Some(RefusalReason::Reconciled { by })
}
