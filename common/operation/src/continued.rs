//! The command that continues an operation which was interrupted or failed.

use common::api::names::InstallationName;
use common::plan::continuation::Continuation;

use crate::shell::word;

/// What a person types to continue an operation of this installation.
#[must_use]
pub fn command(next: &Continuation, installation: &InstallationName) -> String {
    let InstallationName { namespace, name } = installation;
    let (verb, at) = match next {
        Continuation::Sync(directory) => return format!("kubectl addons sync {}", word(directory)),
        Continuation::Upgrade => ("upgrade", String::new()),
        Continuation::Rollback => ("rollback", String::new()),
        Continuation::Adopt(version) => {
            let at = version.as_ref().map(|version| format!("@{version}"));
            ("adopt", at.unwrap_or_default())
        }
        Continuation::Uninstall => ("uninstall", String::new()),
        Continuation::Release => ("adopt --release", String::new()),
    };
    format!("kubectl addons {verb} {name}{at} -n {namespace}")
}
