//! Advice below an error: commands to look with, and commands that resolve it.

mod adoption;
mod airgap;
mod core;
mod directory;
mod namespace;
mod object;
mod plan;
mod refused;
mod rollback;
mod set;
mod source;
mod values;

use addons_engine::EngineError;
use addons_engine::remote::RemoteError;
use addons_engine::template_facts::OverlayError;
use addons_operation::attempt::AttemptError;
use addons_operation::choose::ChooseError;
use addons_operation::error::Dependents;
use addons_operation::error::IndexesError;
use addons_operation::error::NotServed;
use addons_operation::error::{ChangedRelease, ForeignRelease, ModeError};
use addons_operation::text::shell_word;
use addons_operation::{OperationError, continued, name_of};
use addons_plan::continuation::Continuation;
use addons_plan::file::FileError;
use addons_plan::file::Moved;
use common::api::installation::{AddonInstallation, HelmRelease};
use common::api::names::InstallationName;
use common::catalogue::orphan::Lost;
use common::foreign::Foreign;
use common::values::ValuesError;

use super::typed;

pub use object::of_object;
pub use set::repair;
pub use source::of_unread;

/// Returns the advice for an error. Empty if there is none better than the error itself.
pub fn lines(error: &(dyn std::error::Error + 'static)) -> Vec<String> {
    let lines = chain(error).find_map(|cause| {
        let operation = cause.downcast_ref().map(set::of_set);
        operation
            .or_else(|| cause.downcast_ref().map(of_operation))
            .or_else(|| cause.downcast_ref().map(of_choice))
            .or_else(|| cause.downcast_ref().map(of_engine))
            .or_else(|| cause.downcast_ref().map(of_file))
            .or_else(|| cause.downcast_ref().map(source::of_catalogue))
            .or_else(|| cause.downcast_ref().map(source::of_url))
            .or_else(|| cause.downcast_ref().map(source::of_binary))
            .or_else(|| cause.downcast_ref().map(airgap::of_airgap))
    });
    lines.unwrap_or_default()
}

/// Iterates over an error and its causes.
pub fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |cause| cause.source())
}

/// Formats lines of advice below a message, each after a line break and indented to the first word of an error.
pub fn below(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("\n       {}", Foreign::new(line)))
        .collect()
}

/// `kubectl addons VERB NAME -n NAMESPACE`.
pub fn command(verb: &str, installation: &InstallationName) -> String {
    format!(
        "kubectl addons {verb} {} -n {}",
        installation.name, installation.namespace
    )
}

/// Returns the command that restores edited or deleted objects.
pub fn restored_by(record: &AddonInstallation) -> String {
    continued::command(&Continuation::restoring(record), &name_of(record))
}

