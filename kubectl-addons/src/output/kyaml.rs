//! KYAML, the YAML of `kubectl -o kyaml`: braces and brackets instead of indentation, every string in quotes, and a comma after every
//! item. Each YAML parser reads it, and none takes a string for something else.

use std::fmt::Write as _;

use serde_json::Value;

/// Keys that a YAML parser takes for something else than text.
const AMBIGUOUS: [&str; 13] = [
    "null", "true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "inf", "nan",
];

/// Renders a document.
pub fn render(value: &Value) -> String {
    let mut text = "---\n".to_owned();
    write_value(&mut text, value, 0);
    text.push('\n');
    text
}

fn write_value(text: &mut String, value: &Value, level: usize) {
    match value {
        Value::String(string) => write_string(text, string, level),
        Value::Array(items) => write_list(text, items, level),
        Value::Object(fields) if fields.is_empty() => text.push_str("{}"),
        Value::Object(fields) => {
            text.push_str("{\n");
            for (key, value) in fields {
                indent(text, level + 1);
                if is_plain(key) {
                    text.push_str(key);
                } else {
                    write_escaped(text, key);
                }
                text.push_str(": ");
                write_value(text, value, level + 1);
                text.push_str(",\n");
            }
            indent(text, level);
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            let _ = write!(text, "{value}");
        }
    }
}

/// The brackets of objects and lists stand together with those of their list.
fn write_list(text: &mut String, items: &[Value], level: usize) {
    let is_together = items.iter().all(|item| item.is_object() || item.is_array());
    match items {
        [] => text.push_str("[]"),
        _ if is_together => {
            text.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    text.push_str(", ");
                }
                write_value(text, item, level);
            }
            text.push(']');
        }
        _ => {
            text.push_str("[\n");
            for item in items {
                indent(text, level + 1);
                write_value(text, item, level + 1);
                text.push_str(",\n");
            }
            indent(text, level);
            text.push(']');
        }
    }
}

/// A string of several lines is folded: each line on a line of its own, aligned below the first one.
fn write_string(text: &mut String, string: &str, level: usize) {
    if !string.contains('\n') {
        write_escaped(text, string);
        return;
    }
    text.push_str("\"\\\n");
    let mut lines = string.split('\n').peekable();
    while let Some(line) = lines.next() {
        let is_last = lines.peek().is_none();
        if is_last && line.is_empty() {
            break;
        }
        indent(text, level);
        // Blanks at the beginning of a line would be folded away: the first one is escaped.
        let is_indented = line.starts_with(' ');
        text.push_str(if is_indented { "  \\" } else { "   " });
        escape(text, line);
        text.push_str(if is_last { "\\\n" } else { "\\n\\\n" });
    }
    indent(text, level);
    text.push_str("  \"");
}

fn write_escaped(text: &mut String, string: &str) {
    text.push('"');
    escape(text, string);
    text.push('"');
}

fn escape(text: &mut String, string: &str) {
    for c in string.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            // Of these, YAML takes some for the end of a line.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
}

/// Whether a key is text for every YAML parser without quotes.
fn is_plain(key: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_inner = |c: char| is_word(c) || "-./".contains(c);
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.ends_with(is_word)
        && key.chars().all(is_inner)
        && !AMBIGUOUS.contains(&key.to_ascii_lowercase().as_str())
}

fn indent(text: &mut String, level: usize) {
    text.extend(std::iter::repeat_n("  ", level));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As the encoder of Kubernetes (sigs.k8s.io/yaml/kyaml) writes it.
    const WRITTEN: &str = r#"---
{
  apiVersion: "v1",
  data: {
    empty: "",
    multi: "\
       one\n\
      \  two\n\
       three\n\
      ",
    open: "\
       one\n\
       two\
      ",
    quoted: "b\"q\"\\ ü",
  },
  metadata: {
    annotations: {},
    labels: {
      a-b: "c",
      app: "web",
      app.kubernetes.io/name: "web",
      "no": "true",
      "y": "d",
    },
  },
  spec: {
    containers: [{
      args: [
        "x",
        "y",
      ],
      command: [],
      ports: [{
        containerPort: 80,
      }, {
        containerPort: 81,
      }],
    }, {
      name: null,
    }],
    hostNetwork: true,
  },
}
"#;

    #[test]
    fn it_is_written_as_kubectl_writes_it() {
        let value = json!({
            "apiVersion": "v1",
            "metadata": {
                "labels": {"app": "web", "no": "true", "app.kubernetes.io/name": "web", "a-b": "c", "y": "d"},
                "annotations": {},
            },
            "data": {"multi": "one\n  two\nthree\n", "open": "one\ntwo", "quoted": "b\"q\"\\ ü", "empty": ""},
            "spec": {
                "containers": [
                    {"args": ["x", "y"], "command": [], "ports": [{"containerPort": 80}, {"containerPort": 81}]},
                    {"name": null},
                ],
                "hostNetwork": true,
            },
        });
        assert_eq!(render(&value), WRITTEN);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let texts = [
            "",
            " ",
            "\n",
            "\n\n",
            " a\n\tb\n",
            "a\\\n",
            "\"",
            "no",
            "1",
            "~",
            "\u{1}\u{2028}\u{feff}\r\t",
            "#",
            "a: b",
            "é\n\n  \nend",
            "- x",
            "...\n---\n",
        ];
        for text in texts {
            let value = json!({"list": [text, [text], {text: text}], text: text});
            let written = render(&value);
            let read = common::manifest::yaml::documents(written.as_bytes(), &Default::default());
            let read: Vec<Value> = read.map(|one| one.unwrap().value).collect();
            assert_eq!(read, [value], "{written}");
        }
    }
}
