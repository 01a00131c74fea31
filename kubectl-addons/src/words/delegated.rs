//! Sentences about installations that are left to the reconciler.

use addons_operation::Resolved;
use addons_operation::delegate::{DelegatedChange, Unavailable};
use common::api::names::InstallationName;
use common::catalogue::version_label;

use super::hint;

/// The page about rights.
const PAGE: &str = "docs/permissions.md#as-a-tenant-of-one-namespace";

/// Why the command refuses several clusters.
pub const ONE_CLUSTER: &str =
    "where the reconciler does the work, a command works on one cluster: use -n NAMESPACE";

/// Says what the user may not do, and who does it.
pub fn explain(why: &Unavailable, namespace: &str, system: &str) -> String {
    let lacking = match why {
        Unavailable::Cluster(_) => {
            format!("you may not read the kubeconfig of the cluster of {namespace}")
        }
        Unavailable::Content => format!("you may not list addoncatalogues in namespace {system}"),
    };
    format!("{lacking}: only the record is written, and the reconciler does the rest ({PAGE})")
}

/// Says what a list shows of a cluster that the user may not read.
pub fn explain_recorded(namespace: &str) -> String {
    format!(
        "you may not read the kubeconfig of the cluster of {namespace}: its objects are not read, and the status is what the \
         reconciler recorded ({PAGE})"
    )
}

/// Says that versions are listed whether they fit or not.
pub fn explain_unknown_fit(namespace: &str) -> String {
    format!(
        "you may not read the kubeconfig of the cluster of {namespace}: which versions fit it is not known ({PAGE})"
    )
}

/// Says that nothing is known about newer versions.
pub fn explain_no_catalogues(system: &str) -> String {
    format!(
        "you may not list addoncatalogues in namespace {system}: newer versions are not shown ({PAGE})"
    )
}

/// `install web 1.0.0 into web`
pub fn describe_change(one: &Resolved, change: DelegatedChange) -> String {
    let verb = match change {
        DelegatedChange::Update => "upgrade",
        _ => "install",
    };
    let version = &one.entry.version;
    let label = version_label(&version.version, &version.id);
    let target = one.wanted.spec.target_namespace.as_deref();
    format!(
        "{verb} {} {label} into {}",
        one.name.name,
        target.unwrap_or_default()
    )
}

/// Says what was written, and how to follow what the reconciler does.
pub fn describe_written(name: &InstallationName, written: DelegatedChange) -> String {
    let what = match written {
        DelegatedChange::Delete => "its deletion is recorded; the reconciler uninstalls it",
        DelegatedChange::Create => "recorded; the reconciler installs it",
        DelegatedChange::Update => "recorded; the reconciler upgrades it",
        DelegatedChange::None => return format!("{}  nothing to record", name.name),
    };
    let look = hint::look_line(&format!("{} --watch", hint::command("status", name)));
    format!("{}  {what}{}", name.name, hint::indent_lines(&look))
}
