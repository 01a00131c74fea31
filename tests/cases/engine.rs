//! The engine on a real control plane, through the plugin: locks, conflicts, fields that never change, what is pruned and what is
//! not, admission, Secrets, the record (semantics 5-8, 12 and 13).

mod admission;
mod conflicts;
mod immutable;
mod lock;
mod prune;
mod record;
mod secret;
