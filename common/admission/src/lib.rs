//! Defaults and verdicts: the webhook's answers, which the plugin also computes before it asks the API server.
//!
//! | module | what it holds |
//! |---|---|
//! | [`review`] | the AdmissionReview as the API server sends and wants it |
//! | [`answer`] | from a review to its answer: what each path of the webhook does |
//! | [`mutate`] | which values are filled in, as a minimal patch (semantics 7, 8, 10) |
//! | [`writer`] | who wrote an installation (semantics 19) |
//! | [`document`] | a catalogue as it is written in a file, read as far as it can be |
//! | [`core_set`] | what core sets follow from (semantics 14) |
//! | [`validate`] | which rules judge which request (semantics 4, 18) |
//! | [`rules`] | the rules: one function a rule, one module an object kind |
//! | [`policy`] | what policies of administrators allow (semantics 19) |
//! | [`listed`] | what is known of a catalogue, by the names of its add-ons |
//! | [`recorded`] | what is known of an installation |
//! | [`object`] | objects without what no verdict reads |
//! | [`marks`] | the metadata that guards need |
//! | [`trust`] | who may do what to core add-ons and their guards, as a table |
//! | [`verdict`] | problems, warnings, and the denial that combines them |
//!
//! Everything is a pure function of the request and [`Facts`]. The API server may send one request several times
//! (retries, reinvocation, dry run), so the same input has the same answer.

#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod answer;
pub mod core_set;
pub mod document;
pub mod listed;
pub mod marks;
pub mod mutate;
pub mod object;
pub mod policy;
pub mod recorded;
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

use self::listed::CatalogueFacts;
use self::recorded::InstallationFacts;
use common::api::catalogue::AddonCatalogue;
use common::api::names;
use common::api::policy::AddonPolicy;
use common::catalogue::select::ClusterFacts;

/// The facts for verdicts (semantics 18): nothing is fetched while judging.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The catalogues of the system namespace: no rule reads those of others (semantics 1).
    pub catalogues: Vec<Arc<CatalogueFacts>>,
    /// The installations of all namespaces that are core or refer to catalogues.
    pub installations: Vec<Arc<InstallationFacts>>,
    /// Whether some that are not core are missing: there is no room for more than [`rules::size::RECORDS`].
    pub are_incomplete: bool,
    /// All policies of administrators, by name.
    pub policies: Vec<Arc<AddonPolicy>>,
    /// The system namespace, and those that carry one of our marks or are terminating, by name.
    pub namespaces: BTreeMap<String, NamespaceFacts>,
    /// This cluster; remote ones are judged by the plugin and the loop.
    pub cluster: ClusterFacts,
    /// What the administrator chooses, or knows.
    pub settings: Settings,
}

impl Facts {
    /// Puts a catalogue in the place of the one that has its name, for the verdicts on the next ones.
    pub fn replace(&mut self, catalogue: AddonCatalogue) {
        self.catalogues.retain(|other| {
            let (theirs, ours) = (&other.metadata, &catalogue.metadata);
            theirs.namespace != ours.namespace || theirs.name != ours.name
        });
        self.catalogues.push(Arc::new(catalogue.into()));
    }
}

/// What is known of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Label `kubectl-addons.dev/cluster=local` (semantics 6).
    pub local: bool,
    /// Label `kubectl-addons.dev/kubeconfig-secret`: it stands for another cluster (semantics 6).
    pub remote: bool,
    /// Annotation `kubectl-addons.dev/cluster-deleting=true` (semantics 14).
    pub cluster_deleting: bool,
    /// It has a deletionTimestamp.
    pub terminating: bool,
    /// Annotation `kubectl-addons.dev/kkp-version` (semantics 3).
    pub kkp: Option<semver::Version>,
    /// Its labels, where installations in it are executed: policies select by them.
    pub labels: BTreeMap<String, String>,
}

/// What the administrator chooses, or knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of source catalogues and of this cluster's installations (semantics 1).
    pub system_namespace: String,
    /// Groups that may write core catalogues and core installations.
    pub core_groups: Vec<String>,
    /// Users that may do the same: the loop's ServiceAccount.
    pub core_users: Vec<String>,
}

impl Default for Settings {
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
    /// Whether they may write core catalogues and core installations (semantics 8). `system:masters` is not such a group.
    #[must_use]
    pub fn is_core(&self, settings: &Settings) -> bool {
        settings.core_users.contains(&self.user)
            || self
                .groups
                .iter()
                .any(|group| settings.core_groups.contains(group))
    }

    /// Whether they may write copies of catalogues: the loop, and who brings catalogues to clusters (semantics 1).
    #[must_use]
    pub fn is_distributor(&self, settings: &Settings) -> bool {
        settings.core_users.contains(&self.user)
            || self
                .groups
                .iter()
                .any(|group| group == names::DISTRIBUTOR_GROUP)
    }

    /// Whether they may do what the guards deny (semantics 14).
    #[must_use]
    pub fn may_break_glass(&self) -> bool {
        self.groups
            .iter()
            .any(|group| group == names::BREAK_GLASS_GROUP)
    }
}

impl Facts {
    /// Whether installations of `namespace` are of this cluster, whatever their origin (semantics 6).
    #[must_use]
    pub fn is_local(&self, namespace: &str) -> bool {
        namespace == self.settings.system_namespace
            || self.namespaces.get(namespace).is_some_and(|ns| ns.local)
    }

    /// Whether `namespace` stands for a cluster, this one or another (semantics 6).
    #[must_use]
    pub fn stands_for_cluster(&self, namespace: &str) -> bool {
        self.is_local(namespace) || self.namespaces.get(namespace).is_some_and(|ns| ns.remote)
    }

    /// Whether nothing in `namespace` is guarded any more: it or its cluster is being deleted (semantics 14).
    #[must_use]
    pub fn is_unguarded(&self, namespace: &str) -> bool {
        self.namespaces
            .get(namespace)
            .is_some_and(|ns| ns.terminating || ns.cluster_deleting)
    }

    /// The catalogues that installations can name, in whatever namespace these are: those of the system namespace (semantics 1).
    pub fn named_catalogues(&self) -> impl Iterator<Item = &CatalogueFacts> {
        let system = self.settings.system_namespace.as_str();
        self.catalogues
            .iter()
            .map(Arc::as_ref)
            .filter(move |catalogue| catalogue.metadata.namespace.as_deref() == Some(system))
    }

    /// The source catalogues: in the system namespace, not derived from others (semantics 1).
    pub fn sources(&self) -> impl Iterator<Item = &CatalogueFacts> {
        self.catalogues
            .iter()
            .map(Arc::as_ref)
            .filter(|catalogue| rules::catalogue::is_source(&catalogue.metadata, &self.settings))
    }
}
