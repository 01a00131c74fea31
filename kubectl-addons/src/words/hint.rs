//! Advice below an error: commands to look with, and commands that resolve it.

mod adoption;
mod directory;
mod distribution;
mod line;
mod object;
mod plan;
mod refused;
mod rollback;
mod set;
mod source;
mod version;

use addons_airgap::AirgapError;
use addons_engine::EngineError;
use addons_engine::remote::RemoteError;
use addons_engine::template_facts::OverlayError;
use addons_operation::error::{
    AttemptError, ChangedRelease, Dependents, ForeignRelease, IndexesError, ModeError, NotLocal,
    NotServed, ValuesFromError,
};
use addons_operation::execute::continued;
use addons_operation::resolve::choose::ChooseError;
use addons_operation::text::shell_word;
use addons_operation::{OperationError, name_of};
use addons_plan::continuation::Continuation;
use addons_plan::file::{FileError, PlanOutdated};
use addons_sources::layout::LayoutArchiveError;
use addons_sources::registry::push::PushError;
use common::api::installation::{AddonInstallation, HelmRelease};
use common::api::names::{
    CLUSTER_LOCAL, InstallationName, LABEL_CLUSTER, LABEL_KUBECONFIG_SECRET, LABEL_VALUES,
    is_reserved,
};
use common::catalogue::orphan::MissingOrigin;
use common::causes::causes;
use common::values::ValuesError;
use common::values::secret::SecretValuesError;

use super::typed;

pub use line::{command, fix_line, indent_lines, look_line};
pub use object::object_hints;
pub use plan::begin_now_command;
pub use set::repair_command;
pub use source::unread_catalogue_hints;