fn of_operation(error: &OperationError) -> Vec<String> {
    if let Some(lines) = directory::of_directory(error) {
        return lines;
    }
    match error.root() {
        OperationError::UnknownCatalogue { .. } => look("kubectl addons catalogue list --core"),
        OperationError::UnknownInstallation { near: None, .. } => {
            look(&("kubectl addons list".to_owned() + &typed::clusters()))
        }
        OperationError::NotLocal(found) => namespace::of_namespace(found),
        OperationError::Remote(RemoteError::SameCluster { namespace, .. }) => {
            namespace::of_own_cluster(namespace)
        }
        OperationError::NotListed(_) => {
            fix("add -n NAMESPACE, a namespace in which you may list installations")
        }
        OperationError::Suspended(installation) => patch(installation, r#""suspend":false"#),
        OperationError::NoAccount(installation) => {
            patch(installation, r#""serviceAccountName":"NAME""#)
        }
        OperationError::Unfinished(begun) => adoption::of_unfinished(begun),
        OperationError::RolloutFailed(failed) => fix(&command("upgrade", &failed.installation)),
        OperationError::Attempt(
            AttemptError::Killed { installation, .. } | AttemptError::Slow { installation, .. },
        ) => fix(&command("upgrade", installation)),
        OperationError::Ambiguous { .. } => fix("add --namespace NAMESPACE"),
        OperationError::Downgrade {
            installation,
            addon,
            to,
            ..
        } => of_downgrade(installation, addon, to),
        OperationError::Orphaned { installation, lost } => {
            let (Lost::Catalogue { catalogue } | Lost::Addon { catalogue, .. }) = lost;
            vec![
                format!("fix:    kubectl addons catalogue add FILE --name {catalogue}"),
                format!("fix:    {}", command("uninstall", installation)),
            ]
        }
        OperationError::NoIndex {
            installation,
            error,
        } => of_index(installation, error),
        OperationError::Indexes(error) => of_indexes(error),
        OperationError::Member(error) => set::of_member(error),
        OperationError::NoKubernetesVersion => fix("add --k8s VERSION"),
        OperationError::Choose(error) => of_choice(error),
        OperationError::Engine(error) => of_engine(error),
        OperationError::Adopt(error) => adoption::of_adoption(error),
        OperationError::Restore(error) => core::of_restore(error),
        OperationError::Rollback(error) => rollback::of_rollback(error),
        OperationError::OtherCluster(other) => plan::of_other_cluster(other),
        OperationError::Plan(error) => plan::of_plan(error),
        OperationError::Breakage(error) => plan::of_breakage(error),
        OperationError::Migration(error) => plan::of_migration(error),
        OperationError::Recreation(error) => plan::of_recreation(error),
        OperationError::Refusal(error) => plan::of_refusal(error),
        OperationError::Requires(error) => plan::of_requires(error),
        OperationError::Values(ValuesError::NoValue { path }) => fix(&set(path)),
        OperationError::Refused(refused) => refused::of(refused),
        OperationError::ValuesFrom(error) => values::of_values(error),
        OperationError::Overlay(OverlayError::NotValues(why)) => values::of_secret(why),
        OperationError::NotServed(error) => of_types(error),
        OperationError::Dependents(error) => of_dependents(error),
        OperationError::LookupUnreadable { error, .. } => of_engine(error),
        OperationError::Mode(error) => of_mode(error),
        OperationError::ForeignRelease(foreign) => of_release(foreign),
        OperationError::ChangedRelease(changed) => of_changed_release(changed),
        OperationError::InGit(error) => plan::of_git(error),
        OperationError::Moved(moved) => of_moved(moved),
        other => source::of_operation(other),
    }
}

fn of_downgrade(installation: &InstallationName, addon: &str, to: &str) -> Vec<String> {
    let (name, namespace) = (&installation.name, &installation.namespace);
    let accept = typed::with(&["--allow-downgrade".to_owned()]);
    let accept = accept.unwrap_or_else(|| {
        format!("kubectl addons upgrade {name}@{to} -n {namespace} --allow-downgrade")
    });
    vec![
        format!("look:   kubectl addons show {addon}{}", typed::source()),
        format!("accept: {accept}"),
    ]
}

/// Returns the command that sets a field of the spec.
pub fn patch(installation: &InstallationName, field: &str) -> Vec<String> {
    fix(&format!(
        "kubectl patch addoninstallation {} -n {} --type=merge -p '{{\"spec\":{{{field}}}}}'",
        installation.name, installation.namespace
    ))
}

/// A plan file has neither the values nor the set that it was made from, so the command that made it is not guessed.
fn of_moved(moved: &Moved) -> Vec<String> {
    let mut lines = Vec::new();
    if moved.addons.is_empty() {
        let gone = moved.gone.join(" ");
        lines = look(&format!("kubectl addons uninstall {gone} --dry-run"));
    }
    lines.extend(fix(
        "write the plan again with the command that wrote it, and apply that",
    ));
    lines
}

fn of_indexes(error: &IndexesError) -> Vec<String> {
    match error {
        IndexesError::TwoHashes { .. } => fix("apply the indexes one after another"),
        IndexesError::MostlyRemoved { .. } => vec!["accept: --allow-prune 100%".to_owned()],
    }
}

/// Advice for a release that belongs to another tool.
fn of_release(foreign: &ForeignRelease) -> Vec<String> {
    let (release, namespace) = (&foreign.release, &foreign.namespace);
    vec![
        format!("look:   helm history {release} -n {namespace}"),
        "fix:    choose another name: --name NAME, or template.helm.releaseName of the catalogue"
            .to_owned(),
    ]
}

/// Advice for a release that another client changed: helm would not continue from it.
fn of_changed_release(changed: &ChangedRelease) -> Vec<String> {
    let HelmRelease { name, namespace } = &changed.release;
    vec![
        format!("look:   helm history {name} -n {namespace}"),
        format!(
            "accept: {} --repair --adopt",
            command("upgrade", &changed.installation)
        ),
    ]
}

/// Advice for an installation whose index cannot be read.
fn of_index(installation: &InstallationName, error: &OperationError) -> Vec<String> {
    let lines = of_operation(error);
    if !lines.is_empty() {
        return lines;
    }
    // The server may only be down: do not suggest to uninstall anything.
    fix(&format!(
        "{} --channel INDEX, if it has moved",
        command("upgrade", installation)
    ))
}

/// Advice for types that the cluster does not serve.
fn of_types(error: &NotServed) -> Vec<String> {
    let mut groups: Vec<&str> = error.types.iter().map(|it| it.group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    let looks = groups.iter();
    let mut lines: Vec<String> = looks
        .map(|group| format!("look:   kubectl api-resources --api-group={group}"))
        .collect();
    lines.push(
        "fix:    install the add-on that defines it, or wait longer: --timeout DURATION".to_owned(),
    );
    lines
}

/// Advice for installations that stay and require one that is uninstalled.
fn of_dependents(error: &Dependents) -> Vec<String> {
    let names = error.together.join(" ");
    let all = if error.together.len() == 2 {
        "both"
    } else {
        "all of them"
    };
    vec![
        "look:   kubectl addons list".to_owned(),
        format!("fix:    kubectl addons uninstall {names}, which removes {all}"),
    ]
}

fn of_engine(error: &EngineError) -> Vec<String> {
    match error {
        EngineError::NotInitialised => fix("kubectl addons init"),
        EngineError::Denied { message, .. } => refused::of_group(message).into_iter().collect(),
        EngineError::Locked { installation, .. } => vec![
            format!("look:   {}", command("status", installation)),
            "accept: --steal-lock, which takes over at once".to_owned(),
        ],
        _ => Vec::new(),
    }
}

/// The `look:` line of a command that only reads.
pub fn look(command: &str) -> Vec<String> {
    vec![format!("look:   {command}")]
}

/// The `fix:` line of a command that resolves a problem.
pub fn fix(command: &str) -> Vec<String> {
    vec![format!("fix:    {command}")]
}

fn of_choice(error: &ChooseError) -> Vec<String> {
    match error {
        ChooseError::Unknown { name, .. } if is_path(name) => of_path(name),
        ChooseError::Unknown { near: Some(_), .. } => Vec::new(),
        ChooseError::Unknown { nothing: true, .. } => vec![
            "look:   kubectl addons catalogue list".to_owned(),
            "fix:    kubectl addons catalogue add FILE".to_owned(),
        ],
        ChooseError::Unknown { .. } => {
            look(&("kubectl addons search".to_owned() + &typed::source()))
        }
        ChooseError::Unread { catalogue, .. } => of_unread(catalogue),
        ChooseError::Held { holder, .. } if typed::is_verb("install") => {
            fix(&format!("write --catalogue {holder}"))
        }
        ChooseError::Held { holder, .. } => {
            fix(&format!("kubectl addons upgrade NAME --catalogue {holder}"))
        }
        ChooseError::NoSuchVersion { name, .. } | ChooseError::DoesNotFit { name, .. } => {
            look(&format!("kubectl addons show {name}{}", typed::source()))
        }
    }
}

/// Whether a name that no catalogue has is an existing path.
fn is_path(name: &str) -> bool {
    name.contains('/') && std::path::Path::new(name).exists()
}

/// Advice for a path in place of a name: `install` takes a path if it begins with `.` or `/`, other commands take names.
fn of_path(path: &str) -> Vec<String> {
    let has_beginning = path.starts_with(['.', '/']);
    if typed::is_verb("install") && !has_beginning {
        return fix(&format!("write ./{path}, if that path is meant"));
    }
    if typed::takes("--channel") {
        let channel = shell_word(path);
        return fix(&format!(
            "name the add-on instead, with --channel {channel}"
        ));
    }
    look("kubectl addons list")
}

fn of_file(error: &FileError) -> Vec<String> {
    let fix = "fix:    write it again with the command that wrote it".to_owned();
    match error {
        FileError::TooLarge => Vec::new(),
        FileError::NotAPlan { .. } | FileError::NotJson { .. } | FileError::Refused(_) => {
            vec!["fix:    a plan file is made by: kubectl addons plan NAME… -o FILE".to_owned()]
        }
        FileError::Tampered { .. } | FileError::NotExpected { .. } => {
            vec![
                "look:   compare it with the plan that was reviewed".to_owned(),
                fix,
            ]
        }
        FileError::OtherVersion { .. } | FileError::Malformed(_) => {
            vec![fix]
        }
    }
}

fn of_mode(error: &ModeError) -> Vec<String> {
    let (ModeError::OtherRelease { name, .. } | ModeError::OtherMode { name, .. }) = error;
    vec![
        format!("look:   kubectl addons status {name}"),
        format!("fix:    kubectl addons uninstall {name}, then install it again"),
    ]
}

/// `--set spec.host=VALUE`
fn set(name: &str) -> String {
    format!("--set {}", shell_word(&format!("{name}=VALUE")))
}

#[cfg(test)]
mod tests {
    use addons_plan::file::{Difference, Moved};

    use super::*;

    #[test]
    fn a_plan_that_moved_is_written_again_by_its_own_command() {
        let fix = "fix:    write the plan again with the command that wrote it, and apply that";
        let look = "look:   kubectl addons uninstall web --dry-run";
        let web = |name: &str| vec![name.to_owned()];
        for (addons, gone, expect) in [
            (web("web@1.1.0"), Vec::new(), vec![fix]),
            // It may have been a set that web left.
            (Vec::new(), web("web"), vec![look, fix]),
        ] {
            let moved = Moved {
                differences: vec![Difference::new("shop/ConfigMap a", "it is gone")],
                addons,
                gone,
            };
            let error = anyhow::Error::from(OperationError::from(moved));
            assert_eq!(lines(error.as_ref()), expect);
        }
    }

    #[test]
    fn flags_survive_a_shell() {
        for (name, expected) in [
            ("spec.host", "--set spec.host=VALUE"),
            (r"host\.name", r"--set 'host\.name=VALUE'"),
            ("it's", r"--set 'it'\''s=VALUE'"),
        ] {
            assert_eq!(set(name), expected);
        }
    }
}
