//! The two static policies for AddonPolicies differ in what they do with what they find, and in nothing else. That for installations
//! means the same by a change that they judge.

use std::path::Path;

use anyhow::{Context as _, Result};

#[test]
fn what_is_refused_and_what_is_warned_of_is_the_same() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/policies");
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).context(file.to_owned());
    let warn = [
        ("action Enforce", "action Warn"),
        ("== 'Enforce'", "== 'Warn'"),
        ("kubectl-addons-enforce", "kubectl-addons-warn"),
        ("failurePolicy: Fail", "failurePolicy: Ignore"),
        ("[Deny, Audit]", "[Warn, Audit]"),
    ]
    .iter()
    .fold(read("enforce.yaml")?, |text, (from, to)| {
        text.replace(from, to)
    });
    assert!(
        read("warn.yaml")? == warn,
        "deploy/policies/warn.yaml is not enforce.yaml with another action"
    );
    let (enforce, installations) = (read("enforce.yaml")?, read("installations.yaml")?);
    let judged = enforce
        .lines()
        .skip_while(|line| !line.contains("(oldObject == null ||"));
    let judged: Vec<&str> = judged.take_while(|line| !line.is_empty()).take(3).collect();
    assert!(
        judged.len() == 3 && installations.contains(&judged.join("\n")),
        "deploy/policies/installations.yaml: isJudged is not what enforce.yaml judges: {judged:?}"
    );
    Ok(())
}
