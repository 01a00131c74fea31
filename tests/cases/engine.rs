//! The engine on a real control plane, through the plugin: locks, conflicts, what is pruned and what is
//! not, admission, Secrets, the record (semantics 5-8, 12 and 13).

mod addon;
mod admission;
mod conflicts;
mod lock;
mod prune;
mod record;
mod secret;
