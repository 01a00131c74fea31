//! The fix for a problem that `doctor` found.

use addons_advice::doctor::{DoctorProblem, Severity};
use addons_operation::execute::continued;
use common::api::names::{
    InstallationName, LABEL_CLUSTER, LABEL_HOLDS_CORE, LABEL_KUBECONFIG_SECRET, LABEL_OWNER,
    SYSTEM_NAMESPACE, is_reserved,
};

use super::hint;

const WEBHOOK: &str = "kubectl addons init --webhook";
/// The Secret with a certificate that another tool issues.
const EXTERNAL_CERTIFICATE_SECRET: &str = "addons-webhook-tls";
const POLICIES: &str = "kubectl addons init --policies";

/// Describes a severity, for a column.
pub fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// Returns the command that fixes the problem, or a sentence if no single command does.
pub fn fix_command(problem: &DoctorProblem) -> String {
    match problem {
        DoctorProblem::Unreachable { .. } => "kubectl cluster-info".to_owned(),
        DoctorProblem::Unchecked { unread, .. } if unread.is_forbidden => {
            "run it again with permission to read this".to_owned()
        }
        DoctorProblem::Unchecked { .. } => "run it again when the server responds".to_owned(),
        DoctorProblem::Right { .. } => "ask a cluster administrator for the permission".to_owned(),
        DoctorProblem::OldServer { .. } => "upgrade the cluster".to_owned(),
        DoctorProblem::DefinitionMissing { .. } | DoctorProblem::DefinitionDiffers { .. } => {
            "kubectl addons init".to_owned()
        }
        DoctorProblem::DefinitionNewer { .. } => "install that release of this plugin".to_owned(),
        DoctorProblem::Certificate { secret, .. } if secret == EXTERNAL_CERTIFICATE_SECRET => {
            format!("have Secret {secret} renewed by whatever issues it")
        }
        DoctorProblem::NoWebhook
        | DoctorProblem::PartMissing { .. }
        | DoctorProblem::PartDiffers { .. }
        | DoctorProblem::FailuresIgnored
        | DoctorProblem::StaleBundle { .. }
        | DoctorProblem::Certificate { .. }
        | DoctorProblem::NoEndpoints
        | DoctorProblem::Unanswered { .. }
        | DoctorProblem::RefusesAll { .. }
        | DoctorProblem::NotJudged => WEBHOOK.to_owned(),
        DoctorProblem::UnansweredOutside { url, .. } => format!("start the webhook at {url}"),
        DoctorProblem::NoPolicies
        | DoctorProblem::PolicyMissing { .. }
        | DoctorProblem::PolicyDiffers { .. } => POLICIES.to_owned(),
        DoctorProblem::Unreadable {
            resource, object, ..
        } => format!(
            "kubectl edit {resource} {} -n {}",
            object.name, object.namespace
        ),
        DoctorProblem::Interrupted {
            installation, next, ..
        }
        | DoctorProblem::Edited {
            installation, next, ..
        }
        | DoctorProblem::Unwell {
            installation,
            next: Some(next),
            ..
        } => continued::command(next, installation),
        DoctorProblem::Unwell { installation, .. } => hint::command("status", installation),
        DoctorProblem::Held { installation } => hint::command("reconcile", installation),
        DoctorProblem::OtherCluster { installation } => {
            format!("{} --new-cluster", hint::command("adopt", installation))
        }
        DoctorProblem::Misplaced {
            installation: InstallationName { namespace, name },
            system,
        } => format!(
            "apply it with -n {system}, then: kubectl delete addoninstallation {name} -n {namespace}"
        ),
        DoctorProblem::NoCluster { installation } if is_reserved(&installation.namespace) => {
            let InstallationName { namespace, name } = installation;
            format!("kubectl delete addoninstallation {name} -n {namespace}")
        }
        DoctorProblem::NoCluster { installation } => {
            format!(
                "kubectl label namespace {} {LABEL_CLUSTER}=local",
                installation.namespace
            )
        }
        DoctorProblem::HeldByRelease { installation, .. } => {
            format!("{} --adopt", hint::command("upgrade", installation))
        }
        DoctorProblem::Deprecated { installation, .. } => {
            format!("{} --dry-run", hint::command("upgrade", installation))
        }
        DoctorProblem::Orphans {
            installation,
            owner,
            ..
        } => orphans_command(installation.as_ref(), owner),
        DoctorProblem::Duplicate { .. } => "kubectl addons catalogue view".to_owned(),
        DoctorProblem::NoLeader { .. } => format!(
            "start the reconciler; if it is removed for good: kubectl addons reconcile --retire && \
             kubectl delete lease addons-reconciler -n {SYSTEM_NAMESPACE}"
        ),
        DoctorProblem::Unmarked { namespace, .. } => {
            format!("kubectl label namespace {namespace} {LABEL_HOLDS_CORE}=true")
        }
        DoctorProblem::AmbiguousCluster { namespace, .. } => {
            format!("kubectl label namespace {namespace} {LABEL_CLUSTER}-")
        }
        DoctorProblem::NoKubeconfig { namespace, .. } => {
            format!("kubectl label namespace {namespace} {LABEL_KUBECONFIG_SECRET}-")
        }
    }
}

/// Returns the command for orphaned objects. Only installations in the system namespace are found by name.
fn orphans_command(installation: Option<&InstallationName>, owner: &str) -> String {
    match installation {
        Some(installation) => hint::command("adopt", installation),
        None => format!(
            "kubectl get deployments,daemonsets,statefulsets,services,configmaps -A -l {LABEL_OWNER}={owner}"
        ),
    }
}
