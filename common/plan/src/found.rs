//! Installs of other tools, found by the marks of their objects. `adopt` without a name lists them (semantics 12.11).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use common::api::installation::{AddonInstallation, FormerTool, HelmRelease};
use common::api::names::{ANNOTATION_INSTALLATION, LABEL_MODE, LABEL_OWNER, MODE_ENSURE_EXISTS};
use common::entrance;
use common::manifest::key::ObjectKey;

/// Prefix of the annotation that kops sets on the namespace of an add-on; the name of the add-on follows.
const KOPS_PREFIX: &str = "addons.k8s.io/";
/// Annotation of `kubectl apply`: the manifest that it last applied.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Annotation that Helm sets on the objects of a release: its name. [`read_helm_release`] reads it together with the namespace.
pub const HELM_NAME: &str = "meta.helm.sh/release-name";
/// Annotation that Helm sets on the objects of a release: its namespace.
pub const HELM_NAMESPACE: &str = "meta.helm.sh/release-namespace";
/// Label that kapp sets on the objects of an application.
pub const KAPP_APP: &str = "kapp.k14s.io/app";
/// Labels that commonly name an app, best first.
const APP_LABELS: [&str; 5] = [
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/name",
    "k8s-app",
    "app",
];

/// The marks of a live object that show which tool created it.
#[derive(Clone, Debug, Default)]
pub struct MarkedObject {
    /// The object.
    pub key: ObjectKey,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations. Large values may be left out.
    pub annotations: BTreeMap<String, String>,
}

/// The marks by which an install was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FoundBy {
    /// The annotation of kops on a namespace, and its label on the objects.
    Kops,
    /// The annotations of Helm.
    Helm,
    /// The label of kapp.
    Kapp,
    /// The labels of the addon-manager.
    AddonManager,
    /// The owner label of an installation that no longer exists.
    Orphan,
    /// The annotation of kubectl's client-side apply.
    Kubectl,
}

impl FoundBy {
    /// Returns the name of the tool for the table.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Kops => "kops",
            Self::Helm => "Helm",
            Self::Kapp => "kapp",
            Self::AddonManager => "addon-manager",
            Self::Orphan => "orphan",
            Self::Kubectl => "kubectl",
        }
    }
}

/// An add-on, release, application or app that another tool installed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignInstall {
    /// The marks by which it was found.
    pub found_by: FoundBy,
    /// Name of the add-on, release, application or app.
    pub name: String,
    /// The namespace that the tool records for it, else that of its objects.
    pub namespace: Option<String>,
    /// Its version, if a mark names one.
    pub version: Option<String>,
    /// The id of its entry, if the record of kops names it instead of a version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The hash of its manifest in the record of kops.
    #[serde(skip)]
    pub manifest_hash: Option<String>,
    /// The chart of a release, without its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<String>,
    /// The index from which kops read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The number of objects that carry its marks.
    pub objects: usize,
    /// The namespaces of these objects.
    #[serde(skip)]
    pub namespaces: BTreeSet<String>,
    /// The charts that the chart of a release contains, with the versions that it asks for.
    #[serde(skip)]
    pub subcharts: BTreeMap<String, String>,
}

impl ForeignInstall {
    /// Whether its own name or that of its chart is `addon`.
    #[must_use]
    pub fn is_addon(&self, addon: &str) -> bool {
        self.name == addon || self.chart.as_deref() == Some(addon)
    }

    /// Returns the version of an add-on in it: its own or, if the add-on is a subchart, the one that its chart asks for, which may be a range.
    #[must_use]
    pub fn version_of(&self, addon: &str) -> Option<&str> {
        let part = self.subcharts.get(addon);
        let part = part.filter(|_| self.chart.as_deref() != Some(addon));
        part.or(self.version.as_ref()).map(String::as_str)
    }

    /// Returns the version of an add-on in it as people read it: `1.2.0` or, if only its id is known, `id k8s-1.30`.
    #[must_use]
    pub fn version_label(&self, addon: &str) -> Option<String> {
        let id = self.id.as_ref().map(|id| format!("id {id}"));
        self.version_of(addon).map(str::to_owned).or(id)
    }

