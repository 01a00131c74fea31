//! Advice if a plan is refused as a whole.

use std::collections::BTreeSet;

use addons_operation::error::InGit;
use addons_plan::Verb;
use addons_plan::crd_safety::{BreakageError, Impossible};
use addons_plan::immutable::{Obstacle, Recreation, RecreationError, Refused};
use addons_plan::migration::MigrationError;
use addons_plan::planner::{PlanError, Refusal, RefusalReason};
use addons_plan::prune::KeptKind;
use addons_plan::refusal::RefusalError;
use addons_plan::requires::{Problem, RequiresError};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::pin::OtherCluster;

use super::{command, fix, look, of_object, typed};
use crate::words::adoption;

/// Advice for a plan that could not be made.
pub(super) fn of_plan(error: &PlanError) -> Vec<String> {
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
            accepted(
                verb,
                installation,
                &["--allow-prune".to_owned(), needed.to_string()],
            )
        }
        PlanError::Refused { objects } => of_refused(objects),
        PlanError::RecordOlder(older) => vec![
            format!("look:   {}", command("status", &older.installation)),
            format!("fix:    {}", command("adopt", &older.installation)),
        ],
        PlanError::TooLarge(_) => Vec::new(),
    }
}

/// Advice for a record that is left to Git: who owns which field, and what installs it as Git declares it.
pub(super) fn of_git(error: &InGit) -> Vec<String> {
    let (InGit::Undone { installation, .. }
    | InGit::Unset { installation, .. }
    | InGit::Created { installation, .. }) = error;
    let mut lines = look(&format!(
        "kubectl get addoninstallation {} -n {} -o yaml --show-managed-fields",
        installation.name, installation.namespace
    ));
    if !matches!(error, InGit::Created { .. }) {
        lines.extend(fix(&command("reconcile", installation)));
    }
    lines
}

/// Advice for a record of another cluster.
pub(super) fn of_other_cluster(other: &OtherCluster) -> Vec<String> {
    vec![
        "look:   kubectl get namespace kube-system -o yaml".to_owned(),
        format!(
            "accept: {} --new-cluster",
            command("adopt", &other.installation)
        ),
    ]
}

