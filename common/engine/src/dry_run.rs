//! Dry runs of steps: what the server would answer.

use std::sync::Arc;

use serde_json::Value;

use addons_plan::{InstallationPlan, Step, migration};
use common::api::names;
use common::values::mask::SecretMask;

use super::address::Collection;
use super::apply::{apply_object, fitting, settle};
use super::cluster::Cluster;
use super::diff::former;
use super::error::EngineError;
use super::meta::PartialObject;
use super::request::{ApiCall, JSON, METADATA, ServerAnswer};

/// Sends dry runs for the steps of a plan.
pub(super) struct PlanDryRun<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) manager: String,
    mask: &'a SecretMask,
}

impl<'a> PlanDryRun<'a> {
    /// Returns a dry run for the steps of this plan.
    pub(super) fn new(cluster: &'a Cluster, plan: &'a InstallationPlan) -> Self {
        Self {
            cluster,
            manager: names::field_manager(&plan.installation.namespace, &plan.installation.name),
            mask: &plan.mask,
        }
    }

    /// Checks whether the server would create an object; the answer is not parsed.
    pub(super) async fn create(&self, step: &Step) -> Result<(), EngineError> {
        let call = apply_object(step, &step.object, &self.manager, METADATA)?;
        let call = call.query("dryRun", "All");
        self.cluster.send::<PartialObject>(call).await.map(drop)
    }

    /// Returns the result of a step on the server, given its live object. Fields that are left to others are omitted, as in the apply, and
    /// fields that the apply claims are removed.
    pub(super) async fn apply(
        &self,
        step: &Step,
        live: Option<&Value>,
    ) -> Result<ServerAnswer<Value>, EngineError> {
        let definition = live.filter(|_| step.target.key.is_definition());
        let lost = definition.map(|live| migration::find_lost_versions(live, &step.object));
        let Some(lost) = lost.filter(|lost| !lost.is_empty()) else {
            return self.apply_fitted(step, live).await;
        };
        // The lost versions leave the status before the apply, which a dry run cannot do.
        let step = Step {
            object: Arc::new(migration::add_lost_versions(&step.object, &lost)),
            ..step.clone()
        };
        let mut answer = self.apply_fitted(&step, live).await?;
        migration::remove_lost_versions(&mut answer.object, &lost);
        Ok(answer)
    }

    async fn apply_fitted(
        &self,
        step: &Step,
        live: Option<&Value>,
    ) -> Result<ServerAnswer<Value>, EngineError> {
        let Some(live) = live else {
            return self.send(step, &step.object, &Value::Null).await;
        };
        let taken_over =
            former::managed_fields_after_takeover(step, live, &self.manager).map(|entries| {
                let mut live = live.clone();
                live["metadata"]["managedFields"] = entries.into();
                live
            });
        let live = taken_over.as_ref().unwrap_or(live);
        let fitted = fitting::fit_to_live(step, live, &self.manager, self.mask)?;
        if fitted.leftovers.is_empty() {
            return self.send(step, &fitted.object, live).await;
        }
        // A dry run cannot first claim fields. The server evaluates the object with them, then the object that the apply leaves.
        let bridged = Arc::new(fitted.bridge(live));
        let mut answer = self.send(step, &bridged, live).await?;
        fitted.apply_bridged_groups(&mut answer.object);
        let target = &step.target;
        let replace = ApiCall::replace(&Collection::from_target(target), &target.key.name, JSON)
            .query("dryRun", "All")
            .query("fieldManager", &self.manager)
            .body(answer.object.to_string().into_bytes());
        match self.cluster.send::<Value>(replace).await {
            Ok(replaced) => answer.object = replaced.object,
            // If the replacement is not allowed, the object is shown without the defaults that replace these fields.
            Err(EngineError::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(answer)
    }

    /// Sends a dry run of an object. `live`: null if it cannot be read.
    async fn send(
        &self,
        step: &Step,
        object: &Arc<Value>,
        live: &Value,
    ) -> Result<ServerAnswer<Value>, EngineError> {
        let send = async |object: &Arc<Value>, force: bool| {
            let call = apply_object(step, object, &self.manager, JSON)?.query("dryRun", "All");
            let call = if force {
                call.query("force", "true")
            } else {
                call
            };
            self.cluster.send::<Value>(call).await
        };
        let policy = &step.policy;
        // The fields of a former owner become ours before the apply.
        let force = policy.takes_all() || policy.inherited.is_some() || policy.adopted.is_some();
        let causes = match send(object, force).await {
            Err(EngineError::FieldConflict { causes, .. }) => causes,
            answer => return answer,
        };
        let settled = settle::decide(step, live, &causes, self.mask)?;
        let object = settle::without_left_fields(step, object, &settled)?;
        send(&Arc::new(object), true).await
    }
}
