//! The main job: what install, upgrade, uninstall, diff and channel apply have in common.
//!
//! [`candidate`] decides which entry an installation should have and whether that is due; [`prepare`] fetches it and makes
//! the plan; [`announce`] says what will happen, in the words and counts of the report; [`run`] asks, executes and reports.

pub mod announce;
pub mod candidate;
pub mod prepare;
pub mod run;
