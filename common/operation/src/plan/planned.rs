//! What a command will do, as values: its plans with the content that they were made from, and their order.

use std::collections::BTreeMap;

use addons_plan::choices::Choices;
use addons_plan::closing::ClosingStep;
use addons_plan::desired::Desired;
use addons_plan::graph::{Graph, GraphPart, ResourceHandover};
use addons_plan::history::StoredRevision;
use addons_plan::holder::ResourceHolder;
use addons_plan::immutable::{self, RecreationError};
use addons_plan::recreate::RecreateError;
use addons_plan::refusal::{self, RefusalError};
use addons_plan::{InstallationPlan, RecordNamespace};
use common::api::installation::{AddonInstallation, InstallationPhase};
use common::api::names::InstallationName;
use common::catalogue::CatalogueEntry;
use common::manifest::key::ObjectKey;

use crate::error::OperationError;
use crate::render::chart::CompleteChart;
use crate::resolve::resolved::Resolved;
use crate::stage::FailedInstallation;

/// What a command will do. This value is shown, confirmed, saved, compared and executed.
#[derive(Debug)]
pub struct Plan {
    /// The choices of the caller.
    pub choices: Choices,
    /// The installations that change, in the order of the command.
    pub installations: Vec<PlannedInstallation>,
    /// The installations that are up to date.
    pub up_to_date: Vec<Resolved>,
    /// The installations that cannot be planned.
    pub failed: Vec<FailedInstallation>,
    /// The order of the objects of all installations.
    pub graph: Graph,
    /// Namespaces of records that are not part of any add-on, sorted by name.
    pub namespaces: Vec<RecordNamespace>,
    /// Whether our own definitions are missing, and so are installed first.
    pub defines: bool,
    /// The error for an object that the user named to be recreated and that is not.
    pub(crate) needless: Option<RecreateError>,
}

/// What will be done to one installation, and content that the plan itself does not have.
#[derive(Debug)]
pub struct PlannedInstallation {
    /// What will happen.
    pub plan: InstallationPlan,
    /// The record as it should be; for an uninstallation, as it is.
    pub record: AddonInstallation,
    /// The record to restore if the server refuses every object; `None` for an uninstallation, and if an earlier run may already have
    /// applied something.
    pub fallback: Option<AddonInstallation>,
    /// What happens to the installation if the operation fails.
    pub on_failure: OnFailure,
    /// The entry to keep with the revision; `None` if nothing from a catalogue or index is installed.
    pub entry: Option<CatalogueEntry>,
    /// The desired objects; empty for an uninstallation.
    pub desired: Desired,
    /// The chart, if helm installs it.
    pub release: Option<CompleteChart>,
}

/// What happens to an installation whose operation fails.
#[derive(Debug, Default)]
pub enum OnFailure {
    /// It stays as it is.
    #[default]
    Stays,
    /// It stays as it is although a rollback was asked for: no revision of the installed version is kept, or nothing is installed.
    NothingBefore,
    /// It is rolled back.
    GoesBack(Box<RollbackPoint>),
}

/// What was installed before the operation.
#[derive(Debug)]
pub struct RollbackPoint {
    /// Its revision.
    pub revision: StoredRevision,
    /// Its entry, which may have left its catalogue.
    pub(crate) entry: CatalogueEntry,
}

impl PlannedInstallation {
    /// Refuses what has to be accepted and was not, and what the server refuses.
    fn check(&self, allow_breakage: bool) -> Result<(), OperationError> {
        check(&[&self.plan], allow_breakage).map_err(|error| self.in_directory(error))
    }

    /// Adds the directory that the installation comes from, if any, to an error.
    pub(crate) fn in_directory(&self, error: OperationError) -> OperationError {
        let plan = &self.plan;
        match self.record.spec.addon_ref.directory.clone() {
            Some(directory) => OperationError::InDirectory {
                path: format!("{directory}/{}", plan.addon),
                installation: plan.installation.clone(),
                directory,
                error: Box::new(error),
            },
            None => error,
        }
    }

