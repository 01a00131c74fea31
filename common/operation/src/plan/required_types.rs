//! `requiredResourceTypes`: types that the cluster has to serve before an add-on can be planned (semantics 17.7).

use std::time::{Duration, Instant};

use addons_engine::required;
use addons_plan::brought::DefinedTypes;
use common::api::catalogue::ResourceType;
use common::api::names::InstallationName;
use common::manifest::Manifest;

use crate::context::Context;
use crate::error::{NotServed, OperationError};
use crate::event::{Activity, Finding, OperationEvent};
use crate::resolve::resolved::Resolved;

/// What an add-on with required types waits for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AwaitedTypes {
    /// Other add-ons of the command that define some of the types, and so come first.
    pub(crate) first: Vec<InstallationName>,
    /// Types that other add-ons of the command may bring while they run, with an operator or with helm: the operation waits for them.
    pub(crate) types: Vec<ResourceType>,
}

/// The types that the add-ons of one command define, and how long to wait for the others.
#[derive(Debug)]
pub(crate) struct RequiredTypes {
    brought: Vec<(InstallationName, DefinedTypes)>,
    /// `None` for a plan that is only shown.
    timeout: Option<Duration>,
    begun: Instant,
}

impl RequiredTypes {
    /// Collects the types from the objects of each add-on.
    pub(crate) fn new<'a>(
        addons: impl Iterator<Item = (&'a InstallationName, &'a [Manifest])>,
        timeout: Option<Duration>,
    ) -> Self {
        let brought = addons.map(|(name, manifests)| {
            let objects = manifests.iter().map(|manifest| &*manifest.object);
            (name.clone(), DefinedTypes::from_objects(objects))
        });
        Self {
            brought: brought.collect(),
            timeout,
            begun: Instant::now(),
        }
    }

    /// Waits until the cluster serves the types that an add-on requires, unless another add-on of the command could bring them: that is not
    /// applied before the plan is made. For a plan that is only shown, missing types are a finding instead, because the plan may differ
    /// once the types are served.
    ///
    /// # Errors
    /// [`NotServed`]; the server cannot be reached.
    pub(crate) async fn wait_for(
        &self,
        ctx: &Context,
        resolved: &Resolved,
    ) -> Result<AwaitedTypes, OperationError> {
        let template = &resolved.entry.version.template;
        let mut types = template.required_resource_types.clone();
        let mut awaited = AwaitedTypes::default();
        types.retain(|wanted| {
            let mut bringing = self
                .brought
                .iter()
                .filter(|(_, brought)| brought.serves(wanted));
            let Some((name, _)) = bringing.clone().next() else {
                return true;
            };
            // An add-on that defines a type itself does not wait for others that define it.
            if !bringing.any(|(name, _)| *name == resolved.name) {
                awaited.first.push(name.clone());
            }
            false
        });
        // Most add-ons require no types, and no request is sent.
        if !types.is_empty() {
            awaited.types = self.wait(ctx, &resolved.name.name, &types).await?;
        }
        Ok(awaited)
    }

    /// Returns the types that the operation waits for later.
    async fn wait(
        &self,
        ctx: &Context,
        addon: &str,
        types: &[ResourceType],
    ) -> Result<Vec<ResourceType>, OperationError> {
        let cluster = ctx.cluster().await?;
        let addon = addon.to_owned();
        let missing = required::find_missing(cluster, types).await?;
        let timeout = match self.timeout {
            _ if missing.is_empty() => return Ok(missing),
            None => {
                ctx.report_finding(Finding::TypesNotServed { addon, missing });
                return Ok(Vec::new());
            }
            Some(_) if self.brought.len() > 1 => return Ok(missing),
            Some(timeout) => timeout,
        };
        let work = |missing: &[ResourceType]| Activity::Types {
            addon: addon.clone(),
            missing: missing.to_vec(),
        };
        let report = |missing: &[ResourceType]| ctx.emit(OperationEvent::Began(work(missing)));
        let left = timeout.saturating_sub(self.begun.elapsed());
        let missing = match left.is_zero() {
            true => missing,
            false => {
                let missing = required::wait(cluster, types, left, &report).await;
                ctx.emit(OperationEvent::Ended(work(&[])));
                missing?
            }
        };
        match missing {
            types if types.is_empty() => Ok(types),
            types => Err(OperationError::NotServed(NotServed {
                addon,
                types,
                waited: timeout,
            })),
        }
    }
}
