//! Detects the network plugin of a cluster by its DaemonSet.

use serde_json::Value;

/// `.Cluster.CNIPlugin`. Both fields are empty if no plugin is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkPlugin {
    /// `canal`, `cilium`, `calico` or `flannel`.
    pub kind: String,
    /// Version from the tag of the image, as KKP spells it: `v3.31` for canal, `1.19.4` for cilium, and the whole tag for the others.
    pub version: String,
}

/// A network plugin: its name, the namespaces and the name of its DaemonSet, and the last part of its image's repository. If one plugin
/// replaced another whose DaemonSet still exists, the first in the table counts.
struct KnownPlugin {
    kind: &'static str,
    namespaces: &'static [&'static str],
    name: &'static str,
    image: &'static str,
}

const KNOWN: [KnownPlugin; 4] = [
    KnownPlugin {
        kind: "cilium",
        namespaces: &["kube-system", "cilium"],
        name: "cilium",
        image: "cilium",
    },
    KnownPlugin {
        kind: "canal",
        namespaces: &["kube-system"],
        name: "canal",
        image: "node",
    },
    KnownPlugin {
        kind: "calico",
        namespaces: &["calico-system", "kube-system"],
        name: "calico-node",
        image: "node",
    },
    KnownPlugin {
        kind: "flannel",
        namespaces: &["kube-flannel", "kube-system"],
        name: "kube-flannel-ds",
        image: "flannel",
    },
];

/// Returns whether an add-on has the name of a network plugin.
#[must_use]
pub fn is_network_plugin(addon: &str) -> bool {
    KNOWN.iter().any(|known| known.kind == addon)
}

/// Finds the plugin among the DaemonSets of a cluster.
pub(super) fn find_plugin(daemon_sets: &[Value]) -> NetworkPlugin {
    let found = KNOWN.iter().find_map(|known| {
        let mut own = daemon_sets.iter().filter(|object| known.matches(object));
        Some((known, own.next()?))
    });
    let Some((known, object)) = found else {
        return NetworkPlugin::default();
    };
    let tag = container_images(object)
        .filter_map(split_tag)
        .find(|(repository, _)| repository.rsplit('/').next() == Some(known.image))
        .map_or("", |(_, tag)| tag);
    NetworkPlugin {
        kind: known.kind.to_owned(),
        version: match known.kind {
            "canal" => minor(tag),
            "cilium" => tag.strip_prefix('v').unwrap_or(tag),
            _ => tag,
        }
        .to_owned(),
    }
}

/// Returns whether a DaemonSet exists.
pub(super) fn has_daemon_set(daemon_sets: &[Value], namespace: &str, name: &str) -> bool {
    daemon_sets
        .iter()
        .any(|object| metadata(object) == (namespace, name))
}

impl KnownPlugin {
    fn matches(&self, object: &Value) -> bool {
        let (namespace, name) = metadata(object);
        name == self.name && self.namespaces.contains(&namespace)
    }
}

fn metadata(object: &Value) -> (&str, &str) {
    let text = |pointer| {
        let text = object.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}

fn container_images(object: &Value) -> impl Iterator<Item = &str> {
    let containers = object.pointer("/spec/template/spec/containers");
    let containers = containers.and_then(Value::as_array).into_iter().flatten();
    containers.filter_map(|container| container.get("image")?.as_str())
}

/// Splits an image into repository and tag. A digest after the tag is ignored.
fn split_tag(image: &str) -> Option<(&str, &str)> {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    let (repository, tag) = image.rsplit_once(':')?;
    // `registry:5000/node` has no tag.
    (!tag.contains('/')).then_some((repository, tag))
}

/// Returns `v3.31` of `v3.31.2`.
fn minor(tag: &str) -> &str {
    match tag.match_indices('.').nth(1) {
        Some((end, _)) => tag.get(..end).unwrap_or(tag),
        None => tag,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn daemon_set(namespace: &str, name: &str, images: &[&str]) -> Value {
        let containers = images.iter().map(|image| json!({"image": image}));
        let containers: Vec<_> = containers.collect();
        json!({
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"template": {"spec": {"containers": containers}}},
        })
    }

    #[track_caller]
    fn check(daemon_sets: &[Value], kind: &str, version: &str) {
        let plugin = find_plugin(daemon_sets);
        assert_eq!(
            (plugin.kind.as_str(), plugin.version.as_str()),
            (kind, version)
        );
    }

    #[test]
    fn plugins_are_known_by_their_daemon_set() {
        let canal = [
            "quay.io/calico/node:v3.31.2",
            "quay.io/flannel/flannel:v0.26.4",
        ];
        check(
            &[daemon_set("kube-system", "canal", &canal)],
            "canal",
            "v3.31",
        );
        let cilium = ["quay.io/cilium/cilium:v1.19.4@sha256:0123456789abcdef"];
        check(
            &[daemon_set("kube-system", "cilium", &cilium)],
            "cilium",
            "1.19.4",
        );
        let calico = ["registry.local:5000/calico/node:v3.30.0"];
        check(
            &[daemon_set("calico-system", "calico-node", &calico)],
            "calico",
            "v3.30.0",
        );
        let flannel = ["ghcr.io/flannel-io/flannel:v0.27.0"];
        check(
            &[daemon_set("kube-flannel", "kube-flannel-ds", &flannel)],
            "flannel",
            "v0.27.0",
        );
    }

    #[test]
    fn what_is_not_known_is_empty() {
        check(&[], "", "");
        check(
            &[daemon_set("kube-system", "kube-proxy", &["kube-proxy:v1"])],
            "",
            "",
        );
        // An unknown plugin.
        check(&[daemon_set("shop", "cilium", &["cilium:v1"])], "", "");
        let untagged = ["registry.local:5000/calico/node"];
        check(
            &[daemon_set("kube-system", "canal", &untagged)],
            "canal",
            "",
        );
        check(&[json!({"metadata": {"name": 1}}), json!(null)], "", "");
    }
}
