//! Formats the output of `show` for people.

use std::fmt::Write as _;

use addons_plan::summary::kinds;
use common::api::catalogue::{FormField, Method, Requirement};
use common::catalogue::Origin;
use serde_json::Value;

use super::{Content, PassedOver, Shown, ShownEntry};
use crate::commands::short;
use crate::output::{padded, plain};
use crate::words::form;
use addons_sources;

/// How many digits of a hash are shown.
const HASH_DIGITS: usize = 12;

/// Formats an add-on. Writing to a String cannot fail.
pub fn text(shown: &Shown) -> String {
    let mut text = String::new();
    let cluster = cluster(shown);
    match &shown.entry {
        Some(entry) => {
            let origin = match &entry.origin {
                Origin::Catalogue { .. } => "catalogue",
                Origin::Index { .. } => "index",
                Origin::Directory { .. } => "directory",
            };
            let origin = format!("{origin} {}", short(&entry.origin));
            let head = format!(
                "{} ({origin}{})",
                label(&shown.name, &entry.version),
                id(", id ", &entry.id)
            );
            let _ = writeln!(text, "{head:<64} fits {cluster}");
        }
        None => {
            let version = shown.asked_for.as_deref().unwrap_or_default();
            let _ = writeln!(
                text,
                "{}   {} fits {cluster}",
                shown.name,
                label("no version", version)
            );
        }
    }
    if let Some(description) = &shown.description {
        line(&mut text, "about", description);
    }
    if let Some(support) = shown.support {
        line(&mut text, "support", &format!("{support:?}"));
    }
    if let Some(entry) = &shown.entry {
        of_entry(&mut text, &shown.name, entry, shown.content.as_ref());
    }
    if !shown.passed_over.is_empty() {
        text.push_str("  passed over\n");
        passed_over(&mut text, &shown.passed_over);
    }
    plain(&text)
}

fn cluster(shown: &Shown) -> String {
    let kubernetes = shown
        .cluster
        .kubernetes
        .as_deref()
        .unwrap_or("of any version");
    match &shown.cluster.kkp {
        Some(kkp) => format!("Kubernetes {kubernetes}, KKP {kkp}"),
        None => format!("Kubernetes {kubernetes}"),
    }
}

fn of_entry(text: &mut String, name: &str, entry: &ShownEntry, content: Option<&Content>) {
    line(text, "source", &source_line(entry, content));
    match entry.method {
        Method::Manifest => {}
        Method::GoTemplate => line(text, "method", "go-template"),
        Method::Helm => line(text, "method", "helm"),
    }
    if let Some(namespace) = &entry.default_namespace {
        line(text, "namespace", namespace);
    }
    if let Some(content) = content {
        let kinds = kinds(content.objects.iter());
        line(
            text,
            "objects",
            &format!("{}: {kinds}", content.objects.len()),
        );
        list(text, "images", &content.images);
    } else if entry.method == Method::Helm {
        let render = format!("in a chart: kubectl addons render {name}");
        line(text, "objects", &render);
        let images = format!("in a chart: kubectl addons images {name}");
        line(text, "images", &images);
    }
    let requires: Vec<String> = entry.requires.iter().map(requirement).collect();
    list(text, "requires", &requires);
    let form: Vec<String> = entry.form.iter().map(field).collect();
    list(text, "form", &form);
    if let Some(Value::Object(values)) = &entry.values {
        let values: Vec<String> = values.keys().cloned().collect();
        line(text, "values", &values.join(", "));
    }
}

fn source_line(entry: &ShownEntry, content: Option<&Content>) -> String {
    if let Some(content) = content {
        let hash: String = content.manifest_hash.chars().take(HASH_DIGITS).collect();
        let algorithm = match content.manifest_hash.len() {
            40 => "sha1:",
            _ => "sha256:",
        };
        let verified = if content.verified {
            "verified"
        } else {
            "not verified: the entry has no manifestHash"
        };
        return format!("{}  {algorithm}{hash}… {verified}", content.location);
    }
    addons_sources::title(&entry.source)
}

fn requirement(requirement: &Requirement) -> String {
    let version = requirement.version.as_deref().unwrap_or_default();
    format!("{} {version}", requirement.name)
        .trim_end()
        .to_owned()
}

/// Formats a form field: `replicas (number, default 1)  "How many pods serve metrics"`.
fn field(field: &FormField) -> String {
    let mut text = format!("{} ({}", field.internal_name, form::takes(field));
    if let Some(default) = &field.default {
        let _ = write!(text, ", default {default}");
    } else if field.required {
        text.push_str(", required");
    }
    text.push(')');
    if let Some(help) = &field.help_text {
        let _ = write!(text, "  {help:?}");
    }
    text
}

fn passed_over(text: &mut String, entries: &[PassedOver]) {
    let labels: Vec<String> = entries
        .iter()
        .map(|entry| {
            let label = label(&entry.version, &id(" id ", &entry.id));
            if label.is_empty() {
                "no version".to_owned()
            } else {
                label
            }
        })
        .collect();
    let width = labels
        .iter()
        .map(|label| label.chars().count())
        .max()
        .unwrap_or_default();
    for (label, entry) in labels.iter().zip(entries) {
        let label = padded(label, width);
        let _ = writeln!(text, "    {label}   {}", entry.reason);
    }
}

fn id(before: &str, id: &str) -> String {
    if id.is_empty() {
        String::new()
    } else {
        format!("{before}{id}")
    }
}

/// Joins both parts with one blank.
fn label(first: &str, second: &str) -> String {
    format!("{} {}", first, second.trim_start())
        .trim()
        .to_owned()
}

/// Adds a title with one item per line.
fn list(text: &mut String, title: &str, items: &[String]) {
    for (i, item) in items.iter().enumerate() {
        line(text, if i == 0 { title } else { "" }, item);
    }
}

fn line(text: &mut String, title: &str, rest: &str) {
    let rest = rest.replace('\n', " ");
    let _ = writeln!(text, "  {title:<9} {}", rest.trim_end());
}
