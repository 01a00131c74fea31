//! Operations on installations, as a library: a terminal, a controller and a test call the same stages.
//!
//! | stage | function | result |
//! |---|---|---|
//! | resolve | [`Resolver::resolve`] | chosen entries, completed and validated records: [`Resolved`] |
//! | fetch | [`fetch::fetch`] | verified packages of what is due: [`fetch::Fetched`] |
//! | render | [`render::render`] | objects: [`render::Rendered`] |
//! | plan | [`plan::plan`], [`plan::plan_uninstall`] | one [`Plan`] for the whole command |
//! | execute | [`execute::execute`] | an [`InstallationOutcome`] with a report for each installation |
//!
//! [`Resolver::plan`] does fetch, render and plan at once. Inputs are explicit: a [`Context`] (the cluster, its sources, helm), an
//! [`Intent`] and [`Choices`]. Outputs are values: the stages, [`OperationEvent`]s while they run, [`Finding`]s, and questions
//! ([`error::Questions`]) in the refusal of an installation that lacks required values: the caller resolves again with the
//! [`resolve::Answers`]. One failing add-on is a result ([`stage::FailedInstallation`]); a caller that wants all or nothing calls [`Resolution::whole`]
//! and [`Plan::whole`].
//!
//! Nothing here prints, asks, reads the environment or knows flags.

pub mod adopt;
pub mod atomic;
pub mod attempt;
mod authority;
pub mod builtin;
pub mod catalogue_file;
pub mod channel;
pub mod chart;
pub mod choose;
pub mod context;
pub mod continued;
pub mod declared;
pub mod definitions;
mod dependencies;
pub mod directory;
pub mod documents;

pub mod elsewhere;
pub mod error;
pub mod event;
pub mod execute;
pub mod fetch;
mod former;
pub mod gitops;
pub mod health;
mod identity;
pub mod inputs;
pub mod installed;
pub mod intent;
pub mod interruption;
pub mod jail;
pub mod kops;
mod lookup;
pub mod not_local;
pub mod origin;
pub mod plan;
mod policies;
pub mod provenance;
pub mod recorded;
pub mod records;
pub mod release;
pub mod render;
pub mod replay;
pub mod required_types;
pub mod requirements;
pub mod resolve;
pub mod resolved;
pub mod rollback;
pub mod rollout;
pub mod run;
pub mod scaffold;
pub mod set;
pub mod signature;
pub mod stage;
pub mod text;
pub mod unfinished;
pub mod validate;
pub mod values_from;
pub mod verdict;

pub use addons_plan::choices::Choices;
pub use context::{Context, ContextSettings, IndexLocation, Offer};
pub use directory::found::DirectorySync;
pub use error::OperationError;
pub use event::{Activity, Finding, OperationEvent};
pub use execute::InstallationOutcome;
pub use intent::{DeclaredSet, Edit, Edits, Intent, NewInstallation, VersionedName};
pub use interruption::Interruption;
pub use plan::{Plan, PlannedInstallation};
pub use records::{Records, name_of};
pub use resolve::{Resolution, Resolver};
pub use resolved::Resolved;
pub use run::RunOptions;

use addons_render::hooks::Occasion;

impl Resolver<'_> {
    /// Fetches, renders and plans a resolution. Installations that turn out to adopt live objects are rendered again, as an upgrade.
    ///
    /// # Errors
    /// Those of [`plan::plan`].
    pub async fn plan(
        &self,
        resolution: Resolution,
        choices: &Choices,
    ) -> Result<Plan, OperationError> {
        if !choices.adopt || choices.only_owners {
            return self.plan_once(resolution, choices).await;
        }
        let mut again = Resolution {
            installations: resolution.installations.clone(),
            failed: Vec::new(),
            to_uninstall: resolution.to_uninstall.clone(),
        };
        let failed = resolution.failed.len();
        let mut plan = self.plan_once(resolution, choices).await?;
        let takes_over = |resolved: &Resolved| {
            let mut plans = plan.installations.iter().map(|planned| &planned.plan);
            resolved.occasion() == Occasion::Install
                && plans.any(|plan| plan.installation == resolved.name && plan.takes_over())
        };
        let mut is_other = false;
        for resolved in &mut again.installations {
            resolved.takes_over = takes_over(resolved);
            is_other |= resolved.takes_over;
        }
        if !is_other {
            return Ok(plan);
        }
        again.failed = plan.failed.drain(..failed).collect();
        self.plan_once(again, choices).await
    }

    async fn plan_once(
        &self,
        resolution: Resolution,
        choices: &Choices,
    ) -> Result<Plan, OperationError> {
        let mut installations = resolution.installations;
        for resolved in &mut installations {
            resolved.apply_choices(choices);
        }
        let (installations, in_git) = gitops::separate_git_managed(installations, choices);
        let installations = installations.into_iter();
        // The objects of a directory were read with it.
        let (found, chosen) =
            installations.partition(|resolved| resolved.directory_addon.is_some());
        let fetched = fetch::fetch(self.ctx, chosen, choices).await;
        let mut rendered = render::render(self.ctx, fetched).await;
        rendered.extend(directory::to_rendered(found, choices));
        let gone = &resolution.to_uninstall;
        let mut plan = plan::plan(self, rendered, gone, choices).await?;
        plan.failed.splice(0..0, in_git);
        plan.failed.splice(0..0, resolution.failed);
        // Installations that cannot be planned may still need those that are to be uninstalled.
        if gone.is_empty() || !plan.failed.is_empty() {
            return Ok(plan);
        }
        plan::with_uninstallations(self, plan, gone).await
    }
}
