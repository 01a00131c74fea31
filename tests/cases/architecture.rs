//! The layers of the workspace, as cargo sees them: who may depend on whom.

mod advice;
mod closed_sets;
mod entrance;
mod files;
mod fixes;
mod graph;
mod modules;
mod promises;
mod static_policies;
mod trust;
mod typed;
mod wings;

use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Each of our crates, and which of the others it may depend on. It may exist already or not, and need not use them all.
const TABLE: [(&str, &[&str]); 20] = [
    ("addons-versions", &[]),
    ("addons-gotemplate", &["addons-versions"]),
    ("common", &["addons-versions"]),
    ("addons-clusters", &["common", "addons-versions"]),
    (
        "addons-admission",
        &["common", "addons-clusters", "addons-versions"],
    ),
    ("addons-plan", &["common", "addons-versions"]),
    (
        "addons-render",
        &["common", "addons-gotemplate", "addons-versions"],
    ),
    (
        "addons-engine",
        &[
            "common",
            "addons-admission",
            "addons-plan",
            "addons-render",
            "addons-versions",
        ],
    ),
    (
        "addons-sources",
        &[
            "common",
            "addons-admission",
            "addons-render",
            "addons-versions",
        ],
    ),
    (
        "addons-helm",
        &[
            "common",
            "addons-render",
            "addons-sources",
            "addons-versions",
        ],
    ),
    (
        "addons-operation",
        &[
            "common",
            "addons-admission",
            "addons-engine",
            "addons-helm",
            "addons-plan",
            "addons-render",
            "addons-sources",
            "addons-versions",
            "certs",
        ],
    ),
    (
        "addons-distribution",
        &[
            "common",
            "addons-admission",
            "addons-clusters",
            "addons-engine",
            "addons-operation",
            "addons-plan",
            "addons-render",
        ],
    ),
    (
        "addons-advice",
        &[
            "common",
            "addons-engine",
            "addons-operation",
            "addons-plan",
            "addons-versions",
            "certs",
        ],
    ),
    (
        "addons-airgap",
        &[
            "common",
            "addons-engine",
            "addons-operation",
            "addons-render",
            "addons-sources",
        ],
    ),
    (
        "addons-loops",
        &[
            "common",
            "addons-admission",
            "addons-clusters",
            "addons-distribution",
            "addons-engine",
            "addons-operation",
            "addons-plan",
            "addons-telemetry",
        ],
    ),
    ("addons-telemetry", &[]),
    ("certs", &[]),
    (
        "webhook",
        &[
            "common",
            "addons-admission",
            "addons-clusters",
            "addons-telemetry",
            "addons-versions",
            "certs",
        ],
    ),
    (
        "kubectl-addons",
        &[
            "common",
            "addons-admission",
            "addons-advice",
            "addons-airgap",
            "addons-clusters",
            "addons-distribution",
            "addons-engine",
            "addons-gotemplate",
            "addons-helm",
            "addons-loops",
            "addons-operation",
            "addons-plan",
            "addons-render",
            "addons-sources",
            "addons-telemetry",
            "addons-versions",
        ],
    ),
    ("addons-control-plane", &[]),
];
/// Depends on whatever it tests.
const TESTS: &str = "addons-tests";
/// They decide, and do nothing else.
const PURE: [&str; 7] = [
    "addons-versions",
    "addons-gotemplate",
    "common",
    "addons-admission",
    "addons-clusters",
    "addons-plan",
    "addons-render",
];
/// Runtimes and networks, by the names of their libraries.
const IMPURE: [&str; 7] = [
    "tokio",
    "hyper",
    "rustls",
    "reqwest",
    "mio",
    "kube_client",
    "actix_web",
];
/// They belong to a command line. The crate of the operations serves others, too.
const EDGE: [&str; 5] = ["clap", "anstream", "anstyle", "console", "anyhow"];

