//! Loops over operations, which keep the installations of a cluster as their records ask for.
//!
//! | module | contents |
//! |---|---|
//! | [`installation`] | reconciles one installation: with whose rights, and with which result |
//! | [`mod@pass`] | reconciles each installation of the cluster once |
//! | [`reconciler`] | watches, and reconciles what changed, as long as this process leads |
//! | [`election`] | elects a leader among several processes; used by every loop |
//! | [`retire`] | removes our finalizer from the records at the end |
//! | [`cause`] | who or what caused an installation to be reconciled |
//! | [`core_set`] | makes core records match the rules and the list of core add-ons |
//! | `duplicates` | marks catalogues that have to give way to others |
//! | [`sync`] | updates catalogues from their source |
//! | [`distribution`] | pushes the merged catalogues to other clusters, and stores the versions that fit each |
//! | [`fights`] | fields that another manager keeps setting back; used by every loop |
//! | `remote` | reconciles the installations of another cluster, those of one namespace together |
//! | `queue`, `tracked` | when each installation is due, and what is remembered of it |
//! | `slots` | how many installations of a cluster are reconciled at the same time |
//! | [`metrics`] | the metrics |
//! | [`attempts`] | keeps an installation that killed the process from doing so again and again |
//!
//! Nothing here decides what is due or writes objects: the operations of `addons-operation` do that. Nothing here prints: the caller
//! turns each [`ReconcileMessage`] into the text of a condition or an Event, and receives a [`ReconcileOutcome`] for each installation.

pub mod attempts;
pub mod cause;
pub mod core_set;
pub mod distribution;
mod duplicates;
pub mod election;
pub mod fights;
pub mod installation;
pub mod metrics;
pub mod pass;
mod queue;
pub mod reconciler;
mod remote;
pub mod retire;
mod slots;
pub mod sync;
mod tracked;

pub use attempts::Attempts;
pub use cause::ReconcileCause;
pub use installation::{ReconcileMessage, ReconcileOptions, ReconcileOutcome};
pub use metrics::LoopMetrics;
pub use pass::pass;
pub use reconciler::{LoopEvent, Reconciler};
