//! A row of the table: a request that a rule denies, and its neighbour.

use addons_tests::raw::Send;
use addons_tests::scene::{catalogue, installation, version};
use anyhow::{Context as _, Result};
use common::api::names::{API_VERSION, SYSTEM_NAMESPACE};
use serde::Deserialize;
use serde_json::{Value, json};

const TABLES: [(&str, &str); 4] = [
    (
        "catalogues.yaml",
        include_str!("../../data/rules/catalogues.yaml"),
    ),
    (
        "installations.yaml",
        include_str!("../../data/rules/installations.yaml"),
    ),
    ("core.yaml", include_str!("../../data/rules/core.yaml")),
    (
        "core-sets.yaml",
        include_str!("../../data/rules/core-sets.yaml"),
    ),
];
/// Values hold it, and no answer does.
pub const CANARY: &str = "CANARY";

/// Who sends a request; all of them may do what RBAC can allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// Of no group that the rules name.
    #[default]
    Admin,
    /// Of the core group.
    Core,
    /// Of the group that may break the glass.
    Glass,
    /// Of the group that brings catalogues to clusters.
    Distributor,
}

/// Which layer answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The rule, by the webhook.
    #[default]
    Webhook,
    /// The definition, before the webhook is asked.
    Schema,
    /// The rule, by the webhook's entry for the two ConfigMaps of core sets.
    #[serde(rename = "core-sets")]
    CoreSets,
}

/// A rule: what it denies, and what is allowed beside it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What it is about.
    pub says: String,
    /// The request that is denied; a row without one is about a warning.
    pub denied: Option<Denied>,
    /// Its neighbour.
    pub allowed: Attempt,
    /// Warnings about the neighbour.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// A request that is denied.
#[derive(Debug, Deserialize)]
pub struct Denied {
    /// Names of the rules in the metrics.
    #[serde(default)]
    pub rules: Vec<String>,
    /// By whom.
    #[serde(default)]
    pub by: Layer,
    /// The request.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The status.
    pub code: u16,
    /// The whole message, without what the API server writes before that of a webhook.
    pub message: String,
    /// Warnings beside it.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// A request. Exactly one of its fields but `who`, `in` and `metadata` is given.
#[derive(Debug, Deserialize)]
pub struct Attempt {
    /// By whom.
    #[serde(default)]
    pub who: Who,
    /// Namespace of a new object.
    #[serde(default = "system", rename = "in")]
    namespace: String,
    /// Further metadata of a new object.
    #[serde(default)]
    metadata: Value,
    /// Fields of the only version of a new catalogue.
    version: Option<Value>,
    /// The spec of a new catalogue.
    catalogue: Option<Value>,
    /// The spec of a new installation.
    installation: Option<Value>,
    /// Name and data of a new ConfigMap.
    #[serde(rename = "configMap")]
    config_map: Option<ConfigMap>,
    /// A merge patch.
    merge: Option<Value>,
    /// Where a patch goes, `KIND/NAME` or `KIND/NAMESPACE/NAME`.
    of: Option<String>,
    /// What is deleted, likewise; only `KIND` is all of the system namespace.
    delete: Option<String>,
}

/// A ConfigMap.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigMap {
    name: String,
    data: Value,
}

fn system() -> String {
    SYSTEM_NAMESPACE.to_owned()
}

impl Row {
    /// Its requests, and whether each is the denied one.
    pub fn attempts(&self) -> impl Iterator<Item = (&Attempt, bool)> {
        let denied = self.denied.iter().map(|denied| (&denied.attempt, true));
        denied.chain([(&self.allowed, false)])
    }
}

impl Attempt {
    /// How and where it is sent.
    pub fn sent(&self) -> Result<(Send, String)> {
        let ours = |namespace: &str| format!("/apis/{API_VERSION}/namespaces/{namespace}");
        let resource = |kind: &str| format!("addon{kind}s");
        let place = |text: &str| {
            let parts: Vec<&str> = text.split('/').collect();
            match parts[..] {
                [kind] => format!("{}/{}", ours(SYSTEM_NAMESPACE), resource(kind)),
                [kind, name] => format!("{}/{}/{name}", ours(SYSTEM_NAMESPACE), resource(kind)),
                [kind, namespace, name] => format!("{}/{}/{name}", ours(namespace), resource(kind)),
                _ => text.to_owned(),
            }
        };
        if let Some(gone) = &self.delete {
            return Ok((Send::Delete, place(gone)));
        }
        if self.merge.is_some() {
            let of = self.of.as_deref().context("a patch of nothing")?;
            return Ok((Send::Merge, place(of)));
        }
        if self.config_map.is_some() {
            let path = format!("/api/v1/namespaces/{}/configmaps", self.namespace);
            return Ok((Send::Create, path));
        }
        let kind = match self.installation {
            Some(_) => "installation",
            None => "catalogue",
        };
        Ok((
            Send::Create,
            format!("{}/{}", ours(&self.namespace), resource(kind)),
        ))
    }

    /// What is sent.
    pub fn body(&self) -> Value {
        if self.delete.is_some() {
            return Value::Null;
        }
        if let Some(patch) = &self.merge {
            return patch.clone();
        }
        if let Some(ConfigMap { name, data }) = &self.config_map {
            return json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data,
            });
        }
        let mut object = match (&self.installation, &self.catalogue) {
            (Some(spec), _) => installation("new", &self.namespace, spec.clone()),
            (None, Some(spec)) => {
                let mut object = catalogue("new", &self.namespace, json!([]));
                object["spec"] = spec.clone();
                object
            }
            (None, None) => {
                let fields = self.version.clone().unwrap_or_default();
                let versions = json!([version("1.0.0", fields)]);
                let addons = json!([{"name": "one", "versions": versions}]);
                catalogue("new", &self.namespace, addons)
            }
        };
        if let Value::Object(more) = &self.metadata {
            for (key, value) in more {
                object["metadata"][key] = value.clone();
            }
        }
        object
    }
}

/// All of them.
pub fn rows() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (file, text) in TABLES {
        let read: Vec<Row> = serde_saphyr::from_str(text).context(file)?;
        rows.extend(read);
    }
    Ok(rows)
}