    /// Whether the plan continues an operation that was interrupted or failed.
    pub(super) fn continues(&self) -> bool {
        let status = self.record.status.as_ref();
        status.is_some_and(|status| {
            status.operation.is_some() || status.phase == Some(InstallationPhase::Failed)
        })
    }

    /// Whether the record is new and core, or becomes core.
    fn becomes_core(&self) -> bool {
        let is_new = self.record.metadata.resource_version.is_none();
        let was = self
            .fallback
            .as_ref()
            .is_some_and(|before| before.spec.core_addon);
        self.record.spec.core_addon && !self.plan.verb.ends_installation() && (is_new || !was)
    }

    /// Replaces the plan, and keeps the content that it was made from.
    pub(super) fn with(self, change: fn(InstallationPlan) -> InstallationPlan) -> Self {
        Self {
            plan: change(self.plan),
            ..self
        }
    }
}

impl Plan {
    /// Creates a plan from planned installations: adds the order of all objects, and the namespaces of new records.
    pub(crate) fn new(
        choices: Choices,
        installations: Vec<PlannedInstallation>,
        up_to_date: Vec<Resolved>,
        failed: Vec<FailedInstallation>,
        defines: bool,
    ) -> Result<Self, OperationError> {
        Ok(Self {
            graph: build_graph(&installations)?,
            namespaces: record_namespaces(&installations),
            choices,
            installations,
            up_to_date,
            failed,
            defines,
            needless: None,
        })
    }

    /// Creates a plan of installations for which nothing is rendered: they are uninstalled, or only their records are written.
    ///
    /// # Errors
    /// The objects of the installations wait for each other.
    pub fn without_rendering(
        choices: Choices,
        installations: Vec<PlannedInstallation>,
    ) -> Result<Self, OperationError> {
        Self::new(choices, installations, Vec::new(), Vec::new(), false)
    }

    /// Returns the plan if every installation could be planned.
    ///
    /// # Errors
    /// That of the first installation that could not be planned.
    pub fn whole(mut self) -> Result<Self, OperationError> {
        if self.failed.is_empty() {
            return Ok(self);
        }
        Err(self.failed.remove(0).error)
    }

    /// Returns the plan without the installations that need an acceptance which was not given or of which the server refuses an object, and
    /// these installations with their errors.
    ///
    /// # Errors
    /// The objects of the command have no order.
    pub fn without_refused(mut self) -> Result<(Self, Vec<FailedInstallation>), OperationError> {
        let allow_breakage = self.choices.allow_breakage;
        let (mut installations, mut refused) = (Vec::new(), Vec::new());
        for planned in std::mem::take(&mut self.installations) {
            match planned.check(allow_breakage) {
                Ok(()) => installations.push(planned),
                Err(error) => refused.push(FailedInstallation {
                    name: planned.plan.installation.to_string(),
                    error,
                }),
            }
        }
        Ok((self.with_only(installations)?, refused))
    }

    /// Returns the plan with only these of its installations.
    pub(crate) fn with_only(
        self,
        mut installations: Vec<PlannedInstallation>,
    ) -> Result<Self, OperationError> {
        retain_untaken(&mut installations);
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

    /// Whether no installation changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.installations.is_empty()
    }

    /// Refuses what the server refuses, and what has to be accepted and was not. Nothing was written.
    ///
    /// # Errors
    /// All problems of the first kind.
    pub fn check(&self) -> Result<(), OperationError> {
        check(&self.plans(), self.choices.allow_breakage)
    }

    /// Refuses a plan of which the server would refuse a write. Nothing was written.
    ///
    /// # Errors
    /// All of these writes.
    pub fn check_refusals(&self) -> Result<(), RefusalError> {
        refusal::check(self.plans())
    }

    fn plans(&self) -> Vec<&InstallationPlan> {
        self.installations.iter().map(|one| &one.plan).collect()
    }

    /// Refuses definitions that break live objects, unless that was accepted. Nothing was written.
    ///
    /// # Errors
    /// The objects that they would break.
    pub fn check_breakages(&self) -> Result<(), OperationError> {
        for planned in &self.installations {
            planned.plan.check_breakages(self.choices.allow_breakage)?;
        }
        Ok(())
    }

