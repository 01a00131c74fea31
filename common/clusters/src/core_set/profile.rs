//! The facts of a cluster that the conditions of core rules read.

use std::collections::BTreeMap;

use serde_json::Value;

/// The variables of conditions and their meaning. The page about core add-ons shows this table.
pub const VARIABLES: [(&str, &str); 6] = [
    ("namespace", "the namespace that stands for the cluster"),
    ("labels", "the labels of that namespace"),
    ("version", "the version of Kubernetes without v: 1.36.3"),
    (
        "provider",
        "the cloud provider as KKP spells it: aws, gcp, hetzner",
    ),
    ("cni", "the network plugin: canal, cilium, calico, flannel"),
    ("cniVersion", "the version of the network plugin"),
];

/// The facts of a cluster. The variable of an unknown fact (`None`) does not exist, so a condition that needs it has no result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Whether it is the cluster with the rules and the list.
    pub is_home: bool,
    /// `namespace`.
    pub namespace: String,
    /// `labels`.
    pub labels: BTreeMap<String, String>,
    /// `version`.
    pub version: Option<String>,
    /// `provider`.
    pub provider: Option<String>,
    /// `cni`.
    pub cni: Option<String>,
    /// `cniVersion`.
    pub cni_version: Option<String>,
}

impl Profile {
    /// Reads the profile from template data: the facts of the cluster, and what its administrators add to them.
    #[must_use]
    pub fn from_template_data(
        namespace: &str,
        labels: BTreeMap<String, String>,
        is_home: bool,
        data: &Value,
    ) -> Self {
        let known = |pointer: &str| {
            let text = data.pointer(pointer)?.as_str()?;
            (!text.is_empty()).then(|| text.to_owned())
        };
        Self {
            is_home,
            namespace: namespace.to_owned(),
            labels,
            version: known("/Cluster/Version"),
            provider: known("/Cluster/CloudProviderName"),
            cni: known("/Cluster/CNIPlugin/Type"),
            cni_version: known("/Cluster/CNIPlugin/Version"),
        }
    }

    /// Returns a profile of which every fact is known. Conditions are checked against it.
    #[must_use]
    pub fn sample() -> Self {
        let some = |text: &str| Some(text.to_owned());
        Self {
            is_home: false,
            namespace: "sample".to_owned(),
            labels: BTreeMap::new(),
            version: some("1.36.3"),
            provider: some("aws"),
            cni: some("cilium"),
            cni_version: some("1.19.4"),
        }
    }

    /// Returns the known facts that are text, by the names of their variables.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let known = [
            ("namespace", Some(&self.namespace)),
            ("version", self.version.as_ref()),
            ("provider", self.provider.as_ref()),
            ("cni", self.cni.as_ref()),
            ("cniVersion", self.cni_version.as_ref()),
        ];
        let known = known.into_iter();
        known.filter_map(|(name, text)| Some((name, text?.as_str())))
    }
}