/// Returns the advice for an error. Empty if there is none better than the error itself.
pub fn hint_lines(error: &(dyn std::error::Error + 'static)) -> Vec<String> {
    let lines = causes(error).find_map(|cause| {
        let operation = cause.downcast_ref().map(set::set_hints);
        operation
            .or_else(|| cause.downcast_ref().map(operation_hints))
            .or_else(|| cause.downcast_ref().map(choice_hints))
            .or_else(|| cause.downcast_ref().map(engine_hints))
            .or_else(|| cause.downcast_ref().map(plan_file_hints))
            .or_else(|| cause.downcast_ref().map(source::catalogue_hints))
            .or_else(|| cause.downcast_ref().map(source::storable_hints))
            .or_else(|| cause.downcast_ref().map(source::url_hints))
            .or_else(|| cause.downcast_ref().map(source::helm_hints))
            .or_else(|| cause.downcast_ref().map(source::signing_key_hints))
            .or_else(|| cause.downcast_ref().map(airgap_hints))
            .or_else(|| cause.downcast_ref().map(distribution::distribution_hints))
    });
    lines.unwrap_or_default()
}

/// Returns the command that restores edited or deleted objects.
pub fn restore_command(record: &AddonInstallation) -> String {
    continued::command(&Continuation::for_restore(record), &name_of(record))
}

fn operation_hints(error: &OperationError) -> Vec<String> {
    if let Some(lines) = directory::directory_hints(error) {
        return lines;
    }
    match error.root() {
        OperationError::UnknownCatalogue { near: None, .. } => {
            look_line("kubectl addons catalogue list --core")
        }
        OperationError::UnknownInstallation {
            name,
            offered: true,
            ..
        } => fix_line(&format!(
            "kubectl addons install {}{}",
            shell_word(&typed::versioned_name(name)),
            typed::source_flags()
        )),
        OperationError::UnknownInstallation { name, .. } if version::is_misplaced(name) => {
            version::misplaced_hints(name)
        }
        OperationError::UnknownInstallation { near: None, .. } => {
            look_line(&("kubectl addons list".to_owned() + &typed::cluster_flags()))
        }
        OperationError::NotLocal(found) => namespace_hints(found),
        OperationError::Remote(RemoteError::SameCluster { namespace, .. }) => {
            own_cluster_hints(namespace)
        }
        OperationError::NotListed(_) => {
            fix_line("add -n NAMESPACE, a namespace in which you may list installations")
        }
        OperationError::Suspended(installation) => patch_hint(installation, r#""suspend":false"#),
        OperationError::NoAccount(installation) => {
            patch_hint(installation, r#""serviceAccountName":"NAME""#)
        }
        OperationError::Unfinished(begun) => adoption::unfinished_hints(begun),
        OperationError::RolloutFailed(failed) => {
            fix_line(&command("upgrade", &failed.installation))
        }
        OperationError::OutsideWindow(outside) => plan::window_hints(outside),
        OperationError::Attempt(
            AttemptError::Killed { installation, .. } | AttemptError::Slow { installation, .. },
        ) => fix_line(&command("upgrade", installation)),
        OperationError::Ambiguous { .. } => fix_line("add --namespace NAMESPACE"),
        OperationError::Downgrade {
            installation,
            addon,
            to,
            ..
        } => downgrade_hints(installation, addon, to),
        OperationError::Orphaned { installation, lost } => {
            let (MissingOrigin::Catalogue { catalogue } | MissingOrigin::Addon { catalogue, .. }) =
                lost;
            vec![
                format!("fix:    kubectl addons catalogue add FILE --name {catalogue}"),
                format!("fix:    {}", command("uninstall", installation)),
            ]
        }
        OperationError::NoIndex {
            installation,
            error,
        } => index_hints(installation, error),
        OperationError::Indexes(error) => indexes_hints(error),
        OperationError::Member(error) => set::member_hints(error),
        OperationError::NoKubernetesVersion => fix_line("add --k8s VERSION"),
        OperationError::Choose(error) => choice_hints(error),
        OperationError::Engine(error) => engine_hints(error),
        OperationError::Adopt(error) => adoption::adoption_hints(error),
        OperationError::Rollback(error) => rollback::rollback_hints(error),
        OperationError::OtherCluster(other) => plan::other_cluster_hints(other),
        OperationError::Plan(error) => plan::plan_hints(error),
        OperationError::Breakage(error) => plan::breakage_hints(error),
        OperationError::Migration(error) => plan::migration_hints(error),
        OperationError::Recreation(error) => plan::recreation_hints(error),
        OperationError::Refusal(error) => plan::refusal_hints(error),
        OperationError::Requires(error) => plan::requires_hints(error),
        OperationError::Values(ValuesError::NoValue { path }) => fix_line(&line::set_flag(path)),
        OperationError::Refused(refused) => refused::refused_hints(refused),
        OperationError::ValuesFrom(error) => values_hints(error),
        OperationError::Overlay(OverlayError::NotValues(why)) => secret_hints(why),
        OperationError::NotServed(error) => unserved_types_hints(error),
        OperationError::Dependents(error) => dependents_hints(error),
        OperationError::LookupUnreadable { error, .. } => engine_hints(error),
        OperationError::Mode(error) => mode_hints(error),
        OperationError::ForeignRelease(foreign) => foreign_release_hints(foreign),
        OperationError::ChangedRelease(changed) => changed_release_hints(changed),
        OperationError::InGit(error) => plan::git_hints(error),
        OperationError::Moved(moved) => moved_hints(moved),
        other => source::source_operation_hints(other),
    }
}

fn downgrade_hints(installation: &InstallationName, addon: &str, to: &str) -> Vec<String> {
    let (name, namespace) = (&installation.name, &installation.namespace);
    let accept = typed::with_flags(&["--allow-downgrade".to_owned()]);
    let accept = accept.unwrap_or_else(|| {
        format!("kubectl addons upgrade {name}@{to} -n {namespace} --allow-downgrade")
    });
    vec![
        format!(
            "look:   kubectl addons show {addon}{}",
            typed::source_flags()
        ),
        format!("accept: {accept}"),
    ]
}

/// Returns the command that sets a field of the spec.
pub fn patch_hint(installation: &InstallationName, field: &str) -> Vec<String> {
    fix_line(&format!(
        "kubectl patch addoninstallation {} -n {} --type=merge -p '{{\"spec\":{{{field}}}}}'",
        installation.name, installation.namespace
    ))
}

/// A plan file has neither the values nor the set that it was made from, so the command that made it is not guessed.
fn moved_hints(moved: &PlanOutdated) -> Vec<String> {
    let mut lines = Vec::new();
    if moved.addons.is_empty() {
        let gone = moved.gone.join(" ");
        lines = look_line(&format!("kubectl addons uninstall {gone} --dry-run"));
    }
    lines.extend(fix_line(
        "write the plan again with the command that wrote it, and apply that",
    ));
    lines
}

fn indexes_hints(error: &IndexesError) -> Vec<String> {
    match error {
        IndexesError::TwoHashes { .. } => fix_line("apply the indexes one after another"),
        IndexesError::MostlyRemoved { .. } => vec!["accept: --allow-prune 100%".to_owned()],
    }
}

/// Advice for a release that belongs to another tool.
fn foreign_release_hints(foreign: &ForeignRelease) -> Vec<String> {
    let (release, namespace) = (&foreign.release, &foreign.namespace);
    vec![
        format!("look:   helm history {release} -n {namespace}"),
        "fix:    choose another name: --name NAME, or template.helm.releaseName of the catalogue"
            .to_owned(),
    ]
}

/// Advice for a release that another client changed: helm would not continue from it.
fn changed_release_hints(changed: &ChangedRelease) -> Vec<String> {
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
fn index_hints(installation: &InstallationName, error: &OperationError) -> Vec<String> {
    let lines = operation_hints(error);
    if !lines.is_empty() {
        return lines;
    }
    // The server may only be down: do not suggest to uninstall anything.
    fix_line(&format!(
        "{} --channel INDEX, if it has moved",
        command("upgrade", installation)
    ))
}

/// Advice for types that the cluster does not serve.
fn unserved_types_hints(error: &NotServed) -> Vec<String> {
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
fn dependents_hints(error: &Dependents) -> Vec<String> {
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

fn engine_hints(error: &EngineError) -> Vec<String> {
    match error {
        EngineError::NotInitialised => fix_line("kubectl addons init"),
        EngineError::Unauthorized { .. } => fix_line(
            "renew the token or certificate in the kubeconfig, or name another context with --context",
        ),
        EngineError::NotKubernetes { .. } => {
            fix_line("correct --server, or the cluster in the kubeconfig")
        }
        EngineError::Denied { message, .. } => refused::group_hint(message).into_iter().collect(),
        EngineError::Locked { installation, .. } => vec![
            format!("look:   {}", command("status", installation)),
            "accept: --steal-lock, which takes over at once".to_owned(),
        ],
        _ => Vec::new(),
    }
}

fn choice_hints(error: &ChooseError) -> Vec<String> {
    match error {
        ChooseError::Unknown { name, .. } if is_path(name) => path_hints(name),
        ChooseError::Unknown { name, .. } if version::is_misplaced(name) => {
            version::misplaced_hints(name)
        }
        ChooseError::Unknown { near: Some(_), .. } => Vec::new(),
        ChooseError::Unknown { nothing: true, .. } => vec![
            "look:   kubectl addons catalogue list".to_owned(),
            "fix:    kubectl addons catalogue add FILE".to_owned(),
        ],
        ChooseError::Unknown { .. } => {
            look_line(&("kubectl addons search".to_owned() + &typed::source_flags()))
        }
        ChooseError::Unread { catalogue, .. } => unread_catalogue_hints(catalogue),
        ChooseError::Held { holder, .. } if typed::is_verb("install") => {
            fix_line(&format!("write --catalogue {holder}"))
        }
        ChooseError::Held { holder, .. } => {
            fix_line(&format!("kubectl addons upgrade NAME --catalogue {holder}"))
        }
        ChooseError::NoSuchVersion { name, .. } | ChooseError::DoesNotFit { name, .. } => {
            look_line(&format!(
                "kubectl addons show {name}{}",
                typed::source_flags()
            ))
        }
    }
}

/// Whether a name that no catalogue has is an existing path.
fn is_path(name: &str) -> bool {
    name.contains('/') && std::path::Path::new(name).exists()
}

/// Advice for a path in place of a name: `install` takes a path if it begins with `.` or `/`, other commands take names.
fn path_hints(path: &str) -> Vec<String> {
    let has_beginning = path.starts_with(['.', '/']);
    if typed::is_verb("install") && !has_beginning {
        return fix_line(&format!("write ./{path}, if that path is meant"));
    }
    if typed::takes_flag("--channel") {
        let channel = shell_word(path);
        return fix_line(&format!(
            "name the add-on instead, with --channel {channel}"
        ));
    }
    look_line("kubectl addons list")
}

fn plan_file_hints(error: &FileError) -> Vec<String> {
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

fn mode_hints(error: &ModeError) -> Vec<String> {
    let (ModeError::OtherRelease { name, .. } | ModeError::OtherMode { name, .. }) = error;
    vec![
        format!("look:   kubectl addons status {name}"),
        format!("fix:    kubectl addons uninstall {name}, then install it again"),
    ]
}

/// Advice if an archive cannot be made, or not pushed to a registry.
fn airgap_hints(error: &AirgapError) -> Vec<String> {
    match error {
        AirgapError::Operation(error) => operation_hints(error),
        AirgapError::Registry(error)
        | AirgapError::Push(PushError::Registry(error))
        | AirgapError::Layout(LayoutArchiveError::Registry(error)) => source::registry_hints(error),
        AirgapError::Key(error) => source::signing_key_hints(error),
        AirgapError::OtherSigner { .. } => {
            fix_line("sign with the private key of spec.signature.key, or change that")
        }
        AirgapError::OtherRegistry { registry, .. } => fix_line(&format!(
            "publish below oci://{registry}, or remove spec.registry"
        )),
        _ => Vec::new(),
    }
}

/// Advice for a namespace that stands for no cluster.
fn namespace_hints(found: &NotLocal) -> Vec<String> {
    let NotLocal {
        asked: namespace,
        system,
        ..
    } = found;
    if typed::takes_flag("--target-namespace") {
        let objects = fix_line(&format!(
            "--target-namespace {namespace}, for the objects of an add-on; -n is for its record"
        ));
        if !found.exists || is_reserved(namespace) {
            // A missing namespace has no labels, and is created with the add-on's objects. Reserved ones never stand for a cluster.
            return objects;
        }
        let label = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL}");
        let mut lines = look_line(&format!("kubectl get namespaces -l {label}"));
        lines.extend(objects);
        lines.push(format!(
            "accept: kubectl label namespace {namespace} {label}"
        ));
        return lines;
    }
    // A label would not help: the record of an installation is in another namespace.
    let mut lines = look_line(&format!("kubectl addons list -n {system}"));
    lines.extend(fix_line(&format!(
        "leave out -n {namespace}: it names the namespace of the record, and records of this cluster are in {system}"
    )));
    lines
}

/// Advice for a namespace whose kubeconfig leads to the cluster that the namespace is in.
fn own_cluster_hints(namespace: &str) -> Vec<String> {
    let labels = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL} {LABEL_KUBECONFIG_SECRET}-");
    fix_line(&format!("kubectl label namespace {namespace} {labels}"))
}

/// Advice if values cannot be read from Secrets.
fn values_hints(error: &ValuesFromError) -> Vec<String> {
    let (looks, index) = match error {
        ValuesFromError::NoSecret {
            installation,
            index,
            ..
        } => (
            format!("look:   kubectl get secrets -n {}", installation.namespace),
            index,
        ),
        ValuesFromError::NoKey {
            installation,
            name,
            index,
            ..
        } => (
            format!(
                "look:   kubectl describe secret {name} -n {}",
                installation.namespace
            ),
            index,
        ),
        ValuesFromError::NotValues { why, .. } => return secret_hints(why),
        ValuesFromError::NoValues { .. } => return Vec::new(),
    };
    let fix = format!(
        "fix:    create it, or set spec.valuesFrom[{index}].secretKeyRef.optional of the installation"
    );
    vec![looks, fix]
}

/// Advice for a Secret from which no values may be read.
fn secret_hints(why: &SecretValuesError) -> Vec<String> {
    match why {
        SecretValuesError::Unlabelled { namespace, name } => vec![format!(
            "fix:    kubectl label secret {name} -n {namespace} {LABEL_VALUES}=true"
        )],
        SecretValuesError::Kubeconfig { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use addons_plan::file::{Difference, PlanOutdated};

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
            let moved = PlanOutdated {
                differences: vec![Difference::new("shop/ConfigMap a", "it is gone")],
                addons,
                gone,
            };
            let error = anyhow::Error::from(OperationError::from(moved));
            assert_eq!(hint_lines(error.as_ref()), expect);
        }
    }
}
