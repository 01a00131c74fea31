//! The core set of a cluster: the add-ons that it must have, according to rules and a list (semantics 14.4).
//!
//! | module | contents |
//! |---|---|
//! | [`document`] | the contents of the two ConfigMaps |
//! | [`change`] | how the records of a cluster change with its core set |
//! | [`rollout`] | which clusters a change reaches first |
//!
//! Unknown never means "none": if a condition cannot be evaluated, or one of the two ConfigMaps is missing or malformed, the whole set of
//! that cluster is unknown, and nothing of it changes. Only `[]` means none.

pub mod change;
pub mod document;
pub mod rollout;

use std::collections::{BTreeMap, BTreeSet};

pub use document::{CoreAddon, CoreDocument, CoreRule, ListedAddon};

use common::api::names::{CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, installation_name};
use common::expression::ExpressionError;
use common::expression::profile::{self, Profile};
use common::pin::OtherCluster;
use document::KEY_RULES;

/// The reason why the core set of a cluster is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCoreSet {
    /// A ConfigMap, or its key, is missing or empty.
    #[error(
        "ConfigMap {config_map}: data[{key}]: it is missing or empty; write [] where there are no core add-ons"
    )]
    Missing {
        /// The ConfigMap.
        config_map: &'static str,
        /// The key.
        key: &'static str,
    },
    /// The text is not valid.
    #[error("ConfigMap {config_map}: data[{key}]{path}: {problem}")]
    Malformed {
        /// The ConfigMap.
        config_map: &'static str,
        /// The key.
        key: &'static str,
        /// The place in the text: `[3].when`, or `, line 4`.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The condition of a rule has no result.
    #[error("ConfigMap {CORE_ADDON_RULES}: data[{KEY_RULES}]: rule {rule}: when: {problem}")]
    Condition {
        /// The name of the rule.
        rule: String,
        /// The error of the condition.
        problem: ExpressionError,
    },
    /// Two sources list an add-on differently.
    #[error(
        "core add-on {addon}: {} and {} differ in version, catalogue, digest or values",
        one,
        other
    )]
    Differ {
        /// The add-on.
        addon: String,
        /// The first source.
        one: CoreAddonSource,
        /// The second source.
        other: CoreAddonSource,
    },
    /// The conditions could not be evaluated at all.
    #[error(
        "ConfigMap {CORE_ADDON_RULES}: data[{KEY_RULES}]: the conditions could not be evaluated"
    )]
    NotEvaluated,
    /// Evaluating the conditions took too long.
    #[error(
        "ConfigMap {CORE_ADDON_RULES}: data[{KEY_RULES}]: evaluating the conditions took longer than {seconds}s"
    )]
    TimedOut {
        /// The time limit.
        seconds: u64,
    },
    /// The facts are those of another cluster than the one in which the core add-ons are installed.
    #[error(transparent)]
    OtherCluster(Box<OtherCluster>),
}

impl UnknownCoreSet {
    /// Returns the ConfigMap that an administrator has to look at.
    #[must_use]
    pub fn config_map(&self) -> &'static str {
        match self {
            Self::Missing { config_map, .. } | Self::Malformed { config_map, .. } => config_map,
            Self::Differ { .. }
            | Self::Condition { .. }
            | Self::NotEvaluated
            | Self::TimedOut { .. }
            | Self::OtherCluster(_) => CORE_ADDON_RULES,
        }
    }
}

/// A source that lists core add-ons.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoreAddonSource {
    /// The rule with this name.
    Rule(String),
    /// The list of the cluster's administrators.
    Custom,
}

impl std::fmt::Display for CoreAddonSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule(name) => write!(f, "rule {name}"),
            Self::Custom => write!(f, "ConfigMap {CUSTOM_CORE_ADDONS}"),
        }
    }
}

/// What one rule, or the list, decides about one add-on in one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreAddonDecision {
    /// The add-on, as listed.
    pub addon: CoreAddon,
    /// The source that lists it.
    pub source: CoreAddonSource,
    /// The condition; `None` for the list, which has none.
    pub when: Option<String>,
    /// Whether the condition holds.
    pub holds: Result<bool, ExpressionError>,
}

/// The core add-ons of a cluster, by the names of their installations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreSet {
    /// Each add-on, with all sources that list it.
    pub addons: BTreeMap<String, (CoreAddon, Vec<CoreAddonSource>)>,
    /// The names of installations whose add-ons are in rules with conditions that do not hold for this cluster, or in the list for other
    /// clusters.
    pub unmet: BTreeSet<String>,
}

/// Evaluates every rule and the list for a cluster, in their order.
#[must_use]
pub fn decide(document: &CoreDocument, profile: &Profile) -> Vec<CoreAddonDecision> {
    let mut decisions = Vec::new();
    for rule in &document.rules {
        let holds = profile::compile(&rule.when).and_then(|when| profile.evaluate(&when));
        decisions.extend(rule.addons.iter().map(|addon| CoreAddonDecision {
            addon: addon.clone(),
            source: CoreAddonSource::Rule(rule.name.clone()),
            when: Some(rule.when.clone()),
            holds: holds.clone(),
        }));
    }
    decisions.extend(document.custom.iter().map(|listed| CoreAddonDecision {
        addon: listed.addon.clone(),
        source: CoreAddonSource::Custom,
        when: None,
        holds: Ok(listed.is_for(profile)),
    }));
    decisions
}

impl CoreSet {
    /// Builds the set from decisions.
    ///
    /// # Errors
    /// [`UnknownCoreSet::Condition`] for the first condition without a result; [`UnknownCoreSet::Differ`].
    pub fn from_decisions(decisions: &[CoreAddonDecision]) -> Result<Self, UnknownCoreSet> {
        let mut set = Self::default();
        for decision in decisions {
            let holds = decision.holds.clone();
            let holds = holds.map_err(|problem| UnknownCoreSet::Condition {
                rule: match &decision.source {
                    CoreAddonSource::Rule(name) => name.clone(),
                    CoreAddonSource::Custom => String::new(),
                },
                problem,
            })?;
            let name = installation_name(&decision.addon.name);
            if !holds {
                set.unmet.insert(name);
                continue;
            }
            let (listed, sources) = set
                .addons
                .entry(name)
                .or_insert_with(|| (decision.addon.clone(), Vec::new()));
            if let Some(first) = sources.first().filter(|_| *listed != decision.addon) {
                return Err(UnknownCoreSet::Differ {
                    addon: listed.name.clone(),
                    one: first.clone(),
                    other: decision.source.clone(),
                });
            }
            sources.push(decision.source.clone());
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests;
