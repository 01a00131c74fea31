//! The facts of a cluster that expressions read: the conditions of core rules, and the constraints of entries.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::cost::{ValueSize, count};
use super::{Expression, ExpressionError};

/// The most labels that an expression reads: those of the namespace.
pub(super) const LABELS: usize = 64;
/// The longest text of a fact that an expression reads, in bytes.
pub(super) const TEXT: usize = 256;
/// The longest key or value of a label.
const LABEL: u64 = 317;
/// The label of a node with its architecture, which its kubelet sets.
const LABEL_ARCHITECTURE: &str = "kubernetes.io/arch";
/// The most values that are kept of a label of nodes.
const NODE_LABEL_VALUES: usize = 64;

/// A variable of expressions.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it is, for the pages that list the variables.
    pub meaning: &'static str,
    /// What to do where it is not known.
    way_to_know: &'static str,
}

const STATE_IT: &str = "ConfigMap addon-template-data states what cannot be read";
const LIST_NODES: &str = "reading it needs the right to list nodes";

/// The variables. The pages about core add-ons and about constraints show this table.
pub const VARIABLES: [Variable; 9] = {
    const fn variable(
        name: &'static str,
        meaning: &'static str,
        way_to_know: &'static str,
    ) -> Variable {
        Variable {
            name,
            meaning,
            way_to_know,
        }
    }
    [
        variable(
            "namespace",
            "the namespace that stands for the cluster",
            STATE_IT,
        ),
        variable(
            "labels",
            "the labels of that namespace",
            "reading it needs the right to get that namespace",
        ),
        variable(
            "version",
            "the version of Kubernetes without v: 1.36.3",
            STATE_IT,
        ),
        variable(
            "provider",
            "the cloud provider as KKP spells it: aws, gcp, hetzner",
            STATE_IT,
        ),
        variable(
            "cni",
            "the network plugin: canal, cilium, calico, flannel",
            STATE_IT,
        ),
        variable("cniVersion", "the version of the network plugin", STATE_IT),
        variable(
            "architectures",
            "a list of the architectures of the nodes: amd64, arm64",
            LIST_NODES,
        ),
        variable(
            "nodeLabels",
            "a map from each label of the nodes to a list of its values, at most 64",
            LIST_NODES,
        ),
        variable(
            "kinds",
            "a list of the kinds that the cluster serves: Deployment.apps, Certificate.cert-manager.io, Pod",
            "reading it needs the right to read the APIs of the cluster",
        ),
    ]
};

/// The facts of a cluster. The variable of an unknown fact (`None`) does not exist, so an expression that needs it has no result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Whether it is the cluster with the rules and the list.
    pub is_home: bool,
    /// `namespace`.
    pub namespace: String,
    /// `labels`.
    pub labels: Option<BTreeMap<String, String>>,
    /// `version`.
    pub version: Option<String>,
    /// `provider`.
    pub provider: Option<String>,
    /// `cni`.
    pub cni: Option<String>,
    /// `cniVersion`.
    pub cni_version: Option<String>,
    /// `architectures`.
    pub architectures: Option<BTreeSet<String>>,
    /// `nodeLabels`.
    pub node_labels: Option<BTreeMap<String, BTreeSet<String>>>,
    /// `kinds`.
    pub kinds: Option<BTreeSet<String>>,
}

