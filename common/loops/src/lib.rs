//! Loops over operations, which keep the installations of a cluster as their records ask for.
//!
//! | module | contents |
//! |---|---|
//! | [`installation`] | reconciles one installation |
//! | [`mod@pass`] | reconciles each installation of the cluster once |
//! | [`reconciler`] | watches, and reconciles what changed, as long as this process leads |
//! | [`election`] | elects a leader among several processes; used by every loop |
//! | [`retire`] | removes our finalizer from the records at the end |
//! | [`core_set`] | makes core records match the rules and the list of core add-ons |
//! | `duplicates` | marks catalogues that have to give way to others |
//! | [`synced`] | updates catalogues from their source |
//! | [`distributed`] | pushes the merged catalogues to other clusters, and stores the versions that fit each |
//! | [`fights`] | fields that another manager keeps setting back; used by every loop |
//! | `here`, `there` | reconcile an installation of this cluster, or those of another, with a result (`done`) |
//! | `queue`, `tracked` | when each installation is due, and what is remembered of it |
//! | `slots` | how many installations of a cluster are reconciled at the same time |
//! | [`metrics`] | the metrics |
//! | `compatibility` | whether the installed version is still listed and fits its cluster |
//! | [`attempts`] | keeps an installation that killed the process from doing so again and again |
//! | `rights` | whose rights are used |
//!
//! Nothing here decides what is due or writes objects: the operations of `addons-operation` do that. Nothing here prints: the caller
//! turns each [`ReconcileMessage`] into the text of a condition or an Event, and receives a [`ReconcileOutcome`] for each installation.

pub mod attempts;
mod compatibility;
pub mod core_set;
pub mod distributed;
mod done;
mod duplicates;
pub mod election;
pub mod fights;
mod here;
pub mod installation;
pub mod metrics;
pub mod pass;
mod queue;
pub mod reconciler;
pub mod retire;
mod rights;
mod slots;
pub mod synced;
mod there;
mod tracked;

pub use attempts::Attempts;
pub use installation::{ReconcileMessage, ReconcileOptions, ReconcileOutcome};
pub use metrics::LoopMetrics;
pub use pass::pass;
pub use reconciler::{LoopEvent, Reconciler};
