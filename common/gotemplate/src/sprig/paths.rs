//! Functions for paths with slashes, as in Go's `path`; the `os…` functions do the same, as on Linux.

use super::map_text;
use crate::function::Function;
use crate::value::Type::Text;
use crate::value::Value;

pub(super) const PATHS: &[Function<'static>] = &[
    Function::new("base", &[Text], &|_, args| map_text(args, base)).with_aliases(&["osBase"]),
    Function::new("dir", &[Text], &|_, args| map_text(args, dir)).with_aliases(&["osDir"]),
    Function::new("clean", &[Text], &|_, args| map_text(args, clean)).with_aliases(&["osClean"]),
    Function::new("ext", &[Text], &|_, args| map_text(args, ext)).with_aliases(&["osExt"]),
    Function::new("isAbs", &[Text], &|_, args| {
        Ok(Value::Bool(args.text(0)?.starts_with('/')))
    })
    .with_aliases(&["osIsAbs"]),
];

fn base(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    match path.trim_end_matches('/').rsplit('/').next() {
        None | Some("") => "/".to_owned(),
        Some(name) => name.to_owned(),
    }
}

fn dir(path: &str) -> String {
    let end = path.rfind('/').map_or(0, |slash| slash + 1);
    clean(&path[..end])
}

fn ext(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let dot = name.rfind('.').unwrap_or(name.len());
    name[dot..].to_owned()
}

/// Removes empty parts and `.`; `..` removes the part before it.
fn clean(path: &str) -> String {
    let is_rooted = path.starts_with('/');
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." => {
                    parts.pop();
                }
                _ if is_rooted => {}
                _ => parts.push(part),
            },
            part => parts.push(part),
        }
    }
    let root = if is_rooted { "/" } else { "" };
    let clean = format!("{root}{}", parts.join("/"));
    if clean.is_empty() {
        ".".to_owned()
    } else {
        clean
    }
}
