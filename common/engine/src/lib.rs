//! The engine is the only crate that writes to a cluster. It reads what the core needs to decide, and executes plans.
//!
//! | module | what it does |
//! |---|---|
//! | [`cluster`], `discovery` | a connection; the served kinds |
//! | `address`, `request`, `create`, `limits`, `listing`, `meta`, [`error`] | paths, retries, limits, and the meaning of responses |
//! | [`snapshot`], `autoscaler`, [`definitions`] | live metadata; what sets replicas; what changed CRDs do to live objects |
//! | [`record`], `lock`, `journal`, `status`, `begin` | the record: lock, journal and inventory in one write (semantics 13.2) |
//! | [`mod@execute`], `apply`, `served`, `wait`, `watch`, `prune`, `migrate`, `delete`, `holder`, [`namespace`] | an operation |
//! | [`revisions`] | the state of an installation after each operation, for rollbacks |
//! | [`core_set`] | the records of core installations, and the ConfigMaps and namespaces that they depend on |
//! | [`mod@config_map`] | a ConfigMap that a loop derives from catalogues |
//! | [`standing`], [`compatible`] | conditions that a reconciler sets on an installation that it does not change |
//! | [`attempt`] | marks an attempt to plan an installation; the mark outlives the process |
//! | [`lease`], [`changes`], [`events`] | for loops: leader election, watches, Events |
//! | [`required`] | whether the types that an add-on requires are served |
//! | [`blockers`], [`facts`] | why an object does not get ready; other facts that its readiness depends on |
//! | `task`, `event`, `report` | input, events and result of an operation |
//! | `diff`, `dry_run`, [`refusals`] | what a plan would change, field by field; what the server would refuse |
//! | [`crds`], [`catalogues`] | our own CRDs, and the catalogues of a cluster |
//! | [`template_facts`] | the data of a cluster that templates use |
//! | [`mod@kops`], [`former`] | kops' records of installed add-ons; records of Helm and kapp |
//! | [`aside`] | hides records of other tools from them, and restores them |
//! | `annotation` | writes the record of another tool that is an annotation |
//! | [`authority`], [`matching`] | the certificate authority of an add-on; objects that a prune rule matches |
//! | [`live`], [`drift`], [`secret`], [`identity`] | whole live objects; their next change; Secrets by reference; user and cluster |

pub mod addon_manager;
mod address;
mod addressed;
mod annotation;
mod apply;
pub mod aside;
pub mod attempt;
pub mod authority;
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
mod diff;
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
pub mod matching;
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
pub use lock::give_back;
pub use report::{
    Back, EndedStep, Failure, FailureCause, Fate, Report, Settled, Settlement, StepEnd,
};
pub use task::{ExecuteOptions, Outside, OutsideFailure, OwnedOutside, PlanBack, Task, WayBack};
