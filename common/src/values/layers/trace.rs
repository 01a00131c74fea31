//! Merges layers like [`super::merge`], and records which layers set each leaf.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::values::path::ValuePath;

/// The merged layers. Layers are identified by their index.
#[derive(Debug, Default)]
pub(super) struct LayerTrace(TraceBranch);

/// A leaf, with the layers that set a value at its path.
#[derive(Debug)]
pub(super) struct TracedLeaf {
    /// Its path.
    pub(super) path: ValuePath,
    /// The value; `None` if deleted.
    pub(super) value: Option<Value>,
    /// The layer that sets the value.
    pub(super) by: usize,
    /// The layers that it overrides.
    pub(super) over: BTreeSet<usize>,
}

#[derive(Debug)]
enum TraceNode {
    Leaf(TraceLeaf),
    Branch(TraceBranch),
}

#[derive(Debug)]
struct TraceLeaf {
    /// The value; `None` if deleted.
    value: Option<Value>,
    by: usize,
    over: BTreeSet<usize>,
}

/// A map, with the layer that set it.
#[derive(Debug, Default)]
struct TraceBranch {
    children: BTreeMap<String, TraceNode>,
    by: usize,
    over: BTreeSet<usize>,
}

impl LayerTrace {
    /// Merges maps in their order. The first one is taken unchanged, including its nulls.
    pub(super) fn from_layers<'a>(layers: impl Iterator<Item = &'a Value>) -> Self {
        let mut root = TraceBranch::default();
        for (by, layer) in layers.enumerate() {
            if let Value::Object(fields) = layer {
                root.add(fields, by);
            }
        }
        Self(root)
    }

    /// Returns all leaves, sorted by path.
    pub(super) fn leaves(&self) -> Vec<TracedLeaf> {
        let mut leaves = Vec::new();
        self.0.collect(&mut Vec::new(), &mut leaves);
        leaves
    }

    /// Returns the merged values. `show` converts each leaf from its value and layer.
    pub(super) fn rebuild(&self, show: &dyn Fn(&Value, usize) -> Value) -> Value {
        self.0.rebuild(show)
    }
}

impl TraceBranch {
    fn add(&mut self, fields: &Map<String, Value>, by: usize) {
        for (key, value) in fields {
            let old = self.children.remove(key);
            let node = TraceNode::merge(old, &self.over, value, by);
            self.children.insert(key.clone(), node);
        }
    }

    fn collect(&self, at: &mut Vec<String>, leaves: &mut Vec<TracedLeaf>) {
        for (key, node) in &self.children {
            at.push(key.clone());
            let (value, by, over) = match node {
                TraceNode::Branch(branch) if !branch.children.is_empty() => {
                    branch.collect(at, leaves);
                    at.pop();
                    continue;
                }
                TraceNode::Branch(empty) => {
                    (Some(Value::Object(Map::new())), empty.by, &empty.over)
                }
                TraceNode::Leaf(leaf) => (leaf.value.clone(), leaf.by, &leaf.over),
            };
            leaves.extend(ValuePath::from_keys(at.clone()).map(|path| TracedLeaf {
                path,
                value,
                by,
                over: over.clone(),
            }));
            at.pop();
        }
    }

    fn rebuild(&self, show: &dyn Fn(&Value, usize) -> Value) -> Value {
        let fields = self.children.iter().filter_map(|(key, node)| {
            let value = match node {
                TraceNode::Branch(branch) if branch.children.is_empty() => {
                    show(&Value::Object(Map::new()), branch.by)
                }
                TraceNode::Branch(branch) => branch.rebuild(show),
                TraceNode::Leaf(leaf) => show(leaf.value.as_ref()?, leaf.by),
            };
            Some((key.clone(), value))
        });
        Value::Object(fields.collect())
    }
}

impl TraceNode {
    /// Merges a value into a node. `above` contains the layers that the parent map overrides.
    fn merge(old: Option<Self>, above: &BTreeSet<usize>, value: &Value, by: usize) -> Self {
        match (old, value) {
            (Some(Self::Branch(mut branch)), Value::Object(fields)) => {
                branch.add(fields, by);
                Self::Branch(branch)
            }
            (old, value) => {
                let over = old.map_or_else(|| above.clone(), |old| old.layers());
                if let Value::Object(fields) = value {
                    let mut branch = TraceBranch {
                        children: BTreeMap::new(),
                        by,
                        over,
                    };
                    branch.add(fields, by);
                    return Self::Branch(branch);
                }
                // A null deletes. In the first layer, there is nothing to delete, so it stays.
                let value = (!value.is_null() || by == 0).then(|| value.clone());
                Self::Leaf(TraceLeaf { value, by, over })
            }
        }
    }

    /// Returns all layers that set a value here or below.
    fn layers(&self) -> BTreeSet<usize> {
        match self {
            Self::Leaf(leaf) => leaf.over.iter().copied().chain([leaf.by]).collect(),
            Self::Branch(branch) => {
                let below = branch.children.values().flat_map(Self::layers);
                let own = branch.over.iter().copied().chain([branch.by]);
                below.chain(own).collect()
            }
        }
    }
}