impl Profile {
    /// Reads the profile from template data: the facts of the cluster, and what its administrators add to them.
    #[must_use]
    pub fn from_template_data(namespace: &str, is_home: bool, data: &Value) -> Self {
        let known = |pointer: &str| {
            let text = data.pointer(pointer)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        Self {
            is_home,
            namespace: namespace.to_owned(),
            version: known("/Cluster/Version"),
            provider: known("/Cluster/CloudProviderName"),
            cni: known("/Cluster/CNIPlugin/Type"),
            cni_version: known("/Cluster/CNIPlugin/Version"),
            ..Self::default()
        }
    }

    /// Returns a profile of which every fact is known. Expressions are checked against it.
    #[must_use]
    pub fn sample() -> Self {
        let some = |text: &str| Some(text.to_owned());
        let set = |text: &str| Some(BTreeSet::from([text.to_owned()]));
        Self {
            is_home: false,
            namespace: "sample".to_owned(),
            labels: Some(BTreeMap::new()),
            version: some("1.36.3"),
            provider: some("aws"),
            cni: some("cilium"),
            cni_version: some("1.19.4"),
            architectures: set("amd64"),
            node_labels: Some(BTreeMap::new()),
            kinds: set("Deployment.apps"),
        }
    }

    /// Adds the labels of nodes, and the architectures that they say. Of each label, `NODE_LABEL_VALUES` values are kept: no constraint needs more, and
    /// some labels have another value on each node.
    pub fn add_nodes(&mut self, nodes: &[BTreeMap<String, String>]) {
        let architectures = self.architectures.get_or_insert_default();
        let labels = self.node_labels.get_or_insert_default();
        for of_node in nodes {
            architectures.extend(of_node.get(LABEL_ARCHITECTURE).cloned());
            for (key, value) in of_node {
                let values = labels.entry(key.clone()).or_default();
                if values.len() < NODE_LABEL_VALUES {
                    values.insert(value.clone());
                }
            }
        }
    }

    /// Returns the value of a variable; `None` if it is not known.
    fn value(&self, variable: &str) -> Option<Value> {
        Some(match variable {
            "namespace" => json!(self.namespace),
            "labels" => json!(self.labels.as_ref()?),
            "version" => json!(self.version.as_ref()?),
            "provider" => json!(self.provider.as_ref()?),
            "cni" => json!(self.cni.as_ref()?),
            "cniVersion" => json!(self.cni_version.as_ref()?),
            "architectures" => json!(self.architectures.as_ref()?),
            "nodeLabels" => json!(self.node_labels.as_ref()?),
            "kinds" => json!(self.kinds.as_ref()?),
            _ => return None,
        })
    }

    /// Whether the value of a variable is known.
    #[must_use]
    pub fn knows(&self, variable: &str) -> bool {
        self.value(variable).is_some()
    }

    /// Returns whether an expression that [`compile`] returned holds in the cluster.
    ///
    /// # Errors
    /// [`ExpressionError`].
    pub fn evaluate(&self, expression: &Expression) -> Result<bool, ExpressionError> {
        let mut values = Map::new();
        for name in expression.variables() {
            let Some(value) = self.value(name) else {
                continue;
            };
            let is_too_large = match (&value, name.as_str()) {
                (Value::String(text), _) => text.len() > TEXT,
                (Value::Object(labels), "labels") => labels.len() > LABELS,
                // The steps are counted with the size that these have.
                _ => false,
            };
            if is_too_large {
                return Err(ExpressionError::FactTooLarge { name: name.clone() });
            }
            values.insert(name.clone(), value);
        }
        match expression.evaluate(&values) {
            // Every variable that is read is a fact, so this one is not known of this cluster.
            Err(ExpressionError::Missing(name))
                if is_fact(&name) && !values.contains_key(&name) =>
            {
                Err(ExpressionError::NotKnown { name })
            }
            other => other,
        }
    }

    /// Describes the facts that an expression reads: `provider is aws, cni is cilium`. Lists are not repeated.
    #[must_use]
    pub fn describe(&self, expression: &Expression) -> String {
        let texts = expression.variables().iter().filter_map(|name| {
            let value = self.value(name)?;
            match (value.as_str(), name.as_str()) {
                (Some(text), _) => Some(format!("{name} is {text}")),
                (None, "architectures") => {
                    let all = self.architectures.iter().flatten();
                    let all: Vec<&str> = all.map(String::as_str).collect();
                    Some(format!("{name} are {}", all.join(", ")))
                }
                (None, _) => None,
            }
        });
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// Compiles an expression that reads facts of a cluster. It must have a result for [`Profile::sample`].
///
/// # Errors
/// [`ExpressionError`].
pub fn compile(text: &str) -> Result<Expression, ExpressionError> {
    let expression = Expression::compile_with(text, &mut |name| {
        large_size(name).ok_or_else(|| ExpressionError::NoSuchFact {
            name: name.to_owned(),
        })
    })?;
    let reads_labels = ["labels", "nodeLabels"]
        .iter()
        .any(|name| expression.variables().contains(*name));
    match Profile::sample().evaluate(&expression) {
        // The sample has no labels, so reading one fails.
        Err(ExpressionError::Missing(_)) if reads_labels => Ok(expression),
        other => other.map(|_| expression),
    }
}

/// Returns the size of a large value of a variable, with which the steps are counted before any cluster is known; `None` if there is no
/// such variable.
fn large_size(variable: &str) -> Option<ValueSize> {
    let label = || ValueSize::flat(LABEL);
    Some(match variable {
        "labels" => ValueSize::map(count(LABELS), LABEL, label()),
        "architectures" => ValueSize::list(4, ValueSize::flat(16)),
        "nodeLabels" => ValueSize::map(128, LABEL, ValueSize::list(16, label())),
        "kinds" => ValueSize::list(512, ValueSize::flat(64)),
        name if is_fact(name) => ValueSize::flat(count(TEXT)),
        _ => return None,
    })
}

fn is_fact(name: &str) -> bool {
    VARIABLES.iter().any(|variable| variable.name == name)
}

/// Returns what to do where a fact is not known.
pub(super) fn way_to_know(variable: &str) -> &'static str {
    let known = VARIABLES.iter().find(|it| it.name == variable);
    known.map_or("", |it| it.way_to_know)
}
