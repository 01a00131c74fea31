//! `-o jsonpath=TEMPLATE` and `-o custom-columns=SPEC`: prints what kubectl prints for the same JSON.

mod find;
mod path;

use std::borrow::Cow;

use serde_json::Value;

use find::{FoundValue, find_values};
use path::{TemplatePart, parse_template};

/// The smallest width of a column including its gap, as kubectl pads it.
const NARROWEST: usize = 6;
/// Blanks after the widest cell of a column.
const GAP: usize = 3;

/// A template that turns a value into text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputTemplate {
    /// `jsonpath=`
    JsonPath(Vec<TemplatePart>),
    /// `custom-columns=`
    Columns(Vec<TemplateColumn>),
}

/// A column of `custom-columns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateColumn {
    header: String,
    parts: Vec<TemplatePart>,
}

impl OutputTemplate {
    /// Parses the text after `jsonpath=`.
    ///
    /// # Errors
    /// Describes in a sentence what is wrong with it.
    pub fn json_path(text: &str) -> Result<Self, String> {
        parse_template(text).map(Self::JsonPath)
    }

    /// Parses the text after `custom-columns=`: `NAME:.name,VERSION:.version`.
    ///
    /// # Errors
    /// Describes in a sentence what is wrong with it.
    pub fn columns(text: &str) -> Result<Self, String> {
        let columns = text.split(',').map(|column| {
            let wrong = || format!("{column:?} is not HEADER:.PATH");
            let (header, path) = column.split_once(':').ok_or_else(wrong)?;
            let bare = path
                .strip_prefix('{')
                .and_then(|path| path.strip_suffix('}'))
                .unwrap_or(path);
            let bare = bare.strip_prefix('.').unwrap_or(bare);
            if bare.is_empty() || bare.contains(['{', '}']) {
                return Err(wrong());
            }
            Ok(TemplateColumn {
                header: header.to_owned(),
                parts: parse_template(&format!("{{.{bare}}}"))?,
            })
        });
        columns.collect::<Result<_, _>>().map(Self::Columns)
    }

    /// Renders a value. For a list, columns show its items.
    ///
    /// # Errors
    /// An expression does not fit the value.
    pub fn render(&self, value: &Value, no_headers: bool) -> Result<String, String> {
        match self {
            Self::JsonPath(parts) => {
                let mut text = String::new();
                print_parts(parts, &Cow::Borrowed(value), &mut text)?;
                Ok(text)
            }
            Self::Columns(columns) => {
                let one = std::slice::from_ref(value);
                let items = value["items"].as_array().map_or(one, Vec::as_slice);
                let header = columns.iter().map(|column| column.header.clone());
                let mut rows = vec![header.collect()];
                for item in items {
                    let cells = columns.iter().map(|column| format_cell(column, item));
                    rows.push(cells.collect::<Result<Vec<String>, _>>()?);
                }
                Ok(format_table(
                    rows.get(usize::from(no_headers)..).unwrap_or_default(),
                ))
            }
        }
    }
}

fn print_parts(
    parts: &[TemplatePart],
    value: &FoundValue<'_>,
    text: &mut String,
) -> Result<(), String> {
    for part in parts {
        match part {
            TemplatePart::Print(steps) => {
                let found = find_values(vec![value.clone()], steps)?;
                let found: Vec<String> = found.iter().map(|one| format_value(one)).collect();
                text.push_str(&found.join(" "));
            }
            TemplatePart::Range(steps, inner) => {
                for one in find_values(vec![value.clone()], steps)? {
                    print_parts(inner, &one, text)?;
                }
            }
        }
    }
    Ok(())
}

/// Formats maps and lists as JSON, and other values as they are.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // Go's encoder escapes these for HTML.
        Value::Array(_) | Value::Object(_) => value
            .to_string()
            .replace('&', "\\u0026")
            .replace('<', "\\u003c")
            .replace('>', "\\u003e"),
        other => other.to_string(),
    }
}

fn format_cell(column: &TemplateColumn, item: &Value) -> Result<String, String> {
    let mut found = Vec::new();
    for part in &column.parts {
        if let TemplatePart::Print(steps) = part {
            found.extend(find_values(vec![Cow::Borrowed(item)], steps)?);
        }
    }
    if found.is_empty() {
        return Ok("<none>".to_owned());
    }
    let found: Vec<String> = found.iter().map(|one| format_go_value(one)).collect();
    Ok(found.join(","))
}

/// Formats a value as Go prints it.
fn format_go_value(value: &Value) -> String {
    let joined = |all: Vec<String>| all.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) => format!("[{}]", joined(all.iter().map(format_go_value).collect())),
        Value::Object(all) => {
            let all = all
                .iter()
                .map(|(name, value)| format!("{name}:{}", format_go_value(value)));
            format!("map[{}]", joined(all.collect()))
        }
        other => other.to_string(),
    }
}

fn format_table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count() + GAP).max();
        widest.unwrap_or_default().max(NARROWEST)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let Some((last, before)) = row.split_last() else {
            continue;
        };
        for (cell, width) in before.iter().zip(&widths) {
            text.push_str(&super::pad_text(cell, *width));
        }
        text.push_str(last);
        text.push('\n');
    }
    text
}
