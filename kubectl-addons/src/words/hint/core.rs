//! Advice if a core record is not restored.

use addons_operation::error::RestoreError;

use super::{command, fix_line, look_line};

pub(super) fn restore_hints(error: &RestoreError) -> Vec<String> {
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
