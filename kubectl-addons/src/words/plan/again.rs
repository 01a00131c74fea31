//! The command that continues an operation.

use addons_operation::Planned;
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

/// The verb, name and namespace that go back to what was installed before a failed upgrade; `None` where no revision of it is known, or
/// where the upgrade was to leave it as it was.
pub(super) fn back(item: &Planned) -> Option<String> {
    let plan = &item.plan;
    let (from, to) = (plan.from.as_ref()?, plan.to.as_ref()?);
    let status = item.record.status.as_ref()?;
    let mut done = status.history.iter().filter(|one| one.is_done());
    let is_known = done.any(|one| one.installed.is_same_target(from));
    let is_changed = plan.verb == Verb::Upgrade && !to.is_same_target(from);
    // A folder is the truth of what is installed from it.
    let is_of_directory = plan.wanted.spec.addon_ref.directory.is_some();
    let (name, namespace) = (&plan.installation.name, &plan.installation.namespace);
    let can = is_known && is_changed && !is_of_directory;
    can.then(|| format!("rollback {name} -n {namespace}"))
}
