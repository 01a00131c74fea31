//! What a plan would change in live objects, field by field: server-side dry runs in parallel.

use serde::Serialize;
use serde_json::Value;

use crate::manifest::key::ObjectKey;
use crate::plan::Plan;

use super::cluster::Cluster;
use super::error::EngineError;

/// The change of one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDiff {
    /// The object.
    pub key: ObjectKey,
    /// Whether it is new.
    pub created: bool,
    /// Changed fields, sorted by path; empty where the server would change nothing.
    pub fields: Vec<FieldChange>,
    /// The server's refusal of the dry run.
    pub error: Option<String>,
}

/// The change of one field. Values of Secrets are masked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// `spec.template.spec.containers[metrics-server].image`.
    pub path: String,
    /// Live value.
    pub old: Option<Value>,
    /// Value after the apply.
    pub new: Option<Value>,
    /// Field manager that owns the live value now, where it is not us.
    pub manager: Option<String>,
}

/// Dry-runs every step of a plan.
pub async fn diff(cluster: &Cluster, plan: &Plan) -> Result<Vec<ObjectDiff>, EngineError> {
    let _ = (cluster, plan);
    todo!()
}
