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
//! [`resolve::Answers`]. One failing add-on is a result ([`stage::FailedInstallation`]); a caller that wants all or nothing calls
//! [`Resolution::whole`] and [`Plan::whole`].
//!
//! Nothing here prints, asks, reads the environment or knows flags.

pub mod adopt;
pub mod builtin;
pub mod catalogue;
pub mod context;
pub mod delegate;
pub mod directory;
pub mod error;
pub mod event;
pub mod execute;
pub mod fetch;
pub mod health;
pub mod intent;
pub mod kops;
pub mod plan;
pub mod records;
pub mod render;
pub mod resolve;
pub mod set;
pub mod stage;
pub mod text;
pub mod tools;
pub mod unattended;
pub mod windows;

pub use addons_plan::choices::Choices;
pub use context::{Context, ContextSettings, IndexLocation, Offer};
pub use error::OperationError;
pub use event::{Activity, Finding, OperationEvent};
pub use execute::interruption::Interruption;
pub use execute::{InstallationOutcome, RunOptions};
pub use intent::{DeclaredSet, Edit, Edits, Intent, NewInstallation, VersionedName};
pub use plan::{Plan, PlannedInstallation};
pub use records::{Records, name_of};
pub use resolve::resolved::Resolved;
pub use resolve::{Resolution, Resolver};
