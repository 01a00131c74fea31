//! Other owners of an object, by labels and annotations of their tools.

use std::collections::BTreeMap;

use common::api::names;

/// Another tool's mark: the label or annotation, and the words before its value.
struct Mark {
    name: &'static str,
    /// The label or annotation with the owner's namespace.
    namespace: Option<&'static str>,
    words: &'static str,
}

const ANNOTATIONS: &[Mark] = &[
    Mark {
        name: "meta.helm.sh/release-name",
        namespace: Some("meta.helm.sh/release-namespace"),
        words: "Helm release",
    },
    Mark {
        name: "argocd.argoproj.io/tracking-id",
        namespace: None,
        words: "Argo CD application",
    },
    Mark {
        name: "config.k8s.io/owning-inventory",
        namespace: None,
        words: "inventory",
    },
];

const LABELS: &[Mark] = &[
    Mark {
        name: "kustomize.toolkit.fluxcd.io/name",
        namespace: Some("kustomize.toolkit.fluxcd.io/namespace"),
        words: "Flux Kustomization",
    },
    Mark {
        name: "helm.toolkit.fluxcd.io/name",
        namespace: Some("helm.toolkit.fluxcd.io/namespace"),
        words: "Flux HelmRelease",
    },
    Mark {
        name: "argocd.argoproj.io/instance",
        namespace: None,
        words: "Argo CD application",
    },
    Mark {
        name: "kapp.k14s.io/app",
        namespace: None,
        words: "kapp application",
    },
    Mark {
        name: "addon.kops.k8s.io/name",
        namespace: None,
        words: "kops add-on",
    },
    Mark {
        name: "applyset.kubernetes.io/part-of",
        namespace: None,
        words: "ApplySet",
    },
];

/// The owner, for refusals: `Helm release shop/web`. An object of an add-on installation (the asking one
/// too: compare [`LiveObject::owner`](common::plan::snapshot::LiveObject::owner) first) names that one.
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
    let found = |marks: &'static [Mark], values: &BTreeMap<String, String>| {
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

#[cfg(test)]
mod tests {
    use super::*;

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
