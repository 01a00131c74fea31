//! Live objects that no installation owns: which of them may become ours, and whose they were (semantics 12).

use serde::{Deserialize, Serialize};

use super::claims::Claims;
use super::planner::RefusalReason;
use super::snapshot::LiveObject;
use common::manifest::key::ObjectKey;

/// An object that becomes ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Adoption {
    /// Its former owner, for people: `Helm release shop/web`, `kubectl`, `unknown`.
    pub from: String,
    /// Its uid: another object of that name is not adopted.
    pub uid: String,
    /// Whether nothing but the owner changes: the object is not applied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_owner: bool,
}

impl Adoption {
    pub(super) fn of(live: &LiveObject) -> Self {
        let from = live.other_owner.as_ref().or(live.managed_by.as_ref());
        Self {
            from: from.map_or("unknown", String::as_str).to_owned(),
            uid: live.uid.clone(),
            only_owner: false,
        }
    }
}

/// Why an object that is not ours cannot become ours, whatever the user says; `None` where it can.
pub(super) fn obstacle(
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
