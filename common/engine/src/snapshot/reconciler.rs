//! Argo CD and Flux objects that apply an object again and again: what they made is taken back from whoever takes it over, as long as
//! they exist.

use std::collections::{BTreeMap, BTreeSet};

use common::manifest::key::ObjectKey;
use common::manifest::kinds::KindTable;

use super::super::address::Collection;
use super::super::cluster::Cluster;
use super::super::error::EngineError;
use super::{read_one, read_selected};

/// A kind whose objects apply others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    group: &'static str,
    /// Where discovery says nothing of it.
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    words: &'static str,
}

const APPLICATION: Kind = Kind {
    group: "argoproj.io",
    version: "v1alpha1",
    kind: "Application",
    plural: "applications",
    words: "Argo CD application",
};
const KUSTOMIZATION: Kind = Kind {
    group: "kustomize.toolkit.fluxcd.io",
    version: "v1",
    kind: "Kustomization",
    plural: "kustomizations",
    words: "Flux Kustomization",
};
const RELEASE: Kind = Kind {
    group: "helm.toolkit.fluxcd.io",
    version: "v2",
    kind: "HelmRelease",
    plural: "helmreleases",
    words: "Flux HelmRelease",
};
const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// Labels by which Argo CD finds its objects; before 3.0 it used the second one by default, which charts set as well.
const INSTANCE: [&str; 2] = ["argocd.argoproj.io/instance", "app.kubernetes.io/instance"];

/// An object that may apply another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reconciler {
    kind: Kind,
    /// None: any.
    namespace: Option<String>,
    name: String,
}

impl Reconciler {
    /// Those that the marks of an object name; they may be gone.
    pub(super) fn named_by(
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
    ) -> BTreeSet<Self> {
        let tracked = annotations.get(TRACKING_ID);
        // `APPLICATION:GROUP/KIND:NAMESPACE/NAME`.
        let tracked = tracked.and_then(|id| id.split(':').next());
        let labelled = INSTANCE.iter().filter_map(|name| labels.get(*name));
        let applications = labelled.map(String::as_str).chain(tracked).map(|name| {
            // An application outside Argo CD's own namespace is named with its namespace, which holds no underscore.
            let (namespace, name) = match name.split_once('_') {
                Some((namespace, name)) => (Some(namespace.to_owned()), name),
                None => (None, name),
            };
            Self {
                kind: APPLICATION,
                namespace,
                name: name.to_owned(),
            }
        });
        let flux = [KUSTOMIZATION, RELEASE].into_iter().filter_map(|kind| {
            let label = |name| labels.get(&format!("{}/{name}", kind.group));
            Some(Self {
                kind,
                namespace: label("namespace").cloned(),
                name: label("name")?.clone(),
            })
        });
        let named = applications.chain(flux);
        named.filter(|one| !one.name.is_empty()).collect()
    }

    fn words(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.kind.words, self.name),
            None => format!("{} {}", self.kind.words, self.name),
        }
    }

    /// Whether it exists. One of a kind that is served and may not be read counts as live.
    async fn is_live(&self, cluster: &Cluster, kinds: &KindTable) -> Result<bool, EngineError> {
        let Kind {
            group,
            version,
            kind,
            plural,
            ..
        } = self.kind;
        let served = kinds.preferred(group, kind);
        let version = served.as_ref().map_or(version, |(gvk, _)| &gvk.version);
        let api_version = format!("{group}/{version}");
        let collection = Collection::known(&api_version, kind, plural, self.namespace.as_deref());
        let found = match &self.namespace {
            Some(_) => {
                let read = read_one(cluster, &collection, &self.name).await;
                read.map(|found| found.is_some())
            }
            None => {
                let selector = format!("metadata.name={}", self.name);
                let selectors = [("fieldSelector", selector.as_str())];
                let listed = read_selected(cluster, &collection, &selectors).await;
                listed.map(|listed| listed.is_some_and(|listed| !listed.is_empty()))
            }
        };
        match found {
            Err(error) if error.is_not_found() => Ok(false),
            Err(EngineError::Forbidden { .. }) => Ok(served.is_some()),
            found => found,
        }
    }
}

/// The objects that a live one applies, and its name: one request for each that is named.
pub(super) async fn live(
    cluster: &Cluster,
    kinds: &KindTable,
    named: Vec<(ObjectKey, Reconciler)>,
) -> Result<BTreeMap<ObjectKey, String>, EngineError> {
    let mut known: BTreeMap<Reconciler, bool> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for (key, by) in named {
        let is_live = match known.get(&by) {
            Some(is_live) => *is_live,
            None => {
                let is_live = by.is_live(cluster, kinds).await?;
                known.insert(by.clone(), is_live);
                is_live
            }
        };
        if is_live {
            found.insert(key, by.words());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_name_what_applies_an_object() {
        let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        for (labels, annotations, named) in [
            (map(&[]), map(&[]), &[][..]),
            (
                map(&[]),
                map(&[(TRACKING_ID, "shop:apps/Deployment:shop/web")]),
                &["Argo CD application shop"],
            ),
            (
                map(&[("argocd.argoproj.io/instance", "team_shop")]),
                map(&[(TRACKING_ID, "team_shop:/ConfigMap:shop/web")]),
                &["Argo CD application team/shop"],
            ),
            (
                map(&[
                    ("app.kubernetes.io/instance", "web"),
                    ("helm.toolkit.fluxcd.io/name", "web"),
                    ("helm.toolkit.fluxcd.io/namespace", "flux"),
                    ("kustomize.toolkit.fluxcd.io/name", "apps"),
                    ("kustomize.toolkit.fluxcd.io/namespace", "flux"),
                ]),
                map(&[]),
                &[
                    "Argo CD application web",
                    "Flux HelmRelease flux/web",
                    "Flux Kustomization flux/apps",
                ],
            ),
        ] {
            let found = Reconciler::named_by(&labels, &annotations);
            let words: Vec<String> = found.iter().map(Reconciler::words).collect();
            assert_eq!(words, named, "{labels:?}");
        }
    }
}
