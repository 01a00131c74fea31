//! The add-on `thirty`, in two versions: 30 objects of every scope, of which the second version changes some, drops some
//! and adds some.

use anyhow::Result;

use crate::stage::Stage;

/// Name of the add-on and of its installation.
pub const NAME: &str = "thirty";

/// `UNIQUE` stands for what no other test uses, `CHANGED` for what the versions differ in.
const OBJECTS: &str = include_str!("addon.yaml");

/// The namespace that the add-on goes to, which is created with it.
pub fn target(stage: &Stage) -> String {
    format!("{}-target", stage.namespace)
}

/// API group of the add-on's custom resources.
pub fn group(unique: &str) -> String {
    format!("{unique}.example.test")
}

/// The first version, as an index of its own.
pub fn first(stage: &Stage) -> Result<String> {
    index(stage, "1.0.0", "added", "one")
}

/// The second version, as an index of its own.
pub fn second(stage: &Stage) -> Result<String> {
    index(stage, "2.0.0", "dropped", "two")
}

fn index(stage: &Stage, version: &str, without: &str, changed: &str) -> Result<String> {
    let objects = OBJECTS.split("---\n");
    let objects: Vec<&str> = objects.filter(|object| !object.contains(without)).collect();
    let manifest = objects.join("---\n");
    let manifest = manifest.replace("UNIQUE", &stage.namespace);
    let manifest = manifest.replace("CHANGED", changed);
    let file = format!("{version}/index.yaml");
    stage.index(&file, &[(NAME, version, &manifest)])
}

#[test]
fn it_has_thirty_objects() {
    let count = |without| {
        let objects = OBJECTS.split("---\n");
        objects.filter(|object| !object.contains(without)).count()
    };
    assert_eq!((count("added"), count("dropped")), (30, 26));
}
