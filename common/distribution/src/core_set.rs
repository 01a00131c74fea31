//! The core set of a cluster, from its ConfigMaps and facts, and the records that it asks for (semantics 14.4).

pub mod look;
pub mod progress;
pub mod release;
pub mod restore;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use addons_clusters::core_set::document::{KEY_ADDONS, KEY_ROLLOUT, KEY_RULES, read_rollout};
use addons_clusters::core_set::rollout::CoreRollout;
use addons_clusters::core_set::{
    CoreAddon, CoreAddonDecision, CoreDocument, CoreSet, UnknownCoreSet, decide,
};
use addons_engine::config_map;
use addons_operation::context::Context;
use addons_operation::error::OperationError;
use addons_operation::resolve::choose::choose;
use addons_operation::resolve::resolved::Resolved;
use addons_operation::resolve::{Resolver, verdict};
use common::api::installation::{AddonInstallation, ReconcilePolicy};
use common::api::names::{CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, InstallationName};
use common::catalogue::content::{self, ContentError};
use common::catalogue::select::EntryRequest;
use common::expression::ExpressionError;
use common::expression::profile::Profile;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The time limit for evaluating the conditions of all rules.
const EVALUATION_TIMEOUT: Duration = Duration::from_secs(5);

/// The core set of one cluster.
#[derive(Clone, Debug)]
pub struct ClusterCore {
    /// The decisions on the rules and the list; empty if a ConfigMap cannot be used.
    pub decisions: Vec<CoreAddonDecision>,
    /// The set.
    pub set: Result<CoreSet, UnknownCoreSet>,
}

/// The content of the two ConfigMaps; a field is `None` if its ConfigMap or key is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreSetTexts {
    /// The rules.
    pub rules: Option<String>,
    /// The waves in which a change reaches the clusters.
    pub rollout: Option<String>,
    /// The list.
    pub addons: Option<String>,
}

impl CoreSetTexts {
    /// Reads the ConfigMaps from the system namespace with the client's own rights, in two concurrent requests.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn read(ctx: &Context) -> Result<Self, OperationError> {
        let home = ctx.home().await?;
        let system = &ctx.settings().system_namespace;
        let (rules, addons) = futures::try_join!(
            config_map::get(home, system, CORE_ADDON_RULES),
            config_map::get(home, system, CUSTOM_CORE_ADDONS),
        )?;
        let data =
            |found: Option<ConfigMap>| found.and_then(|found| found.data).unwrap_or_default();
        let (mut rules, mut addons) = (data(rules), data(addons));
        Ok(Self {
            rules: rules.remove(KEY_RULES),
            rollout: rules.remove(KEY_ROLLOUT),
            addons: addons.remove(KEY_ADDONS),
        })
    }

    /// Returns the waves in which a change reaches the clusters.
    ///
    /// # Errors
    /// [`UnknownCoreSet::Malformed`].
    pub fn rollout(&self) -> Result<CoreRollout, UnknownCoreSet> {
        read_rollout(self.rollout.as_deref())
    }

    /// Whether neither the rules nor the list exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.rules.is_none() && self.addons.is_none()
    }
}

impl ClusterCore {
    /// Reads the core set of the cluster of the command. `facts` reads the facts of the cluster; `labels` are those of its namespace. More
    /// than the version is read only if a condition needs it and no ConfigMap states it.
    ///
    /// # Errors
    /// A fact cannot be read: the server does not answer, or the ConfigMap `addon-template-data` cannot be used.
    pub async fn read(
        facts: &Context,
        texts: CoreSetTexts,
        labels: BTreeMap<String, String>,
    ) -> Result<Self, OperationError> {
        let mut profile = Profile {
            labels: Some(labels),
            ..facts.stated_profile().await?
        };
        let mut asked = BTreeSet::new();
        let decided = loop {
            let decided = evaluate_rules(texts.clone(), profile.clone()).await;
            let lacking = decided.iter().flatten().filter_map(|it| match &it.holds {
                Err(ExpressionError::NotKnown { name }) => Some(name.clone()),
                _ => None,
            });
            let lacking: BTreeSet<String> = lacking.filter(|name| !asked.contains(name)).collect();
            if lacking.is_empty() {
                break decided;
            }
            facts.complete_profile(&mut profile, &lacking).await?;
            asked.extend(lacking);
        };
        Ok(match decided {
            Ok(decisions) => Self {
                set: CoreSet::from_decisions(&decisions),
                decisions,
            },
            Err(unknown) => Self {
                decisions: Vec::new(),
                set: Err(unknown),
            },
        })
    }
}

/// Evaluates the rules on a thread of their own, within a time limit. A thread that takes longer ends by itself, because the cost of
/// a condition is limited.
async fn evaluate_rules(
    texts: CoreSetTexts,
    profile: Profile,
) -> Result<Vec<CoreAddonDecision>, UnknownCoreSet> {
    let (send, decided) = oneshot::channel();
    texts.rollout()?;
    let evaluate = move || {
        let document = CoreDocument::read(texts.rules.as_deref(), texts.addons.as_deref());
        let _ = send.send(document.map(|document| decide(&document, &profile)));
    };
    let thread = std::thread::Builder::new();
    if thread.spawn(evaluate).is_err() {
        return Err(UnknownCoreSet::NotEvaluated);
    }
    match timeout(EVALUATION_TIMEOUT, decided).await {
        Ok(Ok(decided)) => decided,
        Ok(Err(_)) => Err(UnknownCoreSet::NotEvaluated),
        Err(_) => Err(UnknownCoreSet::TimedOut {
            seconds: EVALUATION_TIMEOUT.as_secs(),
        }),
    }
}

/// Returns the record that a listed add-on asks for, with the defaults of a new one.
///
/// # Errors
/// No catalogue has the add-on in this version, or no version of it fits the cluster.
pub async fn core_record(
    resolver: &Resolver<'_>,
    name: &InstallationName,
    addon: &CoreAddon,
) -> Result<AddonInstallation, OperationError> {
    let mut resolved = resolve_core(resolver, name, addon).await?;
    verdict::fill_in_defaults(&mut resolved, &resolver.facts)?;
    Ok(resolved.wanted)
}

/// As [`core_record`], before defaults are filled in.
async fn resolve_core(
    resolver: &Resolver<'_>,
    name: &InstallationName,
    addon: &CoreAddon,
) -> Result<Resolved, OperationError> {
    let catalogue = resolver.ctx.catalogue(&resolver.offer).await?;
    let request = EntryRequest {
        addon: &addon.name,
        version: addon.version.as_deref(),
        id: None,
        catalogue: addon.catalogue.as_deref(),
    };
    let rules = resolver.ctx.settings().rules;
    let guarded = content::select_guarded(&catalogue, &addon.name, addon.digest.as_deref());
    let chosen = choose(&guarded, &request, &resolver.facts.cluster, rules);
    let (entry, selection) = chosen.map_err(|error| {
        // The error names an entry that other catalogues have, so that it can be listed.
        match choose(&catalogue, &request, &resolver.facts.cluster, rules) {
            Ok((entry, _)) => OperationError::from(ContentError::unguarded(&entry)),
            Err(_) => error.into(),
        }
    })?;
    let mut resolved = Resolved::new(name.clone(), None, entry, selection.rules);
    resolved.pin();
    let spec = &mut resolved.wanted.spec;
    spec.core_addon = true;
    spec.reconcile = ReconcilePolicy::Ensure;
    spec.values = addon.values.clone().map(Value::Object);
    resolved.accept_content()?;
    Ok(resolved)
}

#[cfg(test)]
mod tests;
