//! The engine: the only writer of a cluster. It reads what the core needs to decide, and executes plans.
//!
//! | module | what it does |
//! |---|---|
//! | [`cluster`], `discovery` | one connection; which kinds are served |
//! | `address`, `request`, `create`, `limits`, `listing`, `meta`, [`error`] | paths, retries, bounds, and what a response or a refusal means |
//! | [`snapshot`], `autoscaler`, [`definitions`] | live metadata of the wanted and recorded objects; who sets their replicas; what changed definitions do to live objects |
//! | [`record`], `lock`, `journal`, `status`, `begin` | the record: lock, journal and inventory in one write (semantics 13) |
//! | [`mod@execute`], `apply`, `served`, `wait`, `watch`, `prune`, `migrate`, `delete`, `holder`, [`namespace`] | what an operation does |
//! | [`revisions`] | what each operation left an installation with, for a rollback |
//! | [`core_set`] | the records of core installations, and the ConfigMaps and namespaces that they follow |
//! | [`mod@config_map`] | a ConfigMap that a loop derives from catalogues |
//! | [`standing`], [`compatible`] | what a reconciler says of an installation that it did not change, and whether what is installed is listed and fits the cluster |
//! | [`attempt`] | the mark of an attempt to plan an installation, which outlives its process |
//! | [`lease`], [`changes`], [`events`] | for loops: who leads, when to look, what to tell |
//! | [`required`] | whether the types that an add-on requires are served |
//! | [`blockers`], [`facts`] | why an object does not get ready; what else its readiness depends on |
//! | `task`, `event`, `report` | input, events and result of an operation |
//! | [`mod@diff`], `dry_run`, [`refusals`] | what a plan would change, field by field; what the server would refuse of it, or not change in place |
//! | [`crds`], [`catalogues`] | our own definitions, and the catalogues of a cluster |
//! | [`template_facts`] | the data of a cluster that templates use |
//! | [`mod@kops`], [`former`] | kops' records of installed add-ons; those of Helm and kapp, which are set aside |
//! | [`live`], [`drift`], [`secret`], [`identity`] | whole live objects of installations; their next change; Secrets by reference; who we are |

pub mod addon_manager;
mod address;
mod addressed;
mod apply;
pub mod attempt;
mod autoscaler;
mod begin;
pub mod blockers;
pub mod catalogues;
pub mod changes;
pub mod cluster;
pub mod compatible;
pub mod config_map;
pub mod core_set;
pub mod crds;
mod create;
pub mod definitions;
mod delete;
pub mod diff;
mod discovery;
pub mod drift;
mod dry_run;
pub mod error;
mod event;
pub mod events;
pub mod execute;
pub mod facts;
#[cfg(test)]
mod fake;
pub mod former;
mod holder;
pub mod identity;
mod inhabited;
pub mod inspect;
mod journal;
pub mod kops;
pub mod lease;
mod limits;
mod listing;
pub mod live;
pub mod local;
mod lock;
pub mod marks;
mod meta;
mod migrate;
pub mod namespace;
pub mod nodes;
pub mod policies;
pub mod preflight;
mod prune;
mod random;
pub mod record;
pub mod refusals;
pub mod release;
pub mod remote;
mod report;
mod request;
pub mod required;
pub mod revisions;
pub mod secret;
mod served;
mod silent;
pub mod snapshot;
pub mod standing;
mod status;
mod task;
pub mod template_facts;
mod wait;
mod watch;
pub mod webhooks;

pub use cluster::{Cluster, ClusterOptions};
pub use error::EngineError;
pub use event::Event;
pub use execute::execute;
pub use journal::{Journal, OperationStage};
pub use lock::leave;
pub use report::{Back, Cause, Failure, Fate, Report, Settled, Settlement};
pub use task::{ExecuteOptions, Outside, OutsideFailure, OwnedOutside, PlanBack, Task, WayBack};
