//! The command that continues an operation.

use common::plan::{InstallationPlan, Verb};

use crate::words::hint::word;

/// The verb, name and namespace that continue an operation.
pub fn again(plan: &InstallationPlan) -> String {
    let directory = plan.wanted.spec.addon_ref.directory.as_ref();
    if let Some(directory) = directory.filter(|_| !plan.verb.ends()) {
        return format!("sync {}", word(directory));
    }
    if let Some(revision) = plan.revision {
        let installation = &plan.installation;
        let (name, namespace) = (&installation.name, &installation.namespace);
        return format!("rollback {name} {revision} -n {namespace}");
    }
    let verb = match plan.verb {
        Verb::Install | Verb::Upgrade | Verb::Rollback => "upgrade",
        Verb::Adopt => "adopt",
        Verb::Uninstall => "uninstall",
        Verb::Release => "adopt --release",
    };
    let to = plan.to.as_ref().map(|to| to.version.as_str());
    let version = to.filter(|version| !version.is_empty() && plan.rebuilt.is_none());
    let at = version.map_or_else(String::new, |version| format!("@{version}"));
    format!(
        "{verb} {}{at} -n {}",
        plan.installation.name, plan.installation.namespace
    )
}