    /// Refuses to rewrite objects whose definition drops their stored version, unless that was accepted (semantics 12.18). Nothing was
    /// written.
    ///
    /// # Errors
    /// The definitions of the first installation with such objects.
    pub fn check_migrations(&self) -> Result<(), OperationError> {
        for planned in &self.installations {
            planned.plan.check_migrations()?;
        }
        Ok(())
    }

    /// Returns the plan with rewriting of stored objects accepted.
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

    /// Refuses to delete objects and create them again, unless that was accepted. Nothing was written.
    ///
    /// # Errors
    /// The objects that cannot be changed in place.
    pub fn check_recreations(&self) -> Result<(), RecreationError> {
        immutable::check(self.plans())
    }

    /// Returns the plan with recreation accepted for objects that cannot be changed in place and hold no data.
    #[must_use]
    pub fn accepting_recreations(self) -> Self {
        self.with_each(InstallationPlan::accepting_recreations)
    }

    /// Changes the plan of each installation.
    fn with_each(self, change: fn(InstallationPlan) -> InstallationPlan) -> Self {
        let installations = self.installations.into_iter();
        Self {
            installations: installations.map(|planned| planned.with(change)).collect(),
            ..self
        }
    }
}

/// Checks plans for live objects that would break, refusals of the server, and changes that were not accepted.
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

/// Returns the order of all objects of a command.
pub(super) fn build_graph(installations: &[PlannedInstallation]) -> Result<Graph, OperationError> {
    let index = |name: &InstallationName| {
        let mut all = installations.iter();
        all.position(|planned| planned.plan.installation == *name)
    };
    let requires: Vec<Vec<usize>> = installations
        .iter()
        .map(|planned| planned.plan.requires.iter().filter_map(index).collect())
        .collect();
    let parts: Vec<GraphPart<'_>> = installations
        .iter()
        .zip(&requires)
        .map(|(planned, requires)| GraphPart {
            name: &planned.plan.installation.name,
            desired: &planned.desired,
            requires,
        })
        .collect();
    Ok(Graph::with_holders(&parts, &objects_held(installations))?)
}

/// Returns the objects of a command that give up something that another one needs.
fn objects_held(installations: &[PlannedInstallation]) -> Vec<ResourceHandover<'_>> {
    let steps = installations.iter().flat_map(|planned| &planned.plan.steps);
    let held = steps.flat_map(|step| {
        let holders = step.policy.holders.iter();
        let applied = holders.filter(|holder| matches!(holder, ResourceHolder::Applied(_)));
        applied.map(|holder| ResourceHandover {
            holder: holder.key(),
            receiver: &step.target.key,
        })
    });
    held.collect()
}

/// Returns the namespaces of first records, and of records that become core.
fn record_namespaces(installations: &[PlannedInstallation]) -> Vec<RecordNamespace> {
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
                // kube-system always exists.
                create: is_new && name != "kube-system",
                holds_core,
            }),
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// Keeps objects recorded where they are if the installation that contains them could not be planned.
pub(super) fn retain_untaken(installations: &mut [PlannedInstallation]) {
    let taken: BTreeMap<InstallationName, Vec<ObjectKey>> = installations
        .iter()
        .map(|planned| {
            let keys = planned.plan.exact.objects.keys();
            (planned.plan.installation.clone(), keys.cloned().collect())
        })
        .collect();
    for planned in installations {
        let plan = &mut planned.plan;
        let (union, exact) = (&plan.union, &mut plan.exact);
        plan.closing.retain(|step| {
            let ClosingStep::HandOver(one) = step else {
                return true;
            };
            let is_taken = taken
                .get(&one.to)
                .is_some_and(|keys| keys.contains(&one.key));
            if let Some(item) = union.objects.get(&one.key).filter(|_| !is_taken) {
                exact.objects.insert(one.key.clone(), item.clone());
            }
            is_taken
        });
    }
}
