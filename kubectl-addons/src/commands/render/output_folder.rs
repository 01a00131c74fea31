//! Writes rendered objects into a folder, one file each, and removes the files that an earlier run wrote there.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use addons_sources::platform;
use anyhow::{Context as _, Result};
use common::manifest::key::ObjectKey;
use serde_json::Value;

use crate::output;

/// The file that lists the other files of this command in the folder, one name a line.
const LISTED: &str = ".kubectl-addons-render";

/// Why nothing is written into a folder.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: holds files that render did not write, and is left as it is\n  fix:    name a new or empty folder", .0.display()
)]
struct ForeignFolder(PathBuf);

/// Writes the objects. Only the owner of the files may read those with Secrets.
///
/// # Errors
/// The folder holds files of others, or cannot be written.
pub(super) fn write_objects(dir: &Path, objects: &[Value]) -> Result<()> {
    let place = || dir.display().to_string();
    fs::create_dir_all(dir).with_context(place)?;
    remove_former(dir).with_context(place)?;
    let mut names = BTreeSet::new();
    let mut files = Vec::new();
    for object in objects {
        files.push((unused_name(object, &names), object));
        names.extend(files.last().map(|(name, _)| name.clone()));
    }
    // First of all, so that a run that is cut off can be repeated.
    let listed: String = names.iter().map(|name| format!("{name}\n")).collect();
    fs::write(dir.join(LISTED), listed).with_context(place)?;
    for (name, object) in &files {
        let text = serde_saphyr::to_string(object)?;
        let path = dir.join(name);
        write(&path, &text).with_context(|| path.display().to_string())?;
    }
    output::note(&format!("{} objects written to {}", files.len(), place()));
    Ok(())
}

/// Removes the files of an earlier run.
fn remove_former(dir: &Path) -> Result<()> {
    let listed = match fs::read_to_string(dir.join(LISTED)) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let former: BTreeSet<&str> = listed.lines().filter(|name| is_file_name(name)).collect();
    let mut present = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        match name.to_str() {
            Some(LISTED) => {}
            Some(name) if former.contains(name) => present.push(name.to_owned()),
            _ => return Err(ForeignFolder(dir.to_owned()).into()),
        }
    }
    for name in present {
        fs::remove_file(dir.join(name))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    platform::create_private(path)?.write_all(text.as_bytes())
}

/// Whether a name in the list is one that this command writes: a plain file in the folder.
fn is_file_name(name: &str) -> bool {
    name.ends_with(".yaml") && name.chars().all(is_plain) && !name.starts_with('.')
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.".contains(c)
}

/// Returns `deployment_web.yaml`, or `deployment_shop_web.yaml` for an object that names its namespace, with a number if that is taken.
fn unused_name(object: &Value, taken: &BTreeSet<String>) -> String {
    let words = ObjectKey::from_object(object).map(|key| {
        let namespace = key.namespace.into_iter();
        let words: Vec<String> = std::iter::once(key.kind)
            .chain(namespace)
            .chain([key.name])
            .collect();
        words.join("_")
    });
    let stem = words.unwrap_or_else(|| "object".to_owned()).to_lowercase();
    let stem = stem.replace(|c| !is_plain(c), "-");
    let mut name = format!("{stem}.yaml");
    let mut number = 2;
    while taken.contains(&name) {
        name = format!("{stem}_{number}.yaml");
        number += 1;
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
    }

    fn files(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != LISTED).collect();
        names.sort();
        names
    }

    #[test]
    fn files_of_former_runs_go_and_those_of_others_stay() {
        let place = std::env::temp_dir().join(format!("addons-render-{}", std::process::id()));
        let dir = place.join("out/web");
        let all = [object("ConfigMap", "a"), object("ClusterRole", "sys:a/b")];
        write_objects(&dir, &all).unwrap();
        assert_eq!(
            files(&dir),
            ["clusterrole_sys-a-b.yaml", "configmap_a.yaml"]
        );
        let twice = [object("ConfigMap", "b"), object("ConfigMap", "b")];
        write_objects(&dir, &twice).unwrap();
        assert_eq!(files(&dir), ["configmap_b.yaml", "configmap_b_2.yaml"]);
        let text = fs::read_to_string(dir.join("configmap_b.yaml")).unwrap();
        assert!(text.contains("kind: ConfigMap"), "{text}");

        fs::write(dir.join("mine.yaml"), "").unwrap();
        let error = write_objects(&dir, &all).unwrap_err();
        assert!(
            error.chain().any(|cause| cause.is::<ForeignFolder>()),
            "{error:#}"
        );
        assert_eq!(files(&dir).len(), 3, "nothing was removed");
        fs::remove_file(dir.join("mine.yaml")).unwrap();
        fs::write(place.join("x.yaml"), "").unwrap();
        fs::write(
            dir.join(LISTED),
            "../x.yaml\nconfigmap_b.yaml\nconfigmap_b_2.yaml\n",
        )
        .unwrap();
        write_objects(&dir, &[]).unwrap();
        assert!(place.join("x.yaml").exists() && files(&dir).is_empty());
        fs::remove_dir_all(&place).unwrap();
    }
}
