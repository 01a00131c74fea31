//! Defaults and verdicts: the answers of the webhook, which the plugin also computes before it calls the API server.
//!
//! | module | contents |
//! |---|---|
//! | [`review`] | the AdmissionReview, as the API server sends it and expects its answer |
//! | [`answer`] | what each path of the webhook does with a review |
//! | [`mutate`] | defaults, as a minimal patch (semantics 7, 8, 10) |
//! | [`writer`] | who wrote an installation (semantics 19.3) |
//! | [`document`] | a catalogue in a file, read as far as possible |
//! | [`core_set`] | the ConfigMaps that core sets are computed from (semantics 14.4) |
//! | [`validate`] | which rules apply to which request (semantics 4, 18) |
//! | [`rules`] | the rules: one function per rule, one module per kind of object |
//! | [`policy`] | AddonPolicies (semantics 19) |
//! | [`catalogue_facts`] | facts about a catalogue, by the names of its add-ons |
//! | [`installation_facts`] | facts about an installation |
//! | [`object`] | objects without the parts that no verdict reads |
//! | [`marks`] | the metadata that guards need |
//! | [`trust`] | who may do what to core add-ons and their guards, as a table |
//! | [`verdict`] | problems, warnings, and the denial that combines them |
//!
//! Everything is a pure function of the request and [`AdmissionFacts`]. The API server may send a request several times (retries, reinvocation,
//! dry run) and gets the same answer each time.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod answer;
pub mod catalogue_facts;
pub mod core_set;
pub mod document;
pub mod installation_facts;
pub mod marks;
pub mod mutate;
pub mod object;
pub mod policy;
pub mod review;
pub mod rules;
pub mod trust;
pub mod validate;
pub mod verdict;
pub mod writer;

#[cfg(test)]
pub(crate) mod fixtures;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::catalogue_facts::CatalogueFacts;
use self::installation_facts::InstallationFacts;
use common::api::catalogue::AddonCatalogue;
use common::api::names;
use common::api::policy::AddonPolicy;
use common::catalogue::select::ClusterVersions;

/// The facts that verdicts are based on (semantics 18.1). Nothing is fetched during validation.
#[derive(Clone, Debug, Default)]
pub struct AdmissionFacts {
    /// The catalogues of the system namespace. No rule reads those of other namespaces (semantics 1.1).
    pub catalogues: Vec<Arc<CatalogueFacts>>,
    /// The installations of all namespaces that are core or refer to a catalogue.
    pub installations: Vec<Arc<InstallationFacts>>,
    /// Whether non-core installations are missing, because at most [`rules::size::RECORDS`] of them are kept.
    pub are_incomplete: bool,
    /// All AddonPolicies, by name.
    pub policies: Vec<Arc<AddonPolicy>>,
    /// The system namespace, and namespaces that carry one of our marks or are terminating, by name.
    pub namespaces: BTreeMap<String, NamespaceFacts>,
    /// This cluster. The plugin and the loop validate installations in other clusters.
    pub cluster: ClusterVersions,
    /// The settings of the administrator.
    pub settings: AdmissionSettings,
}

impl AdmissionFacts {
    /// Adds a catalogue in place of the one with its name, so that the next verdicts take it into account.
    pub fn replace_catalogue(&mut self, catalogue: AddonCatalogue) {
        self.catalogues.retain(|other| {
            let (theirs, ours) = (&other.metadata, &catalogue.metadata);
            theirs.namespace != ours.namespace || theirs.name != ours.name
        });
        self.catalogues.push(Arc::new(catalogue.into()));
    }
}

