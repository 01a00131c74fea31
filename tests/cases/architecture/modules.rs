//! Which modules of the core may use which: the arrows that its `crate::` paths draw.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// The modules of `common`, lowest first, each with the modules that it uses. A module uses only modules above it in this
/// table, so the arrows form no circle.
const ARROWS: [(&str, &[&str]); 22] = [
    ("address", &[]),
    ("age", &[]),
    ("causes", &[]),
    ("nearest", &[]),
    ("text", &[]),
    ("right", &[]),
    ("schedule", &[]),
    ("entrance", &[]),
    ("foreign", &[]),
    ("expression", &[]),
    ("api", &["entrance", "text"]),
    ("manifest", &["api", "entrance", "text"]),
    ("catalogue", &["api", "entrance", "expression", "manifest"]),
    ("directory", &["api", "manifest"]),
    ("patch", &["api", "entrance", "manifest", "nearest"]),
    (
        "values",
        &["api", "catalogue", "entrance", "manifest", "nearest"],
    ),
    ("schema", &["api", "manifest", "nearest", "text", "values"]),
    ("image", &[]),
    ("registry", &["api", "image"]),
    ("oci", &["entrance", "image"]),
    ("target", &["address", "api", "values"]),
    ("pin", &["api"]),
];

/// Every Rust file below `folder`.
pub(super) fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// The syntax of every source file below these folders of the workspace, with its path, except tests and examples.
pub(super) fn sources(folders: &[&str]) -> Result<Vec<(String, syn::File)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    let mut all = Vec::new();
    for folder in folders {
        files(&root.join(folder), &mut all)?;
    }
    let mut sources = Vec::new();
    for path in all {
        let relative = path.strip_prefix(&root)?;
        let name = relative.to_string_lossy().replace('\\', "/");
        if !name.contains("/tests") && !name.contains("/examples/") {
            let source = std::fs::read_to_string(&path).with_context(|| name.clone())?;
            let syntax = syn::parse_file(&source).with_context(|| name.clone())?;
            sources.push((name, syntax));
        }
    }
    Ok(sources)
}

/// The first names of the `crate::` paths of a source file; links in comments draw no arrow.
fn used(source: &str) -> BTreeSet<String> {
    let name = |text: &str| -> String {
        let letters = text
            .trim_start()
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_');
        letters.collect()
    };
    let code: Vec<&str> = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let mut used = BTreeSet::new();
    for path in code.split("crate::").skip(1) {
        match path.strip_prefix('{') {
            // `use crate::{a::b, c::{d, e}};`: the names at the first level.
            Some(group) => {
                let mut depth = 0_usize;
                let mut first = String::new();
                for c in group.chars() {
                    match c {
                        '}' if depth == 0 => break,
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        c if depth == 0 => first.push(c),
                        _ => {}
                    }
                }
                used.extend(first.split(',').map(name));
            }
            None => {
                used.insert(name(path));
            }
        }
    }
    used.remove("");
    used
}

#[test]
fn the_modules_of_the_core_form_no_circle() -> Result<()> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../common/src");
    let mut sources = Vec::new();
    files(&src, &mut sources)?;
    ensure!(sources.len() > 50, "common/src was not read");
    let table: BTreeMap<&str, &[&str]> = ARROWS.into();
    let mut drawn: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut undeclared = Vec::new();
    for path in &sources {
        let relative = path.strip_prefix(&src)?;
        let module = match relative.components().next() {
            Some(first) => Path::new(&first).with_extension(""),
            None => continue,
        };
        let module = module.to_string_lossy().into_owned();
        if module == "lib" {
            continue;
        }
        let allowed = table
            .get(module.as_str())
            .with_context(|| format!("module {module} is not in the table"))?;
        for other in used(&std::fs::read_to_string(path)?) {
            if other == module {
                continue;
            }
            if !allowed.contains(&other.as_str()) {
                undeclared.push(format!("{module} -> {other} ({})", relative.display()));
            }
            drawn.entry(module.clone()).or_default().insert(other);
        }
    }
    assert!(
        undeclared.is_empty(),
        "arrows that the table does not have:\n{}",
        undeclared.join("\n")
    );
    for (module, allowed) in ARROWS {
        for other in allowed {
            assert!(
                drawn.get(module).is_some_and(|it| it.contains(*other)),
                "the table has an arrow that no code draws: {module} -> {other}"
            );
        }
    }
    Ok(())
}

/// What `execute` uses must not use it in turn: its events and options are modules of their own.
#[test]
fn no_module_of_the_engine_uses_execute() -> Result<()> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("../common/engine/src");
    let mut sources = Vec::new();
    files(&src, &mut sources)?;
    ensure!(sources.len() > 30, "common/engine/src was not read");
    for path in sources {
        let relative = path.strip_prefix(&src)?.to_string_lossy().into_owned();
        if relative == "lib.rs" || relative.starts_with("execute") {
            continue;
        }
        let source = std::fs::read_to_string(&path)?;
        let code = source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let line = code.into_iter().find(|line| line.contains("execute::"));
        assert_eq!(line, None, "{relative}");
    }
    Ok(())
}

#[test]
fn the_table_itself_is_sorted_by_layer() {
    let mut above = BTreeSet::new();
    for (module, used) in ARROWS {
        for other in used {
            assert!(above.contains(other), "{module} -> {other} points down");
        }
        above.insert(module);
    }
}

#[test]
fn paths_are_found_as_rust_writes_them() {
    let source = "
        //! See [`crate::plan`].
        use crate::api::{names, catalogue::{Method}};
        pub use crate::nearest;
        use crate::{values::{self, merge}, manifest};
        fn f() -> crate::readiness::Status { crate::readiness::assess(&x) } // crate::comment
    ";
    let expected = [
        "api",
        "comment",
        "manifest",
        "nearest",
        "readiness",
        "values",
    ];
    assert_eq!(used(source), expected.map(str::to_owned).into());
}
