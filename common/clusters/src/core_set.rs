//! The core set of a cluster: the add-ons that it has to have, by rules and by a list (semantics 14).
//!
//! | module | what it holds |
//! |---|---|
//! | [`document`] | what the two ConfigMaps say |
//! | [`expression`] | the conditions of rules |
//! | [`profile`] | the facts of a cluster that conditions read |
//! | [`change`] | what becomes of the records of a cluster |
//! | [`rollout`] | which clusters a change reaches first |
//!
//! What is not known is never "none": where one condition cannot be evaluated, or one of the two is missing or malformed, the whole
//! set of that cluster is unknown, and nothing of it changes. Only `[]` means none.

pub mod change;
pub mod document;
pub mod expression;
pub mod profile;
pub mod rollout;

use std::collections::{BTreeMap, BTreeSet};

pub use document::{CoreAddon, CoreDocument, CoreRule};
pub use expression::ExpressionError;
pub use profile::Profile;

use common::api::names::{CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, installation_name};
use common::pin::OtherCluster;
use document::KEY_RULES;

/// Why the core set of a cluster is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
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
    /// The text is not what it has to be.
    #[error("ConfigMap {config_map}: data[{key}]{path}: {problem}")]
    Malformed {
        /// The ConfigMap.
        config_map: &'static str,
        /// The key.
        key: &'static str,
        /// Where in it: `[3].when`, or `, line 4`.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// The condition of a rule has no answer.
    #[error("ConfigMap {CORE_ADDON_RULES}: data[{KEY_RULES}]: rule {rule}: when: {problem}")]
    Condition {
        /// Name of the rule.
        rule: String,
        /// Why.
        problem: ExpressionError,
    },
    /// Two of them want other things of an add-on.
    #[error(
        "core add-on {addon}: {} and {} differ in version, catalogue, digest or values",
        one,
        other
    )]
    Differ {
        /// The add-on.
        addon: String,
        /// Who lists it.
        one: Source,
        /// Who else.
        other: Source,
    },
    /// The conditions could not be evaluated at all.
    #[error(
        "ConfigMap {CORE_ADDON_RULES}: data[{KEY_RULES}]: the conditions could not be evaluated"
    )]
    NotEvaluated,
    /// The conditions took too long.
    #[error(
        "ConfigMap {CORE_ADDON_RULES}: data[{KEY_RULES}]: evaluating the conditions took longer than {seconds}s"
    )]
    TimedOut {
        /// The bound.
        seconds: u64,
    },
    /// The facts are those of another cluster than the one that its core add-ons are installed in.
    #[error(transparent)]
    OtherCluster(Box<OtherCluster>),
}

impl Unknown {
    /// The ConfigMap that an administrator looks at.
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

/// What lists an add-on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The rule of this name.
    Rule(String),
    /// The list of the cluster's administrators.
    Custom,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Rule(name) => write!(f, "rule {name}"),
            Self::Custom => write!(f, "ConfigMap {CUSTOM_CORE_ADDONS}"),
        }
    }
}

/// What one rule, or the list, says of one add-on in one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The add-on as it is listed.
    pub addon: CoreAddon,
    /// Who lists it.
    pub source: Source,
    /// The condition; `None` for the list, which has none.
    pub when: Option<String>,
    /// Whether it holds.
    pub holds: Result<bool, ExpressionError>,
}

/// The core add-ons of one cluster by the names of their installations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreSet {
    /// Each with everything that lists it.
    pub addons: BTreeMap<String, (CoreAddon, Vec<Source>)>,
    /// The names of installations of add-ons in rules whose conditions do not hold for this cluster.
    pub unmet: BTreeSet<String>,
}

/// What every rule and the list say of every add-on in a cluster, in their order.
#[must_use]
pub fn decide(document: &CoreDocument, profile: &Profile) -> Vec<Decision> {
    let mut decisions = Vec::new();
    for rule in &document.rules {
        let holds = expression::evaluate(&rule.when, profile);
        decisions.extend(rule.addons.iter().map(|addon| Decision {
            addon: addon.clone(),
            source: Source::Rule(rule.name.clone()),
            when: Some(rule.when.clone()),
            holds: holds.clone(),
        }));
    }
    decisions.extend(document.custom.iter().map(|addon| Decision {
        addon: addon.clone(),
        source: Source::Custom,
        when: None,
        holds: Ok(true),
    }));
    decisions
}

impl CoreSet {
    /// The set that decisions make.
    ///
    /// # Errors
    /// [`Unknown::Condition`] for the first condition without an answer; [`Unknown::Differ`].
    pub fn of(decisions: &[Decision]) -> Result<Self, Unknown> {
        let mut set = Self::default();
        for decision in decisions {
            let holds = decision.holds.clone();
            let holds = holds.map_err(|problem| Unknown::Condition {
                rule: match &decision.source {
                    Source::Rule(name) => name.clone(),
                    Source::Custom => String::new(),
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
                return Err(Unknown::Differ {
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
