//! Finds other owners of an object by labels and annotations of their tools.

use std::collections::BTreeMap;

use jiff::Timestamp;

use addons_plan::found::{self, HELM_NAME, HELM_NAMESPACE, KAPP_APP};
use addons_plan::snapshot::FormerMark;
use common::api::names;
use common::manifest::managed_fields::former::tool_name;

use super::super::meta::LiveMetadata;

/// Labels, one of which the addon-manager of kube-up requires on everything that it applies.
const ADDON_MANAGER: [&str; 2] = [
    "addonmanager.kubernetes.io/mode",
    "kubernetes.io/cluster-service",
];
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The mark of another tool: its label or annotation, and the words before its value.
struct ToolMark {
    name: &'static str,
    /// The label or annotation with the owner's namespace.
    namespace: Option<&'static str>,
    words: &'static str,
}

const ANNOTATIONS: &[ToolMark] = &[
    ToolMark {
        name: HELM_NAME,
        namespace: Some(HELM_NAMESPACE),
        words: "Helm release",
    },
    ToolMark {
        name: "argocd.argoproj.io/tracking-id",
        namespace: None,
        words: "Argo CD application",
    },
    ToolMark {
        name: "config.k8s.io/owning-inventory",
        namespace: None,
        words: "inventory",
    },
];

const LABELS: &[ToolMark] = &[
    ToolMark {
        name: "kustomize.toolkit.fluxcd.io/name",
        namespace: Some("kustomize.toolkit.fluxcd.io/namespace"),
        words: "Flux Kustomization",
    },
    ToolMark {
        name: "helm.toolkit.fluxcd.io/name",
        namespace: Some("helm.toolkit.fluxcd.io/namespace"),
        words: "Flux HelmRelease",
    },
    ToolMark {
        name: "argocd.argoproj.io/instance",
        namespace: None,
        words: "Argo CD application",
    },
    ToolMark {
        name: KAPP_APP,
        namespace: None,
        words: "kapp application",
    },
    ToolMark {
        name: "addon.kops.k8s.io/name",
        namespace: None,
        words: "kops add-on",
    },
    ToolMark {
        name: "applyset.kubernetes.io/part-of",
        namespace: None,
        words: "ApplySet",
    },
];

/// Returns the owner for refusals: `Helm release shop/web`. For an object of an add-on installation, this is the installation, which may be
/// the one that asks: compare [`LiveObject::owner`](addons_plan::snapshot::LiveObject::owner) first.
pub(super) fn other_owner(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
) -> Option<String> {
    if labels.contains_key(names::LABEL_OWNER) {
        let installation = annotations.get(names::ANNOTATION_INSTALLATION);
        return Some(match installation {
            Some(installation) => format!("add-on installation {installation}"),
            None => "another add-on installation".to_owned(),
        });
    }
    let found = |marks: &'static [ToolMark], values: &BTreeMap<String, String>| {
        marks.iter().find_map(|mark| {
            let value = values.get(mark.name)?;
            // Argo CD: `application:group/Kind:namespace/name`.
            let name = value.split(':').next().unwrap_or(value);
            let namespace = mark.namespace.and_then(|name| values.get(name));
            Some(match namespace {
                Some(namespace) => format!("{} {namespace}/{name}", mark.words),
                None => format!("{} {name}", mark.words),
            })
        })
    };
    found(ANNOTATIONS, annotations).or_else(|| found(LABELS, labels))
}

/// Returns the mark of a tool that keeps records.
pub(super) fn former_mark(metadata: &LiveMetadata) -> Option<FormerMark> {
    let annotation = |name: &str| metadata.annotations.get(name).map(String::as_str);
    let helm = || {
        let release = found::read_helm_release(annotation)?;
        Some(FormerMark::Helm {
            namespace: release.namespace,
            name: release.name,
        })
    };
    let kapp = || {
        let label = metadata.labels.get(KAPP_APP)?.clone();
        Some(FormerMark::Kapp { label })
    };
    helm().or_else(kapp)
}

