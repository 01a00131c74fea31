//! The main job: what install, upgrade, uninstall, diff and channel apply have in common.
//!
//! [`choose`] finds the entry that fits, [`candidate`] the record that goes with it and whether that is due, [`verdict`]
//! fills in defaults and judges as the webhook does, [`prompt`] asks for what is missing, [`fetch`] brings the package of its
//! source, [`inputs`] what that is rendered with ([`values_from`]: Secrets), [`content`] its objects, [`prepare`] makes the
//! plan, [`announce`] says what will happen in the words and counts of the report, [`differences`] what the user accepts,
//! [`run`] asks, executes and reports ([`tear_down`]: uninstallations), [`interruption`] is Ctrl-C.

pub mod announce;
pub mod candidate;
pub mod chart;
pub mod choose;
pub mod content;
pub mod differences;
pub mod fetch;
pub mod inputs;
pub mod installed;
pub mod interruption;
pub mod known;
pub mod pipeline;
pub mod prepare;
pub mod prompt;
pub mod release;
pub mod required_types;
pub mod requirements;
pub mod run;
pub mod tear_down;
pub mod together;
pub mod values_from;
pub mod verdict;
