//! `diff`, `plan` and `apply` on a real control plane (issue: "Diff", "Plan files").

mod dangling;
mod definitions;
mod diff;
mod files;
mod lists;
mod members;
mod moved;
mod previews;
mod readers;
mod sets;
mod uninstalls;
mod views;
