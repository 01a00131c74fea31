//! The command that continues an operation.

use addons_operation::Planned;
use common::plan::{InstallationPlan, Verb};

use addons_operation::shell::word;

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
        Verb::Uninstall if keeps_objects(plan) => "uninstall --keep",
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

/// Whether an uninstallation deletes and releases nothing, as with `--keep`: without it, the command would delete what was to stay.
fn keeps_objects(plan: &InstallationPlan) -> bool {
    let leaves_objects = plan.prune.is_empty()
        && plan.release.is_empty()
        && plan.moving.is_empty()
        && plan.unreachable.is_empty();
    leaves_objects && plan.helm_release.is_none() && plan.former.is_empty()
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use common::api::installation::HelmRelease;
    use common::api::names::InstallationName;
    use common::manifest::key::ObjectKey;
    use common::plan::{Deletion, Target};

    use super::*;

    fn key() -> ObjectKey {
        ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("shop".to_owned()),
            name: "web".to_owned(),
        }
    }

    fn plan(verb: Verb) -> InstallationPlan {
        let installation = InstallationName {
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
        };
        InstallationPlan {
            verb,
            ..InstallationPlan::nothing(installation, "web")
        }
    }

    #[test]
    fn what_was_to_stay_stays_when_it_is_continued() {
        let kept = InstallationPlan {
            retained: vec![key()],
            ..plan(Verb::Uninstall)
        };
        assert_eq!(again(&kept), "uninstall --keep web -n shop");

        let target = Target {
            key: key(),
            version: "v1".to_owned(),
            plural: "configmaps".to_owned(),
        };
        let deletion = Deletion {
            target: target.clone(),
            uid: "1".to_owned(),
            resource_version: String::new(),
            labels: BTreeMap::new(),
        };
        let all = [
            InstallationPlan {
                prune: vec![vec![deletion]],
                ..kept.clone()
            },
            InstallationPlan {
                release: vec![target],
                ..kept.clone()
            },
            InstallationPlan {
                unreachable: vec![key()],
                ..kept.clone()
            },
            InstallationPlan {
                helm_release: Some(HelmRelease::default()),
                ..kept
            },
        ];
        for plan in all {
            assert_eq!(again(&plan), "uninstall web -n shop");
        }
    }

    #[test]
    fn each_verb_is_continued_by_its_own_command() {
        for (verb, expected) in [
            (Verb::Install, "upgrade web -n shop"),
            (Verb::Upgrade, "upgrade web -n shop"),
            (Verb::Adopt, "adopt web -n shop"),
            (Verb::Release, "adopt --release web -n shop"),
        ] {
            assert_eq!(again(&plan(verb)), expected);
        }
        let back = InstallationPlan {
            revision: Some(2),
            ..plan(Verb::Rollback)
        };
        assert_eq!(again(&back), "rollback web 2 -n shop");
    }
}
