//! JSON that others wrote is read in one place: serde_json by itself would read other objects than those that people see.

use std::path::Path;

use anyhow::{Result, ensure};

use super::modules::files;

/// Where it may be called: the entrance, and the decoder of templates, which builds no value of serde_json.
const CALLERS: [&str; 2] = [
    "common/src/entrance.rs",
    "common/gotemplate/src/sprig/json.rs",
];
const CALLS: [&str; 3] = [
    "serde_json::from_str",
    "serde_json::from_slice",
    "serde_json::from_reader",
];
/// Modules of tests.
const TESTS: [&str; 3] = ["tests.rs", "fixtures.rs", "fake.rs"];

#[test]
fn json_is_read_through_the_entrance() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut found, mut read) = (Vec::new(), 0);
    for folder in ["certs", "common", "kubectl-addons", "webhook"] {
        let mut sources = Vec::new();
        files(&root.join(folder), &mut sources)?;
        for path in sources {
            let relative = path.strip_prefix(&root)?.to_string_lossy().into_owned();
            let is_of_tests = relative.contains("/tests/")
                || TESTS.iter().any(|name| relative.ends_with(name))
                || CALLERS.contains(&relative.as_str());
            if is_of_tests {
                continue;
            }
            read += 1;
            let text = std::fs::read_to_string(&path)?;
            let code = text.split("#[cfg(test)]\nmod tests {").next();
            let mut lines = code.unwrap_or_default().lines().enumerate();
            let called = lines.find(|(_, line)| CALLS.iter().any(|call| line.contains(call)));
            if let Some((at, _)) = called {
                found.push(format!("{relative}:{}", at + 1));
            }
        }
    }
    ensure!(read > 300, "only {read} files were read");
    ensure!(
        found.is_empty(),
        "they read JSON without common::entrance:\n{}",
        found.join("\n")
    );
    Ok(())
}