/// Returns when the field manager of the installation in the owner label last wrote the object.
pub(super) fn last_written(metadata: &LiveMetadata) -> Option<Timestamp> {
    let manager = format!(
        "{}.{}",
        names::CLIENT,
        metadata.labels.get(names::LABEL_OWNER)?
    );
    let ours = metadata.writers.iter();
    let ours = ours.filter(|it| it.manager == manager && it.subresource.is_empty());
    ours.filter_map(|it| it.time).max()
}

/// Returns the field managers that are not those of installations.
pub(super) fn other_managers(metadata: &LiveMetadata) -> Vec<String> {
    let writers = metadata.writers.iter();
    let others = writers.filter(|it| it.subresource.is_empty() && !it.is_installation());
    others.map(|it| it.manager.clone()).collect()
}

/// Returns the tool that wrote an object, according to labels, annotations and its first field manager.
pub(super) fn writing_tool(metadata: &LiveMetadata) -> Option<String> {
    let labels = &metadata.labels;
    if ADDON_MANAGER.iter().any(|name| labels.contains_key(*name)) {
        return Some("addon-manager".to_owned());
    }
    let mut writers = metadata.writers.iter();
    let first = writers.find(|it| it.subresource.is_empty() && !it.is_installation());
    let by_kubectl = || {
        let is_applied = metadata.annotations.contains_key(LAST_APPLIED);
        is_applied.then(|| "kubectl".to_owned())
    };
    first
        .map(|first| tool_name(&first.manager).to_owned())
        .filter(|tool| !tool.is_empty())
        .or_else(by_kubectl)
}

#[cfg(test)]
mod tests {
    use super::super::super::meta::FieldWriter;
    use super::*;

    #[test]
    fn the_tool_is_named_where_no_mark_is() {
        let metadata = |label: &str, managers: &[&str], annotation: &str| LiveMetadata {
            labels: [(label.to_owned(), String::new())].into(),
            annotations: [(annotation.to_owned(), String::new())].into(),
            writers: managers
                .iter()
                .map(|manager| FieldWriter {
                    manager: (*manager).to_owned(),
                    ..FieldWriter::default()
                })
                .collect(),
            ..LiveMetadata::default()
        };
        let mode = "addonmanager.kubernetes.io/mode";
        for (label, managers, annotation, tool) in [
            (
                mode,
                &["kubectl-client-side-apply"][..],
                LAST_APPLIED,
                Some("addon-manager"),
            ),
            (
                "a",
                &["kubectl-client-side-apply"],
                LAST_APPLIED,
                Some("kubectl"),
            ),
            ("a", &["kops", "kubectl-edit"], "a", Some("kops")),
            ("a", &["helm"], "a", Some("Helm")),
            (
                "a",
                &["kubectl-addons.0123", "terraform"],
                "a",
                Some("terraform"),
            ),
            ("a", &[], LAST_APPLIED, Some("kubectl")),
            ("a", &["kubectl-addons.0123"], "a", None),
        ] {
            let found = writing_tool(&metadata(label, managers, annotation));
            assert_eq!(found.as_deref(), tool, "{managers:?}");
        }
    }

    #[test]
    fn owners_are_named() {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        for (labels, annotations, owner) in [
            (map(&[]), map(&[]), None),
            (
                map(&[("app.kubernetes.io/managed-by", "Helm")]),
                map(&[
                    ("meta.helm.sh/release-name", "web"),
                    ("meta.helm.sh/release-namespace", "shop"),
                ]),
                Some("Helm release shop/web"),
            ),
            (
                map(&[]),
                map(&[(
                    "argocd.argoproj.io/tracking-id",
                    "guestbook:apps/Deployment:default/ui",
                )]),
                Some("Argo CD application guestbook"),
            ),
            (
                map(&[
                    ("kustomize.toolkit.fluxcd.io/name", "apps"),
                    ("kustomize.toolkit.fluxcd.io/namespace", "flux-system"),
                ]),
                map(&[]),
                Some("Flux Kustomization flux-system/apps"),
            ),
            (
                map(&[("kubectl-addons.dev/owner", "0123")]),
                map(&[
                    ("kubectl-addons.dev/installation", "kubectl-addons/dns"),
                    ("meta.helm.sh/release-name", "web"),
                ]),
                Some("add-on installation kubectl-addons/dns"),
            ),
        ] {
            assert_eq!(other_owner(&labels, &annotations).as_deref(), owner);
        }
    }
}
