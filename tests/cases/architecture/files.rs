//! What a reader has to keep in mind at once: files that import each other in circles, and types that share a name.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::graph::{FileGraph, crates};

/// The crates that coordinate: a change there must not need more files than fit into a head.
const UNTANGLED: [&str; 2] = ["kubectl-addons", "operation"];
const LARGEST_KNOT: usize = 8;
const SHARED_NAMES: usize = 40;

#[test]
fn no_more_than_eight_files_import_each_other_in_a_circle() -> Result<()> {
    let mut found = Vec::new();
    let mut read = 0;
    for folder in crates()? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        if !UNTANGLED.contains(&name.as_ref()) {
            continue;
        }
        read += 1;
        for knot in FileGraph::read(&folder)?.knots() {
            if knot.len() > LARGEST_KNOT {
                found.push(format!("{name}: {} files: {}", knot.len(), knot.join(", ")));
            }
        }
    }
    ensure!(read == UNTANGLED.len(), "only {read} crates were read");
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

#[test]
fn a_name_belongs_to_one_type() -> Result<()> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in crates()? {
        let krate = folder.file_name().unwrap_or_default().to_string_lossy();
        for (module, types) in FileGraph::read(&folder)?.types {
            for name in types {
                let place = format!("{krate}::{}", module.join("::"));
                places.entry(name).or_default().push(place);
            }
        }
    }
    ensure!(places.len() > 1000, "only {} types were read", places.len());
    let shared: Vec<String> = places
        .iter()
        .filter(|(_, places)| places.len() > 1)
        .map(|(name, places)| format!("{name}: {}", places.join(", ")))
        .collect();
    ensure!(
        shared.len() < SHARED_NAMES,
        "{} names are shared:\n{}",
        shared.len(),
        shared.join("\n")
    );
    Ok(())
}

/// The graph finds circles: it reads one in the sources of the engine, whose `cluster` and `discovery` know each other.
#[test]
fn a_circle_is_found() -> Result<()> {
    let engine = crates()?
        .into_iter()
        .find(|folder| folder.ends_with("common/engine"));
    let graph = FileGraph::read(&engine.unwrap_or_default())?;
    let knots = graph.knots();
    ensure!(
        knots
            .iter()
            .any(|knot| knot.contains(&"cluster".to_owned())),
        "{knots:?}"
    );
    Ok(())
}
