//! The table of guards in `SECURITY.md`, made of the trust model.

use std::fs;

use addons_admission::trust::{GUARDS, Guard, GuardVerb, Principal};
use anyhow::{Context as _, Result};

const PAGE: &str = "SECURITY.md";
/// The header of the table.
const HEADER: &str = "| object | part | create, change, delete | who may | denied by | proof |\n|---|---|---|---|---|---|\n";

/// `SECURITY.md` with the table as it should be.
///
/// # Errors
/// The page cannot be read, or has no table.
pub fn files() -> Result<Vec<(String, String)>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../SECURITY.md");
    let page = fs::read_to_string(path).context(PAGE)?;
    let (before, rest) = page
        .split_once(HEADER)
        .context("SECURITY.md has no table of guards")?;
    let after = rest.lines().skip_while(|line| line.starts_with('|'));
    let after: String = after.map(|line| format!("{line}\n")).collect();
    let rows: String = GUARDS.iter().map(row).collect();
    Ok(vec![(
        PAGE.to_owned(),
        format!("{before}{HEADER}{rows}{after}"),
    )])
}

fn row(guard: &Guard) -> String {
    let verbs = guard.verbs.iter().map(|verb| match verb {
        GuardVerb::Create => "create",
        GuardVerb::Update => "change",
        GuardVerb::Delete => "delete",
    });
    let verbs: Vec<&str> = verbs.collect();
    let may: Vec<String> = guard.may.iter().map(Principal::to_string).collect();
    let may = if may.is_empty() {
        "no one".to_owned()
    } else {
        may.join(", ")
    };
    let layers = [(guard.webhook, "webhook"), (guard.policy, "policies")];
    let layers: Vec<&str> = layers
        .into_iter()
        .filter_map(|(is, name)| is.then_some(name))
        .collect();
    let Guard {
        object,
        part,
        proof,
        ..
    } = guard;
    format!(
        "| {object} | {part} | {} | {may} | {} | {proof} |\n",
        verbs.join(", "),
        layers.join(", ")
    )
}
