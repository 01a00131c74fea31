//! The spine, that is what every install passes through, knows no wing: what a wing wants done, it adds to the plan in the words of the
//! spine. The wings are described in `common/README.md`.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::graph::{FileGraph, ModulePath, crates};

/// The crates of the spine.
const SPINE: [&str; 4] = ["common", "addons_plan", "addons_engine", "addons_operation"];

/// The modules of the plugin that belong to the spine: its main commands, and what shows, confirms and runs their plans.
const SPINE_OF_PLUGIN: [&str; 16] = [
    "kubectl_addons::change",
    "kubectl_addons::choices",
    "kubectl_addons::prompt",
    "kubectl_addons::commands::diff",
    "kubectl_addons::commands::history",
    "kubectl_addons::commands::install",
    "kubectl_addons::commands::list",
    "kubectl_addons::commands::plan",
    "kubectl_addons::commands::rollback",
    "kubectl_addons::commands::search",
    "kubectl_addons::commands::set",
    "kubectl_addons::commands::show",
    "kubectl_addons::commands::status",
    "kubectl_addons::commands::uninstall",
    "kubectl_addons::commands::upgrade",
    "kubectl_addons::commands::values",
];

/// The modules of wings inside the crates of the spine and the plugin, and crates that are a wing.
const WINGS: [(&str, &[&str]); 6] = [
    (
        "kops",
        &[
            "addons_plan::kops",
            "addons_engine::kops",
            "addons_operation::kops",
            "kubectl_addons::commands::channel",
        ],
    ),
    (
        "directories",
        &[
            "common::directory",
            "addons_engine::addon_manager",
            "addons_operation::directory",
            "kubectl_addons::commands::sync",
        ],
    ),
    (
        "adoption",
        &[
            "addons_engine::former",
            "addons_operation::adopt",
            "kubectl_addons::commands::adopt",
        ],
    ),
    (
        "many clusters",
        &[
            "addons_clusters",
            "addons_distribution",
            "addons_engine::core_set",
            "kubectl_addons::commands::core",
            "kubectl_addons::fleet",
        ],
    ),
    ("air gap", &["addons_airgap"]),
    ("advice", &["addons_advice"]),
];

/// Files that list the errors and findings of everything, so that one table gives each of them its kind and its words.
const VOCABULARY: [&str; 2] = ["addons_operation::error", "addons_operation::event"];

#[test]
fn the_spine_imports_no_wing() -> Result<()> {
    let graphs = read_graphs()?;
    let mut found = Vec::new();
    let mut known = 0;
    for name in SPINE.into_iter().chain(["kubectl_addons"]) {
        for (importer, imported) in imports(&graphs, name) {
            let mut verbs = SPINE_OF_PLUGIN.iter();
            if name == "kubectl_addons" && !verbs.any(|verb| is_in(&importer, verb)) {
                continue;
            }
            if VOCABULARY.iter().any(|module| is_in(&importer, module)) || wing(&importer).is_some()
            {
                known += usize::from(wing(&imported).is_some());
                continue;
            }
            if let Some(wing) = wing(&imported) {
                found.push(format!("{importer} imports {imported} ({wing})"));
            }
        }
    }
    ensure!(known > 10, "the wings import each other {known} times only");
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

#[test]
fn every_wing_exists() -> Result<()> {
    let graphs = read_graphs()?;
    let wings = WINGS.iter().flat_map(|(_, modules)| modules.iter());
    for module in wings.chain(&SPINE_OF_PLUGIN) {
        let (name, path) = module.split_once("::").unwrap_or((module, ""));
        let path: ModulePath = path.split("::").map(str::to_owned).collect();
        let is_there = |graph: &FileGraph| path == [""] || graph.types.contains_key(&path);
        ensure!(graphs.get(name).is_some_and(is_there), "no module {module}");
    }
    Ok(())
}

/// The graph of each crate, by the name that code uses for it.
fn read_graphs() -> Result<BTreeMap<String, FileGraph>> {
    let mut graphs = BTreeMap::new();
    for folder in crates()? {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml"))?;
        let name = manifest
            .lines()
            .find_map(|line| line.strip_prefix("name = "));
        let name = name.unwrap_or_default().trim_matches('"').replace('-', "_");
        graphs.insert(name, FileGraph::read(&folder)?);
    }
    Ok(graphs)
}

/// What each file of a crate imports, from its own crate and from others.
fn imports(graphs: &BTreeMap<String, FileGraph>, name: &str) -> Vec<(String, String)> {
    let join = |name: &str, module: &[String]| [&[name.to_owned()], module].concat().join("::");
    let Some(graph) = graphs.get(name) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (module, imported) in graph.imports() {
        let imported = imported.iter();
        all.extend(imported.map(|other| (join(name, module), join(name, other))));
    }
    for (module, paths) in graph.mentions_outside() {
        for path in paths {
            let Some((other, rest)) = path.split_first() else {
                continue;
            };
            let found = graphs.get(other).and_then(|graph| graph.definition(rest));
            all.extend(found.map(|found| (join(name, module), join(other, &found))));
        }
    }
    all
}

/// The wing to which a module belongs.
fn wing(module: &str) -> Option<&'static str> {
    let mut wings = WINGS.iter();
    let found = wings.find(|(_, modules)| modules.iter().any(|wing| is_in(module, wing)));
    found.map(|(name, _)| *name)
}

fn is_in(module: &str, parent: &str) -> bool {
    let rest = module.strip_prefix(parent);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}
