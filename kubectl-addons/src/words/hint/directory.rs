//! The way out for installations that come from a directory.

use addons_operation::OperationError;
use addons_operation::error::DirectorySyncError;
use addons_operation::text::shell_word;
use common::api::names::InstallationName;

use super::{command, operation_hints, typed};

/// Advice for errors about directories. `None` for all others.
pub(super) fn directory_hints(error: &OperationError) -> Option<Vec<String>> {
    if let OperationError::InDirectory {
        installation,
        directory,
        error,
        ..
    } = error
    {
        return Some(replace_with_sync(
            installation,
            directory,
            operation_hints(error),
        ));
    }
    let lines = match error.root() {
        OperationError::OfDirectory { directory, .. } => {
            let sync = format!("kubectl addons sync {}", shell_word(directory));
            vec![
                format!("look:   {sync} --dry-run=server"),
                format!("fix:    {sync}"),
            ]
        }
        OperationError::NotSynced(DirectorySyncError::Empty { directory, .. }) => {
            let directory = shell_word(directory);
            vec![
                format!("look:   ls -la {directory}"),
                format!("accept: {}", sync_command(&directory, "--allow-empty")),
            ]
        }
        OperationError::NotSynced(DirectorySyncError::MostlyGone { directory, .. }) => {
            let directory = shell_word(directory);
            vec![
                format!("look:   kubectl addons sync {directory} --dry-run --allow-removals"),
                format!("accept: {}", sync_command(&directory, "--allow-removals")),
            ]
        }
        OperationError::NotSynced(DirectorySyncError::NameTaken { installation, .. }) => vec![
            format!("look:   {}", command("status", installation)),
            "fix:    rename the file or folder".to_owned(),
        ],
        _ => return None,
    };
    Some(lines)
}

/// Returns the typed command with `flag`, or else `sync` of the directory with it.
fn sync_command(directory: &str, flag: &str) -> String {
    let typed = typed::with_flags(&[flag.to_owned()]);
    typed.unwrap_or_else(|| [format!("kubectl addons sync {directory}").as_str(), flag].join(" "))
}

/// Replaces other commands by `sync`, because only `sync` changes an installation from a directory.
fn replace_with_sync(
    installation: &InstallationName,
    directory: &str,
    lines: Vec<String>,
) -> Vec<String> {
    let sync = format!("kubectl addons sync {}", shell_word(directory));
    let lines = lines.into_iter().map(|line| {
        let line = line.replace(
            &command("diff", installation),
            &format!("{sync} --dry-run=server"),
        );
        line.replace(&command("upgrade", installation), &sync)
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_blanks_can_be_copied() {
        for (directory, expected) in [
            ("/etc/addons", "/etc/addons"),
            ("/my add-ons", "'/my add-ons'"),
            ("/it's", r"'/it'\''s'"),
        ] {
            let empty = DirectorySyncError::Empty {
                directory: directory.to_owned(),
                installations: 1,
            };
            let lines = directory_hints(&empty.into()).unwrap();
            let [look, accept] = lines.as_slice() else {
                panic!("{lines:?}");
            };
            assert_eq!(*look, format!("look:   ls -la {expected}"));
            let sync = format!("accept: kubectl addons sync {expected} --allow-empty");
            assert_eq!(*accept, sync);
        }
    }
}
