//! The main job on a real control plane with the real binary: install, upgrade, prune, uninstall, refusals, waits.

mod announced;
mod bad_input;
mod library;
mod lifecycle;
pub(crate) mod many_addons;
mod of_index;
mod reporting;
mod requests;
mod scripted;
mod templates;
mod waiting;
mod watching;
