//! A row of the table: policies, an installation, and what each layer says of it.

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};

const ROWS: &str = include_str!("../../data/policy/rows.yaml");

/// Who tries it; all of them may do what RBAC can allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// Of no group that policies name.
    #[default]
    Dev,
    /// Of group `ops`.
    Ops,
    /// Of the core group.
    Core,
    /// Of the group that may break the glass.
    Glass,
}

/// What judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The webhook.
    Webhook,
    /// The policies of deploy/policies.
    Static,
    /// `kubectl addons install`.
    Plugin,
    /// A pass of the reconciler.
    Loop,
}

/// What it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing.
    Nothing,
    /// It refuses, in words that contain these.
    Denied(String),
    /// It warns, in words that contain these.
    Warned(String),
}

/// One of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What it is about.
    pub says: String,
    /// Who tries it.
    #[serde(default)]
    pub who: Who,
    #[serde(default)]
    policies: Vec<Value>,
    /// The spec of an installation.
    pub install: Value,
    /// A patch of it, or `delete`.
    pub change: Option<Value>,
    denied: Option<String>,
    warned: Option<String>,
    by: Option<Vec<Layer>>,
    tried: Option<Vec<Layer>>,
    /// Its namespace, and the name of its first policy.
    #[serde(skip)]
    pub name: String,
}

impl Row {
    /// Whether a layer tries it.
    pub fn is_tried(&self, layer: Layer) -> bool {
        self.tried.as_ref().is_none_or(|all| all.contains(&layer))
    }

    /// Whether its installation is there before the policies.
    pub fn is_earlier(&self) -> bool {
        self.change.is_some() || self.is_tried(Layer::Loop)
    }

    /// What a layer says.
    pub fn expected(&self, layer: Layer) -> Said {
        if self.by.as_ref().is_some_and(|all| !all.contains(&layer)) {
            return Said::Nothing;
        }
        let words = |text: &str| {
            let name = &self.name;
            let gap = if text.starts_with('-') { "" } else { " " };
            format!("AddonPolicy {name}{gap}{text}")
        };
        match (&self.denied, &self.warned) {
            (Some(text), _) => Said::Denied(words(text)),
            (None, Some(text)) => Said::Warned(words(text)),
            (None, None) => Said::Nothing,
        }
    }

    /// Its policies, which select its namespace.
    pub fn policies(&self) -> Vec<Value> {
        let named = self.policies.iter().zip(["", "-b"]);
        let objects = named.map(|(spec, suffix)| {
            let mut spec = spec.clone();
            spec["namespaceSelector"]["matchLabels"]["row"] = json!(self.name);
            policy(&format!("{}{suffix}", self.name), spec)
        });
        objects.collect()
    }
}

/// A policy.
pub fn policy(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": common::api::names::API_VERSION,
        "kind": "AddonPolicy",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// All of them; `index` is the location of an index.
pub fn rows(index: &str) -> Result<Vec<Row>> {
    let text = ROWS.replace("INDEX}", &format!("'{index}'}}"));
    let mut rows: Vec<Row> = serde_saphyr::from_str(&text).context("rows.yaml")?;
    for (number, row) in rows.iter_mut().enumerate() {
        row.name = format!("row-{number}");
    }
    Ok(rows)
}
