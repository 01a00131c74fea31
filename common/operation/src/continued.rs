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

#[cfg(test)]
mod tests {
    use common::api::installation::{AddonInstallation, Installed};
    use serde_json::json;

    use super::*;

    fn record(directory: Option<&str>, installed: Option<bool>) -> AddonInstallation {
        let installed = installed.map(|adopted| json!({"version": "1.0.0", "adopted": adopted}));
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"addonRef": {"name": "web", "directory": directory}},
            "status": {"installed": installed},
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn an_operation_is_continued_by_the_verb_that_began_it() {
        let target = Installed {
            version: "1.0.0".to_owned(),
            ..Installed::default()
        };
        let srv = Some("/srv/web");
        for (verb, record, expected) in [
            ("upgrade", record(None, None), "upgrade web -n shop"),
            ("uninstall", record(srv, None), "uninstall web -n shop"),
            ("install", record(srv, None), "sync /srv/web"),
            // `upgrade` would install the newest version instead.
            ("rollback", record(None, None), "rollback web -n shop"),
            ("adopt", record(None, None), "adopt web@1.0.0 -n shop"),
            ("adopt", record(None, Some(true)), "adopt web@1.0.0 -n shop"),
            // What was recorded again is not adopted but upgraded.
            ("adopt", record(None, Some(false)), "upgrade web -n shop"),
            ("release", record(None, None), "adopt --release web -n shop"),
            ("release", record(srv, None), "adopt --release web -n shop"),
            ("unheard-of", record(None, None), "upgrade web -n shop"),
        ] {
            let next = Continuation::of(&record, verb, Some(&target));
            let installation = InstallationName {
                namespace: "shop".to_owned(),
                name: "web".to_owned(),
            };
            let found = command(&next, &installation);
            assert_eq!(found, format!("kubectl addons {expected}"), "{verb}");
        }
    }
}
