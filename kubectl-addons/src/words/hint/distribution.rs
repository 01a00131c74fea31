//! Advice for work on many clusters: catalogues that are not pushed, and core records that are not restored.

use addons_distribution::{DistributionError, RestoreError};

use super::{command, fix_line, look_line, operation_hints};

pub(super) fn distribution_hints(error: &DistributionError) -> Vec<String> {
    match error {
        DistributionError::Operation(error) => operation_hints(error),
        DistributionError::Cluster { error, .. } => distribution_hints(error),
        DistributionError::HeldTwice { .. } => look_line("kubectl addons catalogue view --core"),
        DistributionError::NoSources => fix_line("kubectl addons catalogue add FILE"),
        DistributionError::NoTargets { .. } => look_line("kubectl get namespaces --show-labels"),
        DistributionError::Restore(error) => restore_hints(error),
        DistributionError::Location(_)
        | DistributionError::NotOurs { .. }
        | DistributionError::NoCluster
        | DistributionError::TooMany(_) => Vec::new(),
    }
}

fn restore_hints(error: &RestoreError) -> Vec<String> {
    match error {
        RestoreError::Recorded(name) => look_line(&command("status", name)),
        RestoreError::NotCore(name) => fix_line(&command("adopt", name)),
        RestoreError::Nothing { name, is_listed } => fix_line(&if *is_listed {
            format!("kubectl addons reconcile -n {}", name.namespace)
        } else {
            format!("{} --core", command("install", name))
        }),
        RestoreError::Listed(name) => {
            let mut lines = look_line(&format!("kubectl addons core explain {}", name.name));
            lines.extend(fix_line(&command("core restore", name)));
            lines
        }
        RestoreError::Unknown(_) => look_line("kubectl addons core list"),
    }
}
