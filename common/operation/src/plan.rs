//! From rendered installations to the plan of the command: what all of them define is known, the live state is read, nothing is
//! written.

mod assemble;
mod generated;
mod moves;
mod numbers;
mod old;
mod one;
pub(crate) mod owners;
mod rebuild;
mod uninstall;

use addons_engine::{diff, refusals};
use addons_plan::changes::ObjectDiff;
use addons_plan::choices::Choices;
use addons_plan::desired::Desired;
use addons_plan::file::{self, PlanFile};
use addons_plan::graph::{Graph, Held, Part};
use addons_plan::holder::Holder;
use addons_plan::immutable::{self, RecreationError};
use addons_plan::recreate::RecreateError;
use addons_plan::refusal::{self, RefusalError};
use addons_plan::{InstallationPlan, RecordNamespace, Verb};
use common::api::installation::{AddonInstallation, Phase};
use common::api::names::{CLIENT, InstallationName};
use common::catalogue::Entry;

use crate::atomic::OnFailure;
use crate::chart::CompleteChart;
use crate::context::Context;
use crate::error::OperationError;
use crate::resolved::Resolved;
use crate::stage::Failed;

pub use assemble::plan;
pub(crate) use rebuild::recorded_again;
pub use uninstall::{Removal, plan_removal, plan_uninstall};
pub(crate) use uninstall::{may_go, plan_gone, with_gone};

/// What a command will do. What is shown, confirmed, saved, compared and executed is this value.
#[derive(Debug)]
pub struct Plan {
    /// What the caller decided.
    pub choices: Choices,
    /// The installations that change, in the order of the command.
    pub installations: Vec<Planned>,
    /// Installations for which there is nothing to do.
    pub up_to_date: Vec<Resolved>,
    /// Installations that cannot be planned.
    pub failed: Vec<Failed>,
    /// Which object waits for which, over all installations.
    pub graph: Graph,
    /// Namespaces of records that are not part of any add-on, sorted by name.
    pub namespaces: Vec<RecordNamespace>,
    /// Whether our own definitions are missing: they are installed first.
    pub defines: bool,
    /// Why an object is not recreated that the user named for it.
    pub(crate) needless: Option<RecreateError>,
}

/// What will be done to one installation, and the contents that the plan itself does not hold.
#[derive(Debug)]
pub struct Planned {
    /// What will happen.
    pub plan: InstallationPlan,
    /// The record as it should be; for an uninstallation, as it is.
    pub record: AddonInstallation,
    /// The record to go back to where the server refuses everything; `None` for an uninstallation, and where an earlier run may have
    /// applied something already.
    pub fallback: Option<AddonInstallation>,
    /// What becomes of it where the operation fails.
    pub on_failure: OnFailure,
    /// The entry that it comes from, for the revision that is kept; `None` where nothing of a catalogue or index is installed.
    pub entry: Option<Entry>,
    /// The wanted objects; none for an uninstallation.
    pub desired: Desired,
    /// The chart that helm installs, where it does.
    pub release: Option<CompleteChart>,
}

impl Planned {
    /// Refuses what has to be accepted and was not, and what the server refuses.
    fn check(&self, allow_breakage: bool) -> Result<(), OperationError> {
        let plan = &self.plan;
        let directory = self.record.spec.addon_ref.directory.clone();
        check(&[plan], allow_breakage).map_err(|error| match directory {
            Some(directory) => OperationError::InDirectory {
                path: format!("{directory}/{}", plan.addon),
                installation: plan.installation.clone(),
                directory,
                error: Box::new(error),
            },
            None => error,
        })
    }

    /// Whether it continues an operation that was interrupted or failed.
    fn continues(&self) -> bool {
        let status = self.record.status.as_ref();
        status
            .is_some_and(|status| status.operation.is_some() || status.phase == Some(Phase::Failed))
    }

    /// Whether it is core from now on: a new record, or one that was not core before.
    fn becomes_core(&self) -> bool {
        let is_new = self.record.metadata.resource_version.is_none();
        let was = self
            .fallback
            .as_ref()
            .is_some_and(|before| before.spec.core_addon);
        self.record.spec.core_addon && !self.plan.verb.ends() && (is_new || !was)
    }

    /// The same with another plan; what that was made of stays.
    fn with(self, change: fn(InstallationPlan) -> InstallationPlan) -> Self {
        Self {
            plan: change(self.plan),
            ..self
        }
    }
}

