//! The verbs, a file each.

pub mod channel;
pub mod diff;
pub mod install;
pub mod list;
pub mod status;
pub mod uninstall;
pub mod upgrade;
