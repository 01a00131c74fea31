//! Advice if a core record is not restored.

use addons_operation::error::RestoreError;

use super::{command, fix, look};

pub(super) fn of_restore(error: &RestoreError) -> Vec<String> {
    match error {
        RestoreError::Recorded(name) => look(&command("status", name)),
        RestoreError::NotCore(name) => fix(&command("adopt", name)),
        RestoreError::Nothing { name, is_listed } => fix(&if *is_listed {
            format!("kubectl addons reconcile -n {}", name.namespace)
        } else {
            format!("{} --core", command("install", name))
        }),
        RestoreError::Listed(name) => {
            let mut lines = look(&format!("kubectl addons core explain {}", name.name));
            lines.extend(fix(&command("core restore", name)));
            lines
        }
        RestoreError::Unknown(_) => look("kubectl addons core list"),
    }
}