impl Plan {
    /// Completes it: the order of all objects, and the namespaces of new records.
    pub(crate) fn new(
        choices: Choices,
        installations: Vec<Planned>,
        up_to_date: Vec<Resolved>,
        failed: Vec<Failed>,
        defines: bool,
    ) -> Result<Self, OperationError> {
        Ok(Self {
            graph: graph(&installations)?,
            namespaces: namespaces(&installations),
            choices,
            installations,
            up_to_date,
            failed,
            defines,
            needless: None,
        })
    }

    /// One of these installations alone, for which nothing is rendered: they end, or only their records are written.
    pub(crate) fn of(
        choices: Choices,
        installations: Vec<Planned>,
    ) -> Result<Self, OperationError> {
        Self::new(choices, installations, Vec::new(), Vec::new(), false)
    }

    /// The plan, where every installation of it could be planned.
    ///
    /// # Errors
    /// That of the first installation that could not.
    pub fn whole(mut self) -> Result<Self, OperationError> {
        if self.failed.is_empty() {
            return Ok(self);
        }
        Err(self.failed.remove(0).error)
    }

    /// The plan without the installations that need an acceptance which was not given, or of which the server refuses something, and
    /// why each is left out.
    ///
    /// # Errors
    /// The objects of the command have no order.
    pub fn without_refused(mut self) -> Result<(Self, Vec<Failed>), OperationError> {
        let allow_breakage = self.choices.allow_breakage;
        let (mut installations, mut refused) = (Vec::new(), Vec::new());
        for planned in std::mem::take(&mut self.installations) {
            match planned.check(allow_breakage) {
                Ok(()) => installations.push(planned),
                Err(error) => refused.push(Failed {
                    name: planned.plan.installation.to_string(),
                    error,
                }),
            }
        }
        Ok((self.with_only(installations)?, refused))
    }

    /// The same plan with these of its installations.
    pub(crate) fn with_only(self, mut installations: Vec<Planned>) -> Result<Self, OperationError> {
        moves::keep_untaken(&mut installations);
        let needless = self.needless;
        let plan = Self::new(
            self.choices,
            installations,
            self.up_to_date,
            self.failed,
            self.defines,
        )?;
        Ok(Self { needless, ..plan })
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.installations.is_empty()
    }

    /// Refuses what the server refuses, and what has to be accepted and was not; nothing was written.
    ///
    /// # Errors
    /// The first kind of problem, with everything of it.
    pub fn check(&self) -> Result<(), OperationError> {
        check(&self.plans(), self.choices.allow_breakage)
    }

    /// Refuses a command of which the server would refuse a write; nothing was written.
    ///
    /// # Errors
    /// All of these writes.
    pub fn check_refusals(&self) -> Result<(), RefusalError> {
        refusal::check(self.plans())
    }

    fn plans(&self) -> Vec<&InstallationPlan> {
        self.installations.iter().map(|one| &one.plan).collect()
    }

    /// Refuses definitions that break live objects, unless that was accepted; nothing was written.
    ///
    /// # Errors
    /// What they would break.
    pub fn check_breakages(&self) -> Result<(), OperationError> {
        for planned in &self.installations {
            planned.plan.check_breakages(self.choices.allow_breakage)?;
        }
        Ok(())
    }

    /// Refuses to write objects again whose definition drops the version that they are stored in, unless that was accepted;
    /// nothing was written.
    ///
    /// # Errors
    /// The definitions of the first installation that has such objects.
    pub fn check_migrations(&self) -> Result<(), OperationError> {
        for planned in &self.installations {
            planned.plan.check_migrations()?;
        }
        Ok(())
    }

    /// The same plan where objects may be written again.
    #[must_use]
    pub fn accepting_migrations(self) -> Self {
        self.with_each(InstallationPlan::accepting_migrations)
    }

    /// Refuses an object that the user named to be recreated and that nothing recreates.
    ///
    /// # Errors
    /// [`RecreateError::Needless`].
    pub fn check_named(&self) -> Result<(), RecreateError> {
        self.needless.clone().map_or(Ok(()), Err)
    }

    /// Refuses to delete objects and create them again, unless that was accepted; nothing was written.
    ///
    /// # Errors
    /// The objects that cannot be changed in place.
    pub fn check_recreations(&self) -> Result<(), RecreationError> {
        immutable::check(self.plans())
    }

    /// The same plan where objects may be deleted and created again, if they cannot be changed in place and hold no data.
    #[must_use]
    pub fn accepting_recreations(self) -> Self {
        self.with_each(InstallationPlan::accepting_recreations)
    }

    /// The same plan with other plans of its installations.
    fn with_each(self, change: fn(InstallationPlan) -> InstallationPlan) -> Self {
        let installations = self.installations.into_iter();
        Self {
            installations: installations.map(|planned| planned.with(change)).collect(),
            ..self
        }
    }