/// Advice for objects that no installation owns: who wrote the first of them, and what adopts them.
fn of_refused(objects: &[Refusal]) -> Vec<String> {
    let first = |is: fn(&RefusalReason) -> bool| objects.iter().find(|object| is(&object.reason));
    let reconciled = first(|reason| matches!(reason, RefusalReason::Reconciled { .. }));
    let free = first(|reason| matches!(reason, RefusalReason::Foreign { .. }));
    let Some(Refusal { key, reason }) = reconciled.or(free) else {
        return Vec::new();
    };
    let mut kind = key.kind.to_lowercase();
    if !key.group.is_empty() {
        kind = format!("{kind}.{}", key.group);
    }
    let namespace = key.namespace.as_ref();
    let namespace = namespace.map_or_else(String::new, |name| format!(" -n {name}"));
    let mut lines = look(&format!(
        "kubectl get {kind} {}{namespace} --show-managed-fields -o yaml",
        key.name
    ));
    if let RefusalReason::Reconciled { by } = reason {
        // `adopt` has its own flag.
        let flags = match typed::is_verb("adopt") {
            true => "--force",
            false => "--adopt --force-adopt",
        };
        lines.extend(fix(&by.suspension()));
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
pub(super) fn of_breakage(error: &BreakageError) -> Vec<String> {
    match error {
        BreakageError::Impossible {
            installation,
            reasons,
            ..
        } => {
            let mut lines = look(&command("diff", installation));
            let is_fixed = |reason: &Impossible| matches!(reason, Impossible::Fixed { .. });
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
        } => accepted(*verb, installation, &["--allow-crd-breakage".to_owned()]),
    }
}

/// Advice for CRDs that drop a version in which objects are stored.
pub(super) fn of_migration(error: &MigrationError) -> Vec<String> {
    let MigrationError {
        installation, verb, ..
    } = error;
    accepted(
        *verb,
        installation,
        &["--migrate-stored-versions".to_owned()],
    )
}

/// Returns the command that shows the refused change and the one that accepts it: the typed command with the flag. In a loop nothing was
/// typed, so the commands name the installation. A rollback does not repeat its revision, which the user knows.
fn accepted(verb: Verb, installation: &InstallationName, flags: &[String]) -> Vec<String> {
    if let Some(accept) = typed::with(flags) {
        let dry: Vec<String> = flags
            .iter()
            .cloned()
            .chain(["--dry-run".to_owned()])
            .collect();
        let look = typed::diff().or_else(|| typed::with(&dry));
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
            command(of_verb(verb), installation),
        ),
    };
    let flags = flags.join(" ");
    vec![
        format!("look:   {look}"),
        format!("accept: {accept} {flags}"),
    ]
}

/// Advice for objects that cannot be changed in place: two lines for the typed command, or for each installation.
pub(super) fn of_recreation(error: &RecreationError) -> Vec<String> {
    let all: Vec<String> = error.refused.iter().flat_map(recreate_flags).collect();
    let whole = (!all.is_empty()).then(|| typed::with(&all)).flatten();
    let mut lines = Vec::new();
    for refused in &error.refused {
        let flags = recreate_flags(refused);
        if whole.is_none() || lines.is_empty() {
            let flags = if whole.is_some() { &all } else { &flags };
            let mut accepted = accepted(refused.verb, &refused.installation, flags);
            if flags.is_empty() {
                accepted.truncate(1);
            }
            lines.extend(accepted);
        }
        let kept = refused.objects.iter();
        let kept = kept.filter_map(|it| Some(without_recreation(&it.key, it.obstacle?)));
        let kept: BTreeSet<String> = kept.collect();
        lines.extend(kept.iter().flat_map(|way_out| fix(way_out)));
    }
    lines
}

/// Advice for an object that is never recreated.
pub(super) fn without_recreation(key: &ObjectKey, obstacle: Obstacle) -> String {
    match obstacle {
        Obstacle::Kept(KeptKind::PersistentVolumeClaim | KeptKind::PersistentVolume) => {
            "take the change out of the manifest, or give the object another name there, and copy the data".to_owned()
        }
        Obstacle::Kept(KeptKind::Namespace | KeptKind::CustomResourceDefinition)
        | Obstacle::Preexisting => "take the change out of the manifest".to_owned(),
        Obstacle::Claims => {
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
fn recreate_flags(refused: &Refused) -> Vec<String> {
    let free = refused.objects.iter().filter(|it| it.obstacle.is_none());
    let mut names: Vec<String> = free.flat_map(Recreation::deleted).map(named).collect();
    names.sort();
    names.dedup();
    let flags = names.into_iter();
    flags
        .flat_map(|name| ["--recreate".to_owned(), name])
        .collect()
}

/// Advice for writes that the server refuses: the first of each kind in each installation.
pub(super) fn of_refusal(error: &RefusalError) -> Vec<String> {
    let mut lines = Vec::new();
    for plan in &error.plans {
        for refusal in &plan.writes {
            let Some(remedy) = &refusal.remedy else {
                continue;
            };
            for line in of_object(remedy, &refusal.key, &plan.installation) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
    }
    lines
}

fn named(key: &ObjectKey) -> String {
    format!("{}/{}", key.kind, key.name)
}

fn of_verb(verb: Verb) -> &'static str {
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
pub(super) fn of_requires(error: &RequiresError) -> Vec<String> {
    let mut lines = Vec::new();
    for problem in &error.problems {
        let Problem::Unmet {
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
            lines.extend(fix(&adoption::command(
                install,
                requires,
                None,
                &typed::source(),
            )));
            continue;
        }
        let verb = if there.is_empty() {
            "install"
        } else {
            "upgrade"
        };
        lines.push(match fitting {
            Some(fitting) => format!(
                "fix:    kubectl addons {verb} {requires}@{fitting}, or name it in the same command"
            ),
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
        assert_eq!(of_plan(&pruned), [look, accept]);
        let breaks = BreakageError::Breaks {
            installation: till(),
            verb: Verb::Upgrade,
            harm: "lose data in 1 Till (shop/a)".to_owned(),
        };
        let accept = "accept: kubectl addons upgrade till -n shop --allow-crd-breakage";
        assert_eq!(of_breakage(&breaks), [look, accept]);
        let impossible = |reason| BreakageError::Impossible {
            installation: till(),
            verb: Verb::Upgrade,
            reasons: vec![(ObjectKey::default(), reason)],
        };
        let fixed = Impossible::Fixed {
            field: "spec.scope".to_owned(),
            old: "Namespaced".to_owned(),
            new: "Cluster".to_owned(),
        };
        assert_eq!(of_breakage(&impossible(fixed)).len(), 2);
        let stored = MigrationError {
            installation: till(),
            verb: Verb::Upgrade,
            migrations: Vec::new(),
        };
        let accept = "accept: kubectl addons upgrade till -n shop --migrate-stored-versions";
        assert_eq!(of_migration(&stored), [look, accept]);
        // An upgrade would go another way than the rollback that was refused.
        let back = MigrationError {
            verb: Verb::Rollback,
            ..stored
        };
        let [look, accept] = of_migration(&back).try_into().unwrap();
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
            let unmet = Problem::Unmet {
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
            assert_eq!(of_requires(&error), [look, fix]);
        }
    }
}