/// Facts about a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Label `kubectl-addons.dev/cluster=local` (semantics 6.1).
    pub local: bool,
    /// Label `kubectl-addons.dev/kubeconfig-secret`: the namespace stands for another cluster (semantics 6.1).
    pub remote: bool,
    /// Annotation `kubectl-addons.dev/cluster-deleting=true` (semantics 14.1).
    pub cluster_deleting: bool,
    /// Whether it has a deletionTimestamp.
    pub terminating: bool,
    /// Annotation `kubectl-addons.dev/kkp-version` (semantics 3).
    pub kkp: Option<semver::Version>,
    /// The labels, by which policies select namespaces. Only known for namespaces in which installations are executed.
    pub labels: BTreeMap<String, String>,
}

/// The settings of the administrator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionSettings {
    /// The namespace of source catalogues and of this cluster's installations (semantics 1.1).
    pub system_namespace: String,
    /// Groups that may write core catalogues and core installations.
    pub core_groups: Vec<String>,
    /// Users that may do the same, such as the loop's ServiceAccount.
    pub core_users: Vec<String>,
}

impl Default for AdmissionSettings {
    fn default() -> Self {
        Self {
            system_namespace: names::SYSTEM_NAMESPACE.to_owned(),
            core_groups: vec![names::CORE_GROUP.to_owned()],
            core_users: Vec::new(),
        }
    }
}

/// The requester.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requester {
    /// User name.
    pub user: String,
    /// Groups.
    pub groups: Vec<String>,
}

impl Requester {
    /// Returns whether the requester may write core catalogues and core installations (semantics 8). `system:masters` is not a core
    /// group.
    #[must_use]
    pub fn is_core(&self, settings: &AdmissionSettings) -> bool {
        settings.core_users.contains(&self.user)
            || self
                .groups
                .iter()
                .any(|group| settings.core_groups.contains(group))
    }

    /// Returns whether the requester may write copies of catalogues, as the loop and the distributor group may (semantics 1.2).
    #[must_use]
    pub fn is_distributor(&self, settings: &AdmissionSettings) -> bool {
        settings.core_users.contains(&self.user)
            || self
                .groups
                .iter()
                .any(|group| group == names::DISTRIBUTOR_GROUP)
    }

    /// Returns whether the requester may do what the guards deny (semantics 14.11).
    #[must_use]
    pub fn may_break_glass(&self) -> bool {
        self.groups
            .iter()
            .any(|group| group == names::BREAK_GLASS_GROUP)
    }
}

impl AdmissionFacts {
    /// Returns whether `namespace` stands for this cluster (semantics 6.1).
    #[must_use]
    pub fn is_local(&self, namespace: &str) -> bool {
        namespace == self.settings.system_namespace
            || self.namespaces.get(namespace).is_some_and(|ns| ns.local)
    }

    /// Returns whether `namespace` stands for a cluster, this one or another (semantics 6.1).
    #[must_use]
    pub fn stands_for_cluster(&self, namespace: &str) -> bool {
        self.is_local(namespace) || self.namespaces.get(namespace).is_some_and(|ns| ns.remote)
    }

    /// Returns whether nothing in `namespace` is guarded any more, because it or its cluster is being deleted (semantics 14.1).
    #[must_use]
    pub fn is_unguarded(&self, namespace: &str) -> bool {
        self.namespaces
            .get(namespace)
            .is_some_and(|ns| ns.terminating || ns.cluster_deleting)
    }

    /// The catalogues that installations of any namespace can refer to: those of the system namespace (semantics 1.1).
    pub fn named_catalogues(&self) -> impl Iterator<Item = &CatalogueFacts> {
        let system = self.settings.system_namespace.as_str();
        self.catalogues
            .iter()
            .map(Arc::as_ref)
            .filter(move |catalogue| catalogue.metadata.namespace.as_deref() == Some(system))
    }

    /// The source catalogues: those of the system namespace that are not copies (semantics 1.1).
    pub fn sources(&self) -> impl Iterator<Item = &CatalogueFacts> {
        self.catalogues
            .iter()
            .map(Arc::as_ref)
            .filter(|catalogue| rules::catalogue::is_source(&catalogue.metadata, &self.settings))
    }
}
