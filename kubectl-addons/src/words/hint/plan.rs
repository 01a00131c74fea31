//! Advice if a plan is refused as a whole.

use std::collections::BTreeSet;

use addons_operation::error::{ManagedInGit, OutsideWindow};
use addons_operation::text::shell_word;
use addons_plan::Verb;
use addons_plan::crd_safety::{BreakageError, ImpossibleChange};
use addons_plan::immutable::{Recreation, RecreationError, RecreationObstacle, RefusedRecreations};
use addons_plan::migration::MigrationError;
use addons_plan::planner::{ObjectRefusal, PlanError, RefusalReason};
use addons_plan::prune::KeptKind;
use addons_plan::refusal::RefusalError;
use addons_plan::requires::{RequirementProblem, RequiresError};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::pin::OtherCluster;

use super::{command, fix_line, look_line, object_hints, typed};
use crate::words::adoption;

/// Advice for a plan that could not be made.
pub(super) fn plan_hints(error: &PlanError) -> Vec<String> {
    match error {
        PlanError::MostlyPruned {
            installation,
            verb,
            needed,
            ..
        } => {
            // Objects are installed already, even if the first installation failed.
            let verb = match verb {
                Verb::Install => Verb::Upgrade,
                verb => *verb,
            };
            acceptance_hints(
                verb,
                installation,
                &["--allow-prune".to_owned(), needed.to_string()],
            )
        }
        PlanError::Refused { objects } => refused_object_hints(objects),
        PlanError::RecordOlder(older) => vec![
            format!("look:   {}", command("status", &older.installation)),
            format!("fix:    {}", command("adopt", &older.installation)),
        ],
        PlanError::TooLarge(_) => Vec::new(),
    }
}

/// Advice for a record that is left to Git: who owns which field, and what installs it as Git declares it.
pub(super) fn git_hints(error: &ManagedInGit) -> Vec<String> {
    let (ManagedInGit::Undone { installation, .. }
    | ManagedInGit::Unset { installation, .. }
    | ManagedInGit::Created { installation, .. }) = error;
    let mut lines = look_line(&format!(
        "kubectl get addoninstallation {} -n {} -o yaml --show-managed-fields",
        installation.name, installation.namespace
    ));
    if !matches!(error, ManagedInGit::Created { .. }) {
        lines.extend(fix_line(&command("reconcile", installation)));
    }
    lines
}

/// Advice for a record of another cluster.
pub(super) fn other_cluster_hints(other: &OtherCluster) -> Vec<String> {
    vec![
        "look:   kubectl get namespace kube-system -o yaml".to_owned(),
        format!(
            "accept: {} --new-cluster",
            command("adopt", &other.installation)
        ),
    ]
}

/// Advice for objects that no installation owns: who wrote the first of them, and what adopts them.
fn refused_object_hints(objects: &[ObjectRefusal]) -> Vec<String> {
    let first = |is: fn(&RefusalReason) -> bool| objects.iter().find(|object| is(&object.reason));
    let reconciled = first(|reason| matches!(reason, RefusalReason::Reconciled { .. }));
    let free = first(|reason| matches!(reason, RefusalReason::Foreign { .. }));
    let Some(ObjectRefusal { key, reason }) = reconciled.or(free) else {
        return Vec::new();
    };
    let mut kind = key.kind.to_lowercase();
    if !key.group.is_empty() {
        kind = format!("{kind}.{}", key.group);
    }
    let namespace = key.namespace.as_ref();
    let namespace = namespace.map_or_else(String::new, |name| format!(" -n {name}"));
    let mut lines = look_line(&format!(
        "kubectl get {kind} {}{namespace} --show-managed-fields -o yaml",
        key.name
    ));
    if let RefusalReason::Reconciled { by } = reason {
        // `adopt` has its own flag.
        let flags = match typed::is_verb("adopt") {
            true => "--force",
            false => "--adopt --force-adopt",
        };
        lines.extend(fix_line(&by.suspend_command()));
        lines.push(format!(
            "accept: {flags}, once {} is suspended: deleted before that, it deletes its objects",
            by.reconciler
        ));
    } else {
        lines.push(
            "accept: --adopt, which takes over what exists and deletes nothing; --adopt --dry-run shows it"
                .to_owned(),
        );
    }
    lines
}

/// Advice for CRDs that would break live objects.
pub(super) fn breakage_hints(error: &BreakageError) -> Vec<String> {
    match error {
        BreakageError::Impossible {
            installation,
            reasons,
            ..
        } => {
            let mut lines = look_line(&command("diff", installation));
            let is_fixed =
                |reason: &ImpossibleChange| matches!(reason, ImpossibleChange::Fixed { .. });
            if reasons.iter().any(|(_, reason)| is_fixed(reason)) {
                lines.push(format!(
                    "fix:    {} --delete-crds, which also deletes their objects",
                    command("uninstall", installation)
                ));
            }
            lines
        }
        BreakageError::Breaks {
            installation, verb, ..
        } => acceptance_hints(*verb, installation, &["--allow-crd-breakage".to_owned()]),
    }
}