    /// Whether it has objects in this namespace, or only cluster-scoped ones.
    #[must_use]
    pub fn is_in_namespace(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }
}

/// Reads the Helm release that the marks of an object name. Returns `None` if one of them is missing.
#[must_use]
pub fn read_helm_release<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Option<HelmRelease> {
    Some(HelmRelease {
        name: annotation(HELM_NAME)?.to_owned(),
        namespace: annotation(HELM_NAMESPACE)?.to_owned(),
    })
}

impl fmt::Display for ForeignInstall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.clone(),
        };
        match self.found_by {
            FoundBy::Helm => write!(f, "Helm release {name}"),
            FoundBy::Kapp => write!(f, "kapp application {name}"),
            FoundBy::Orphan => write!(f, "{name}, an installation that is gone,"),
            FoundBy::Kops | FoundBy::AddonManager | FoundBy::Kubectl => {
                write!(f, "{name} of {}", self.found_by.word())
            }
        }
    }
}

/// Returns the Helm releases (`shop/web`) whose records of this installation's objects were not set aside (semantics 12.12).
pub fn list_open_releases(record: &AddonInstallation) -> impl Iterator<Item = String> + '_ {
    let former = record.status.iter().flat_map(|status| &status.former);
    let open = former.filter(|one| one.tool == FormerTool::Helm && !one.is_set_aside);
    open.map(|one| format!("{}/{}", one.namespace, one.name))
}

/// Identity of an install: marks, namespace and name.
type InstallIdentity = (FoundBy, Option<String>, String);

/// Groups objects by the install that they belong to. Objects of the installations in `owners` (owner labels) are left out.
#[must_use]
pub fn find_installs(objects: &[MarkedObject], owners: &BTreeSet<String>) -> Vec<ForeignInstall> {
    let mut found: BTreeMap<InstallIdentity, ForeignInstall> = BTreeMap::new();
    let mut parts: BTreeSet<InstallIdentity> = BTreeSet::new();
    let mut kops: BTreeMap<String, Option<String>> = BTreeMap::new();
    for object in objects {
        for install in read_kops_addons(object) {
            kops.insert(install.name.clone(), install.namespace.clone());
            let identity = (
                FoundBy::Kops,
                install.namespace.clone(),
                install.name.clone(),
            );
            found.insert(identity, install);
        }
    }
    for object in objects {
        let Some((found_by, namespace, name)) = identify(object, owners, &kops) else {
            continue;
        };
        let label = |name: &str| object.labels.get(name).filter(|value| !value.is_empty());
        let chart = label("helm.sh/chart").filter(|_| found_by == FoundBy::Helm);
        let chart = chart.and_then(|chart| parse_chart_label(chart));
        let version = chart.map(|(_, version)| version.to_owned());
        let version = version.or_else(|| label("app.kubernetes.io/version").cloned());
        let identity = (found_by, namespace.clone(), name.clone());
        let install = found
            .entry(identity.clone())
            .or_insert_with(|| ForeignInstall {
                found_by,
                name,
                namespace,
                version: None,
                id: None,
                manifest_hash: None,
                chart: None,
                channel: None,
                objects: 0,
                namespaces: BTreeSet::new(),
                subcharts: BTreeMap::new(),
            });
        install.objects += 1;
        install.namespaces.extend(object.key.namespace.clone());
        if install.id.is_none() {
            install.version = install.version.take().or(version);
        }
        let chart = chart.map(|(name, _)| name.to_owned());
        if install.chart.is_some() && chart.is_some() && install.chart != chart {
            parts.insert(identity);
        }
        install.chart = install.chart.take().or(chart);
    }
    // Objects of a chart with subcharts name different charts, so the chart and version of the install are unknown.
    for identity in parts {
        if let Some(install) = found.get_mut(&identity) {
            (install.chart, install.version) = (None, None);
        }
    }
    found.into_values().collect()
}