/// What cargo prints for these arguments.
fn cargo(arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        .args(arguments)
        .args(["--offline", "--locked"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// The packages of the workspace, each with its dependencies.
fn packages() -> Result<Vec<(String, Vec<Dependency>)>> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dependencies = |package: &Value| -> Vec<Dependency> {
        let list = package["dependencies"].as_array().into_iter().flatten();
        list.map(|dependency| Dependency {
            name: text(&dependency["name"]),
            is_ours: dependency["path"].is_string(),
            is_normal: dependency["kind"].is_null(),
        })
        .collect()
    };
    Ok(packages
        .iter()
        .map(|package| (text(&package["name"]), dependencies(package)))
        .collect())
}

/// A line of a Cargo.toml.
struct Dependency {
    name: String,
    /// A crate of this workspace.
    is_ours: bool,
    /// Neither for tests nor for build scripts.
    is_normal: bool,
}

/// The libraries that a package is built from, its own first.
fn tree(package: &str) -> Result<Vec<String>> {
    let text = cargo(&[
        "tree",
        "--edges=normal",
        "--prefix=none",
        "--format={lib}",
        "--package",
        package,
    ])?;
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)"));
    Ok(lines.map(str::to_owned).collect())
}

#[test]
fn our_crates_depend_on_each_other_as_the_table_says() -> Result<()> {
    let packages = packages()?;
    ensure!(packages.len() > 5, "only {} packages", packages.len());
    let mut wrong = Vec::new();
    for (package, dependencies) in &packages {
        if package == TESTS {
            continue;
        }
        let Some((_, allowed)) = TABLE.iter().find(|(name, _)| name == package) else {
            wrong.push(format!("{package} is not in the table"));
            continue;
        };
        for Dependency { name, is_ours, .. } in dependencies {
            if *is_ours && !allowed.contains(&name.as_str()) {
                wrong.push(format!("{package} → {name} is not in the table"));
            }
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn the_pure_crates_have_no_runtime_and_no_network() -> Result<()> {
    let packages = packages()?;
    let there = |name: &str| packages.iter().any(|(package, _)| package == name);
    for package in PURE.into_iter().filter(|name| there(name)) {
        let tree = tree(package)?;
        let found: Vec<_> = IMPURE
            .into_iter()
            .filter(|name| tree.iter().any(|found| found == name))
            .collect();
        ensure!(found.is_empty(), "{package} depends on {found:?}");
    }
    // The names are spelled as cargo spells them, so that they would be found above.
    let edges = [tree("kubectl-addons")?, tree("webhook")?].concat();
    for name in IMPURE {
        ensure!(
            edges.iter().any(|found| found == name),
            "neither the plugin nor the webhook depends on {name}: is it spelled right?"
        );
    }
    Ok(())
}

#[test]
fn operations_know_no_command_line() -> Result<()> {
    let packages = packages()?;
    let of = |name: &str| {
        let package = packages.iter().find(|(package, _)| package == name);
        let dependencies = package.into_iter().flat_map(|(_, list)| list);
        dependencies
            .filter(|dependency| dependency.is_normal && EDGE.contains(&dependency.name.as_str()))
            .map(|dependency| dependency.name.clone())
            .collect::<Vec<_>>()
    };
    for package in ["addons-operation", "addons-distribution", "addons-loops"] {
        let found = of(package);
        ensure!(found.is_empty(), "{package} depends on {found:?}");
    }
    let edge = of("kubectl-addons");
    ensure!(
        edge.iter().any(|name| name == "clap"),
        "kubectl-addons does not depend on clap: is it spelled right?"
    );
    Ok(())
}

#[test]
fn one_tls_provider() -> Result<()> {
    for package in ["kubectl-addons", "webhook"] {
        let names = tree(package)?;
        ensure!(
            names.iter().any(|name| name == "aws_lc_rs"),
            "{package} does not depend on aws_lc_rs: is it spelled right?"
        );
        for name in ["ring", "openssl", "native_tls"] {
            ensure!(
                !names.iter().any(|found| found == name),
                "{package} depends on {name}"
            );
        }
    }
    Ok(())
}
