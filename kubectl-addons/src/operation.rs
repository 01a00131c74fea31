//! The main job: what install, upgrade, uninstall, diff and channel apply have in common.
//!
//! [`choose`] finds the entry that fits, [`candidate`] the record that goes with it and whether that is due, [`verdict`]
//! fills in defaults and judges as the webhook does, [`prepare`] fetches the manifest and makes the plan, [`announce`] says
//! what will happen in the words and counts of the report, [`differences`] what the user accepts, [`run`] asks, executes and reports.

pub mod announce;
pub mod candidate;
pub mod choose;
pub mod differences;
pub mod known;
pub mod pipeline;
pub mod prepare;
pub mod required_types;
pub mod requirements;
pub mod run;
pub mod together;
pub mod verdict;
