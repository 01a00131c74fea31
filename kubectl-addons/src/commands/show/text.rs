//! Formats the output of `show` for people.

use std::fmt::Write as _;

use addons_plan::summary::kinds;
use common::api::catalogue::{FormField, Method, Requirement};
use common::catalogue::Origin;
use serde_json::Value;

use super::{ShownAddon, ShownContent, ShownEntry, ShownRejection};
use crate::output::{escape_text, pad_text};
use crate::words::{form, short_origin};
use addons_sources;

/// How many digits of a hash are shown.
const HASH_DIGITS: usize = 12;

/// Formats an add-on. Writing to a String cannot fail.
pub fn render_addon(shown: &ShownAddon) -> String {
    let mut text = String::new();
    let cluster = describe_cluster(shown);
    match &shown.entry {
        Some(entry) => {
            let origin = match &entry.origin {
                Origin::Catalogue { .. } => "catalogue",
                Origin::Index { .. } => "index",
                Origin::Installation { .. } => "reference",
                Origin::Directory { .. } => "directory",
            };
            let origin = format!("{origin} {}", short_origin(&entry.origin));
            let head = format!(
                "{} ({origin}{})",
                join_label(&shown.name, &entry.version),
                format_id(", id ", &entry.id)
            );
            let _ = writeln!(text, "{head:<64} fits {cluster}");
        }
        None => {
            let version = shown.asked_for.as_deref().unwrap_or_default();
            let _ = writeln!(
                text,
                "{}   {} fits {cluster}",
                shown.name,
                join_label("no version", version)
            );
        }
    }
    if let Some(description) = &shown.description {
        add_line(&mut text, "about", description);
    }
    if let Some(support) = shown.support {
        add_line(&mut text, "support", &format!("{support:?}"));
    }
    if let Some(deprecation) = &shown.deprecated {
        add_line(&mut text, "end", &deprecation.to_string());
    }
    if let Some(entry) = &shown.entry {
        add_entry(&mut text, &shown.name, entry, shown.content.as_ref());
    }
    if !shown.passed_over.is_empty() {
        text.push_str("  passed over\n");
        add_rejections(&mut text, &shown.passed_over);
    }
    escape_text(&text)
}

fn describe_cluster(shown: &ShownAddon) -> String {
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

fn add_entry(text: &mut String, name: &str, entry: &ShownEntry, content: Option<&ShownContent>) {
    add_line(text, "source", &source_line(entry, content));
    match entry.method {
        Method::Manifest => {}
        Method::GoTemplate => add_line(text, "method", "go-template"),
        Method::Helm => add_line(text, "method", "helm"),
    }
    if let Some(namespace) = &entry.default_namespace {
        add_line(text, "namespace", namespace);
    }
    if let Some(content) = content {
        let kinds = kinds(content.objects.iter());
        add_line(
            text,
            "objects",
            &format!("{}: {kinds}", content.objects.len()),
        );
        add_list(text, "images", &content.images);
    } else if entry.method == Method::Helm {
        let render = format!("in a chart: kubectl addons render {name}");
        add_line(text, "objects", &render);
        let images = format!("in a chart: kubectl addons images {name}");
        add_line(text, "images", &images);
    }
    let requires: Vec<String> = entry.requires.iter().map(format_requirement).collect();
    add_list(text, "requires", &requires);
    let form: Vec<String> = entry.form.iter().map(format_form_field).collect();
    add_list(text, "form", &form);
    if let Some(Value::Object(values)) = &entry.values {
        let values: Vec<String> = values.keys().cloned().collect();
        add_line(text, "values", &values.join(", "));
    }
}

fn source_line(entry: &ShownEntry, content: Option<&ShownContent>) -> String {
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

fn format_requirement(requirement: &Requirement) -> String {
    let version = requirement.version.as_deref().unwrap_or_default();
    format!("{} {version}", requirement.name)
        .trim_end()
        .to_owned()
}

/// Formats a form field: `replicas (number, default 1)  "How many pods serve metrics"`.
fn format_form_field(field: &FormField) -> String {
    let mut text = format!(
        "{} ({}",
        field.internal_name,
        form::describe_accepted(field)
    );
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

fn add_rejections(text: &mut String, entries: &[ShownRejection]) {
    let labels: Vec<String> = entries
        .iter()
        .map(|entry| {
            let label = join_label(&entry.version, &format_id(" id ", &entry.id));
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
        let label = pad_text(label, width);
        let _ = writeln!(text, "    {label}   {}", entry.reason);
    }
}

fn format_id(before: &str, id: &str) -> String {
    if id.is_empty() {
        String::new()
    } else {
        format!("{before}{id}")
    }
}

/// Joins both parts with one blank.
fn join_label(first: &str, second: &str) -> String {
    format!("{} {}", first, second.trim_start())
        .trim()
        .to_owned()
}

/// Adds a title with one item per line.
fn add_list(text: &mut String, title: &str, items: &[String]) {
    for (i, item) in items.iter().enumerate() {
        add_line(text, if i == 0 { title } else { "" }, item);
    }
}

fn add_line(text: &mut String, title: &str, rest: &str) {
    let rest = rest.replace('\n', " ");
    let _ = writeln!(text, "  {title:<9} {}", rest.trim_end());
}
