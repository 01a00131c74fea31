//! Only the command line opens keys, accounts and files: nothing else makes a `Typed`, so that nothing from an API object, an index, a
//! revision or a plan file can.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::modules::files;

/// What makes one, and where that may stand: in the modules that read arguments, and in the example, which reads its own.
const CALLS: [(&str, &[&str]); 2] = [
    (
        "on_command_line",
        &[
            "common/src/catalogue/author.rs",
            "common/operation/examples/install.rs",
            "kubectl-addons/src/cli/named.rs",
            "kubectl-addons/src/cli/typed.rs",
        ],
    ),
    (
        "typed::location",
        &[
            "kubectl-addons/src/cli/",
            "kubectl-addons/src/completion.rs",
        ],
    ),
];

/// The text of a source file before its tests.
fn code(text: &str) -> &str {
    let end = text.find("#[cfg(test)]\nmod tests");
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

fn is_test(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs")
        || path.components().any(|part| part.as_os_str() == "tests")
}

#[test]
fn only_arguments_are_typed() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    let mut all: Vec<PathBuf> = Vec::new();
    for folder in ["common", "kubectl-addons", "webhook", "certs"] {
        files(&root.join(folder), &mut all)?;
    }
    let mut wrong = Vec::new();
    let mut seen = 0;
    for path in all {
        let relative = path.strip_prefix(&root)?;
        if is_test(relative) {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        for (call, places) in CALLS {
            if !code(&text).contains(call) {
                continue;
            }
            let name = relative.to_string_lossy().replace('\\', "/");
            let is_allowed = places
                .iter()
                .any(|place| name == *place || (place.ends_with('/') && name.starts_with(place)));
            if is_allowed {
                seen += 1;
            } else {
                wrong.push(format!("{name}: {call}"));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    ensure!(seen >= 5, "only {seen} places were found");
    Ok(())
}