/// Advice for a change that would begin outside the maintenance windows.
pub(super) fn window_hints(outside: &OutsideWindow) -> Vec<String> {
    let policies = outside.window.policies.iter();
    let policies: Vec<String> = policies.map(|name| shell_word(name)).collect();
    let mut lines = look_line(&format!(
        "kubectl get addonpolicy {} -o yaml",
        policies.join(" ")
    ));
    let typed = typed::with_flags(&["--outside-window".to_owned()]);
    let accept = typed.unwrap_or_else(|| begin_now_command(&outside.installation));
    lines.push(format!("accept: {accept}"));
    lines
}

/// Returns the command that begins what the loop would begin in a maintenance window.
pub fn begin_now_command(installation: &InstallationName) -> String {
    format!("{} --outside-window", command("reconcile", installation))
}

/// Advice for CRDs that drop a version in which objects are stored.
pub(super) fn migration_hints(error: &MigrationError) -> Vec<String> {
    let MigrationError {
        installation, verb, ..
    } = error;
    acceptance_hints(
        *verb,
        installation,
        &["--migrate-stored-versions".to_owned()],
    )
}

/// Returns the command that shows the refused change and the one that accepts it: the typed command with the flag. In a loop nothing was
/// typed, so the commands name the installation. A rollback does not repeat its revision, which the user knows.
fn acceptance_hints(verb: Verb, installation: &InstallationName, flags: &[String]) -> Vec<String> {
    if let Some(accept) = typed::with_flags(flags) {
        let dry: Vec<String> = flags
            .iter()
            .cloned()
            .chain(["--dry-run".to_owned()])
            .collect();
        let look = typed::diff_command().or_else(|| typed::with_flags(&dry));
        let look = look.unwrap_or_else(|| command("diff", installation));
        return vec![format!("look:   {look}"), format!("accept: {accept}")];
    }
    let (look, accept) = match verb {
        Verb::Rollback => (
            "the same command with --dry-run=server".to_owned(),
            "the same command with".to_owned(),
        ),
        verb => (
            command("diff", installation),
            command(command_of_verb(verb), installation),
        ),
    };
    let flags = flags.join(" ");
    vec![
        format!("look:   {look}"),
        format!("accept: {accept} {flags}"),
    ]
}

/// Advice for objects that cannot be changed in place: two lines for the typed command, or for each installation.
pub(super) fn recreation_hints(error: &RecreationError) -> Vec<String> {
    let all: Vec<String> = error.refused.iter().flat_map(list_recreate_flags).collect();
    let whole = (!all.is_empty()).then(|| typed::with_flags(&all)).flatten();
    let mut lines = Vec::new();
    for refused in &error.refused {
        let flags = list_recreate_flags(refused);
        if whole.is_none() || lines.is_empty() {
            let flags = if whole.is_some() { &all } else { &flags };
            let mut accepted = acceptance_hints(refused.verb, &refused.installation, flags);
            if flags.is_empty() {
                accepted.truncate(1);
            }
            lines.extend(accepted);
        }
        let kept = refused.objects.iter();
        let kept = kept.filter_map(|it| Some(advise_without_recreation(&it.key, it.obstacle?)));
        let kept: BTreeSet<String> = kept.collect();
        lines.extend(kept.iter().flat_map(|way_out| fix_line(way_out)));
    }
    lines
}

/// Advice for an object that is never recreated.
pub(super) fn advise_without_recreation(key: &ObjectKey, obstacle: RecreationObstacle) -> String {
    match obstacle {
        RecreationObstacle::Kept(KeptKind::PersistentVolumeClaim | KeptKind::PersistentVolume) => {
            "take the change out of the manifest, or give the object another name there, and copy the data".to_owned()
        }
        RecreationObstacle::Kept(KeptKind::Namespace | KeptKind::CustomResourceDefinition)
        | RecreationObstacle::Preexisting => "take the change out of the manifest".to_owned(),
        RecreationObstacle::Claims => {
            let namespace = key.namespace.as_deref().unwrap_or_default();
            let name = &key.name;
            format!(
                "kubectl patch statefulset {name} -n {namespace} --type=merge \
                 -p '{{\"spec\":{{\"persistentVolumeClaimRetentionPolicy\":{{\"whenDeleted\":\"Retain\"}}}}}}', then add --recreate StatefulSet/{name}"
            )
        }
    }
}

/// Returns the flags that accept the deletion of objects that hold no data.
fn list_recreate_flags(refused: &RefusedRecreations) -> Vec<String> {
    let free = refused.objects.iter().filter(|it| it.obstacle.is_none());
    let mut names: Vec<String> = free
        .flat_map(Recreation::deleted_keys)
        .map(kind_and_name)
        .collect();
    names.sort();
    names.dedup();
    let flags = names.into_iter();
    flags
        .flat_map(|name| ["--recreate".to_owned(), name])
        .collect()
}

