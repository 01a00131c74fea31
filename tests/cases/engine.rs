//! The engine on a real control plane, through the plugin: locks, crashes, faults, conflicts, what is pruned and what is
//! not, admission, Secrets, the record (semantics 5-8, 12 and 13).

pub mod addon;
mod admission;
mod conflicts;
mod crash;
mod fault;
mod lock;
mod operation;
mod prune;
mod record;
mod rig;
mod secret;
mod seed;
mod state;
