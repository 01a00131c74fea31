//! Loops over operations: what keeps the installations of a cluster as their records ask for.
//!
//! | module | what it does |
//! |---|---|
//! | [`installation`] | reconciles one installation |
//! | [`mod@pass`] | reconciles each installation of the cluster once |
//! | [`reconciler`] | watches, and reconciles what changed, as long as this process leads |
//! | [`election`] | which of several processes leads; for every loop |
//! | [`retire`] | frees the records at the end |
//! | [`core_set`] | makes core records what the rules and the list of core add-ons say |
//! | `duplicates` | marks catalogues that have to give way to others |
//! | [`synced`] | brings catalogues up to date from where they came |
//! | [`distributed`] | brings the catalogues, merged, to other clusters, and stores what fits each |
//! | [`fights`] | fields that another manager sets back each time; for every loop |
//! | `here`, `there` | one installation of this cluster, or those of another, and what became of them (`done`) |
//! | `queue`, `tracked` | when which installation is due; what is remembered of it |
//! | `slots` | how many installations of a cluster are reconciled at the same time |
//! | [`metrics`] | what is counted |
//! | `compatibility` | whether what is installed is still listed, and fits its cluster |
//! | [`attempts`] | what killed the process is not tried again and again |
//! | `rights` | whose rights are used for it |
//! | `reason` | whether a failure needs a person, and the word for it in the condition |
//!
//! Nothing here decides what is due or writes objects: that is done by the operations of `addons-operation`. Nothing here prints:
//! the caller gives the words for errors ([`installation::Words`]) and receives an [`Outcome`] for each installation.

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
mod reason;
pub mod reconciler;
pub mod retire;
mod rights;
mod slots;
pub mod synced;
mod there;
mod tracked;

pub use attempts::Attempts;
pub use installation::{How, Outcome};
pub use metrics::Metrics;
pub use pass::pass;
pub use reconciler::{Reconciler, Told};