/// Advice for writes that the server refuses: the first of each kind in each installation.
pub(super) fn refusal_hints(error: &RefusalError) -> Vec<String> {
    let mut lines = Vec::new();
    for plan in &error.plans {
        for refusal in &plan.writes {
            let Some(remedy) = &refusal.remedy else {
                continue;
            };
            for line in object_hints(remedy, &refusal.key, &plan.installation) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
    }
    lines
}

fn kind_and_name(key: &ObjectKey) -> String {
    format!("{}/{}", key.kind, key.name)
}

fn command_of_verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Install => "install",
        Verb::Upgrade => "upgrade",
        Verb::Rollback => "rollback",
        Verb::Adopt => "adopt",
        Verb::Uninstall => "uninstall",
        Verb::Release => "adopt --release",
    }
}

/// Advice for unmet requirements: two lines for each.
pub(super) fn requires_hints(error: &RequiresError) -> Vec<String> {
    let mut lines = Vec::new();
    for problem in &error.problems {
        let RequirementProblem::Unmet {
            requires,
            there,
            fitting,
            elsewhere,
            ..
        } = problem
        else {
            continue;
        };
        lines.push(format!("look:   kubectl addons show {requires}"));
        if let Some(install) = elsewhere {
            lines.extend(fix_line(&adoption::adopt_command(
                install,
                requires,
                None,
                &typed::source_flags(),
            )));
            continue;
        }
        let verb = if there.is_empty() {
            "install"
        } else {
            "upgrade"
        };
        lines.push(match fitting {
            Some(fitting) => {
                let is_offered = there.is_empty() && typed::takes_flag("--with-required");
                let or = match is_offered {
                    true => "add --with-required",
                    false => "name it in the same command",
                };
                format!("fix:    kubectl addons {verb} {requires}@{fitting}, or {or}")
            }
            None => format!("fix:    add a catalogue with a version of {requires} that fits"),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use addons_plan::prune::limit::PruneLimit;
    use common::api::names::InstallationName;
    use common::manifest::key::ObjectKey;

    use super::*;

    fn till() -> InstallationName {
        InstallationName {
            namespace: "shop".to_owned(),
            name: "till".to_owned(),
        }
    }

    #[test]
    fn a_protection_is_accepted_by_a_command_for_the_same_installation() {
        let pruned = PlanError::MostlyPruned {
            installation: till(),
            verb: Verb::Upgrade,
            limit: PruneLimit::default(),
            needed: PruneLimit::new(75).unwrap(),
            prune: 9,
            there: 12,
            wanted: 3,
        };
        let look = "look:   kubectl addons diff till -n shop";
        let accept = "accept: kubectl addons upgrade till -n shop --allow-prune 75%";
        assert_eq!(plan_hints(&pruned), [look, accept]);
        let breaks = BreakageError::Breaks {
            installation: till(),
            verb: Verb::Upgrade,
            harm: "lose data in 1 Till (shop/a)".to_owned(),
        };
        let accept = "accept: kubectl addons upgrade till -n shop --allow-crd-breakage";
        assert_eq!(breakage_hints(&breaks), [look, accept]);
        let impossible = |reason| BreakageError::Impossible {
            installation: till(),
            verb: Verb::Upgrade,
            reasons: vec![(ObjectKey::default(), reason)],
        };
        let fixed = ImpossibleChange::Fixed {
            field: "spec.scope".to_owned(),
            old: "Namespaced".to_owned(),
            new: "Cluster".to_owned(),
        };
        assert_eq!(breakage_hints(&impossible(fixed)).len(), 2);
        let stored = MigrationError {
            installation: till(),
            verb: Verb::Upgrade,
            migrations: Vec::new(),
        };
        let accept = "accept: kubectl addons upgrade till -n shop --migrate-stored-versions";
        assert_eq!(migration_hints(&stored), [look, accept]);
        // An upgrade would go another way than the rollback that was refused.
        let back = MigrationError {
            verb: Verb::Rollback,
            ..stored
        };
        let [look, accept] = migration_hints(&back).try_into().unwrap();
        assert_eq!(look, "look:   the same command with --dry-run=server");
        let flag = "--migrate-stored-versions";
        assert_eq!(accept, format!("accept: the same command with {flag}"));
    }

    #[test]
    fn a_requirement_names_the_version_that_meets_it() {
        for (there, fitting, fix) in [
            (
                &[][..],
                Some("1.2.0"),
                "fix:    kubectl addons install base@1.2.0, or name it in the same command",
            ),
            (
                &["2.0.0"][..],
                Some("1.2.0"),
                "fix:    kubectl addons upgrade base@1.2.0, or name it in the same command",
            ),
            (
                &[][..],
                None,
                "fix:    add a catalogue with a version of base that fits",
            ),
        ] {
            let unmet = RequirementProblem::Unmet {
                addon: "top 1".to_owned(),
                requires: "base".to_owned(),
                constraint: None,
                there: there.iter().map(|version| (*version).to_owned()).collect(),
                fitting: fitting.map(str::to_owned),
                elsewhere: None,
            };
            let error = RequiresError {
                problems: vec![unmet],
            };
            let look = "look:   kubectl addons show base";
            assert_eq!(requires_hints(&error), [look, fix]);
        }
    }
}