    /// The plan as a file holds it. `changes`: what the server said to a dry run, for review.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub async fn file(
        &self,
        ctx: &Context,
        changes: Vec<ObjectDiff>,
    ) -> Result<PlanFile, OperationError> {
        let plans = self
            .installations
            .iter()
            .map(|planned| planned.plan.clone());
        Ok(PlanFile {
            api_version: file::VERSION.to_owned(),
            kind: file::KIND.to_owned(),
            tool: format!("{CLIENT} {}", env!("CARGO_PKG_VERSION")),
            cluster: ctx.identity().await?,
            choices: self.choices.clone(),
            defines: self.defines,
            namespaces: self.namespaces.clone(),
            installations: plans.collect(),
            graph: self.graph.clone(),
            changes,
        })
    }
}

/// What the server says to a dry run of a plan, field by field; Secrets are masked.
///
/// # Errors
/// The server cannot be reached. What it refuses is part of the answer.
pub async fn compare(ctx: &Context, planned: &Planned) -> Result<Vec<ObjectDiff>, OperationError> {
    Ok(diff::diff(ctx.cluster().await?, &planned.plan).await?)
}

/// The same for every installation of a plan, in the order in which a plan file has them.
///
/// # Errors
/// The server cannot be reached.
pub(crate) async fn changes(ctx: &Context, plan: &Plan) -> Result<Vec<ObjectDiff>, OperationError> {
    let mut changes = Vec::new();
    for planned in &plan.installations {
        changes.extend(compare(ctx, planned).await?);
    }
    Ok(changes)
}

/// Adds to uninstallations what the server would not let them delete. Other plans were asked about when they were made.
///
/// # Errors
/// The server cannot be reached.
pub async fn ask_about_removals(ctx: &Context, plan: &mut Plan) -> Result<(), OperationError> {
    let cluster = ctx.cluster().await?;
    for planned in &mut plan.installations {
        if planned.plan.verb == Verb::Uninstall {
            let refused = refusals::of_removal(cluster, &planned.plan, &planned.record).await?;
            planned.plan.refused = refused;
        }
    }
    Ok(())
}

/// Whether nothing stands in the way of plans: live objects that would break, refusals of the server, and what was not accepted.
fn check(plans: &[&InstallationPlan], allow_breakage: bool) -> Result<(), OperationError> {
    for plan in plans {
        plan.check_breakages(allow_breakage)?;
    }
    refusal::check(plans.iter().copied())?;
    for plan in plans {
        plan.check_migrations()?;
    }
    immutable::check(plans.iter().copied())?;
    Ok(())
}

/// The order of all objects of a command.
fn graph(installations: &[Planned]) -> Result<Graph, OperationError> {
    let index = |name: &InstallationName| {
        let mut all = installations.iter();
        all.position(|planned| planned.plan.installation == *name)
    };
    let requires: Vec<Vec<usize>> = installations
        .iter()
        .map(|planned| planned.plan.requires.iter().filter_map(index).collect())
        .collect();
    let parts: Vec<Part<'_>> = installations
        .iter()
        .zip(&requires)
        .map(|(planned, requires)| Part {
            name: &planned.plan.installation.name,
            desired: &planned.desired,
            requires,
        })
        .collect();
    Ok(Graph::with_holders(&parts, &held(installations))?)
}

/// Objects of a command that give up what others of it need.
fn held(installations: &[Planned]) -> Vec<Held<'_>> {
    let steps = installations.iter().flat_map(|planned| &planned.plan.steps);
    let held = steps.flat_map(|step| {
        let holders = step.policy.holders.iter();
        let applied = holders.filter(|holder| matches!(holder, Holder::Applied(_)));
        applied.map(|holder| Held {
            holder: holder.key(),
            heir: &step.target.key,
        })
    });
    held.collect()
}

/// Namespaces of first records, and of records that become core.
fn namespaces(installations: &[Planned]) -> Vec<RecordNamespace> {
    let mut found: Vec<RecordNamespace> = Vec::new();
    for planned in installations {
        let is_new = planned.record.metadata.resource_version.is_none();
        let holds_core = planned.becomes_core();
        if !is_new && !holds_core {
            continue;
        }
        let name = &planned.plan.installation.namespace;
        match found.iter_mut().find(|namespace| namespace.name == *name) {
            Some(namespace) => {
                namespace.create |= is_new && name != "kube-system";
                namespace.holds_core |= holds_core;
            }
            None => found.push(RecordNamespace {
                name: name.clone(),
                // kube-system is there before anything else is.
                create: is_new && name != "kube-system",
                holds_core,
            }),
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}