/// Splits the label of a chart into name and version, `web-server-1.0.0-rc.1`: the version is the first part that looks like one. The label
/// has `_` instead of `+`.
fn parse_chart_label(chart: &str) -> Option<(&str, &str)> {
    let is_version = |text: &str| {
        let number = text.trim_start_matches('v').split('.').next();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.contains('.') && number.is_some_and(is_number)
    };
    let mut places = chart.match_indices('-');
    let found = places.find(|(at, _)| is_version(&chart[at + 1..]));
    match found {
        Some((at, _)) => Some((&chart[..at], &chart[at + 1..])),
        None => chart.rsplit_once('-'),
    }
}

/// Reads the add-ons that kops recorded on a namespace.
fn read_kops_addons(object: &MarkedObject) -> impl Iterator<Item = ForeignInstall> + '_ {
    let is_namespace = object.key.group.is_empty() && object.key.kind == "Namespace";
    let noted = object.annotations.iter().filter(move |_| is_namespace);
    noted.filter_map(|(annotation, value)| {
        let name = annotation.strip_prefix(KOPS_PREFIX)?;
        let noted: Value = entrance::from_str(value).ok()?;
        let text = |field: &str| {
            let text = noted.get(field)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        let version = text("version");
        Some(ForeignInstall {
            found_by: FoundBy::Kops,
            name: name.to_owned(),
            namespace: Some(object.key.name.clone()),
            // kops 1.22 and later record no version.
            id: text("id").filter(|_| version.is_none()),
            manifest_hash: text("manifestHash"),
            version,
            chart: None,
            channel: text("channel"),
            objects: 0,
            namespaces: BTreeSet::from([object.key.name.clone()]),
            subcharts: BTreeMap::new(),
        })
    })
}

