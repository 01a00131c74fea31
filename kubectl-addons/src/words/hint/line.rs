//! The lines of advice: how they are printed, and the commands in them.

use addons_operation::text::shell_word;
use common::api::names::InstallationName;
use common::foreign::ForeignText;

/// Formats lines of advice below a message, each after a line break and indented to the first word of an error.
pub fn indent_lines(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("\n       {}", ForeignText::new(line)))
        .collect()
}

/// `kubectl addons VERB NAME -n NAMESPACE`.
pub fn command(verb: &str, installation: &InstallationName) -> String {
    format!(
        "kubectl addons {verb} {} -n {}",
        installation.name, installation.namespace
    )
}

/// The `look:` line of a command that only reads.
pub fn look_line(command: &str) -> Vec<String> {
    vec![format!("look:   {command}")]
}

/// The `fix:` line of a command that resolves a problem.
pub fn fix_line(command: &str) -> Vec<String> {
    vec![format!("fix:    {command}")]
}

/// `--set spec.host=VALUE`
pub(super) fn set_flag(name: &str) -> String {
    format!("--set {}", shell_word(&format!("{name}=VALUE")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_survive_a_shell() {
        for (name, expected) in [
            ("spec.host", "--set spec.host=VALUE"),
            (r"host\.name", r"--set 'host\.name=VALUE'"),
            ("it's", r"--set 'it'\''s=VALUE'"),
        ] {
            assert_eq!(set_flag(name), expected);
        }
    }
}