/// Returns the install that an object belongs to. The most specific mark decides, because tools that use kubectl leave its annotation as
/// well.
fn identify(
    object: &MarkedObject,
    owners: &BTreeSet<String>,
    kops: &BTreeMap<String, Option<String>>,
) -> Option<InstallIdentity> {
    let label = |name: &str| object.labels.get(name);
    let annotation = |name: &str| object.annotations.get(name);
    let here = || object.key.namespace.clone();
    let app = || {
        let named = APP_LABELS.iter().find_map(|name| label(name));
        named.unwrap_or(&object.key.name).clone()
    };
    if let Some(owner) = label(LABEL_OWNER) {
        let installation = annotation(ANNOTATION_INSTALLATION)?;
        let (namespace, name) = installation.split_once('/')?;
        // Create-only objects stay on purpose when their installation is removed.
        let is_kept = label(LABEL_MODE).is_some_and(|mode| mode == MODE_ENSURE_EXISTS);
        let is_gone = !owners.contains(owner) && !is_kept;
        return is_gone.then(|| (FoundBy::Orphan, Some(namespace.to_owned()), name.to_owned()));
    }
    if let Some(name) = annotation(HELM_NAME) {
        let namespace = annotation(HELM_NAMESPACE).cloned();
        return Some((FoundBy::Helm, namespace.or_else(here), name.clone()));
    }
    if let Some(name) = label(KAPP_APP) {
        return Some((FoundBy::Kapp, None, name.clone()));
    }
    if let Some(name) = label("addon.kops.k8s.io/name") {
        let namespace = kops.get(name).cloned().unwrap_or_else(here);
        return Some((FoundBy::Kops, namespace, name.clone()));
    }
    if label(LABEL_MODE).is_some() {
        return Some((FoundBy::AddonManager, here(), app()));
    }
    annotation(LAST_APPLIED).map(|_| (FoundBy::Kubectl, here(), app()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(
        kind: &str,
        name: &str,
        labels: &[(&str, &str)],
        annotations: &[(&str, &str)],
    ) -> MarkedObject {
        let map = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        MarkedObject {
            key: ObjectKey {
                kind: kind.to_owned(),
                namespace: (kind != "Namespace").then(|| "shop".to_owned()),
                name: name.to_owned(),
                ..ObjectKey::default()
            },
            labels: map(labels),
            annotations: map(annotations),
        }
    }

    /// Objects of every tool, and one without a mark.
    fn objects() -> Vec<MarkedObject> {
        let last = (LAST_APPLIED, "");
        let helm = [
            ("meta.helm.sh/release-name", "web"),
            ("meta.helm.sh/release-namespace", "monitoring"),
            last,
        ];
        let noted =
            r#"{"version":"1.2.0","channel":"https://example.org/index.yaml","id":"k8s-1.30"}"#;
        vec![
            object(
                "ConfigMap",
                "a",
                &[("helm.sh/chart", "web-server-1.0.0")],
                &helm,
            ),
            object("Service", "b", &[], &helm),
            object("ConfigMap", "c", &[("kapp.k14s.io/app", "17")], &[last]),
            object(
                "Namespace",
                "kube-system",
                &[],
                &[
                    ("addons.k8s.io/dns.example", noted),
                    ("addons.k8s.io/bad", "{"),
                ],
            ),
            object(
                "ConfigMap",
                "d",
                &[("addon.kops.k8s.io/name", "dns.example")],
                &[],
            ),
            object(
                "ConfigMap",
                "e",
                &[
                    ("addonmanager.kubernetes.io/mode", "Reconcile"),
                    ("k8s-app", "dns"),
                ],
                &[last],
            ),
            object(
                "ConfigMap",
                "f",
                &[
                    ("app.kubernetes.io/name", "till"),
                    ("app.kubernetes.io/version", "3"),
                ],
                &[last],
            ),
            object(
                "Service",
                "g",
                &[("app.kubernetes.io/name", "till")],
                &[last],
            ),
            object(
                "ConfigMap",
                "h",
                &[(LABEL_OWNER, "gone")],
                &[(ANNOTATION_INSTALLATION, "kubectl-addons/old")],
            ),
            object(
                "ConfigMap",
                "i",
                &[(LABEL_OWNER, "there")],
                &[(ANNOTATION_INSTALLATION, "kubectl-addons/new"), last],
            ),
            object("ConfigMap", "j", &[], &[]),
            object(
                "ConfigMap",
                "k",
                &[(LABEL_OWNER, "gone"), (LABEL_MODE, MODE_ENSURE_EXISTS)],
                &[(ANNOTATION_INSTALLATION, "kubectl-addons/kept"), last],
            ),
        ]
    }

    #[test]
    fn a_chart_may_have_dashes_in_name_and_version() {
        for (label, expected) in [
            ("web-1.0.0", Some(("web", "1.0.0"))),
            ("web-server-1.0.0-rc.1", Some(("web-server", "1.0.0-rc.1"))),
            ("web-v2.0.0", Some(("web", "v2.0.0"))),
            ("k8s-7-web-1.2.3", Some(("k8s-7-web", "1.2.3"))),
            ("web-latest", Some(("web", "latest"))),
            ("web", None),
        ] {
            assert_eq!(parse_chart_label(label), expected, "{label}");
        }
    }

    #[test]
    fn the_most_precise_mark_decides() {
        let objects = objects();
        let owners = BTreeSet::from(["there".to_owned()]);
        let found = find_installs(&objects, &owners);
        let lines = found.iter().map(|one| {
            let version = one.version.as_deref().unwrap_or("-");
            let namespace = one.namespace.as_deref().unwrap_or("-");
            format!(
                "{} {} {namespace} {version} {}",
                one.found_by.word(),
                one.name,
                one.objects
            )
        });
        assert_eq!(
            lines.collect::<Vec<_>>(),
            [
                "kops dns.example kube-system 1.2.0 1",
                "Helm web monitoring 1.0.0 2",
                "kapp 17 - - 1",
                "addon-manager dns shop - 1",
                "orphan old kubectl-addons - 1",
                "kubectl till shop 3 2",
            ]
        );
        assert_eq!(
            found[0].channel.as_deref(),
            Some("https://example.org/index.yaml")
        );
        assert_eq!(found[1].chart.as_deref(), Some("web-server"));
        assert!(found[1].is_in_namespace("shop") && !found[1].is_in_namespace("elsewhere"));
    }
}
