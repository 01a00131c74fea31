//! Reads one chart from the `index.yaml` of a chart repository, which can have 20 MB.
//!
//! `helm repo index` writes every chart as a key at one depth below `entries:`. If an index has this layout,
//! only the lines of the requested chart are parsed, otherwise the whole file.

use std::collections::BTreeMap;
use std::fmt;

use common::entrance;
use common::manifest::yaml::{DuplicateKeys, FloatReading, YamlOptions, documents};
use common::nearest::{did_you_mean, nearest};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A version of a chart in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChartVersion {
    /// The version as written.
    pub version: String,
    /// The URL of the archive, absolute or relative to the repository.
    pub url: String,
    /// The hex sha256 of the archive.
    pub digest: Option<String>,
}

/// What is wrong with an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexProblem {
    /// The file cannot be parsed.
    Unreadable {
        /// The line; 0 if unknown.
        line: usize,
    },
    /// The file is not an index.
    NotAnIndex,
    /// The index does not have the chart.
    Unknown {
        /// The chart.
        chart: String,
        /// A chart with a similar name, if any.
        near: Option<String>,
        /// The number of charts in the index.
        count: usize,
    },
}

impl fmt::Display for IndexProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { line: 0 } => f.write_str("the index cannot be read as JSON"),
            Self::Unreadable { line } => {
                write!(f, "the index cannot be read as YAML, line {line}")
            }
            Self::NotAnIndex => f.write_str(
                "this is not the index of a chart repository: it has no map `entries`; check the URL",
            ),
            Self::Unknown { chart, near, count } => {
                let near = did_you_mean(near.as_deref());
                write!(f, "there is no chart named {chart} among {count}{near}")
            }
        }
    }
}

/// Returns the versions of a chart in the order of the index.
pub(super) fn read_versions(bytes: &[u8], chart: &str) -> Result<Vec<ChartVersion>, IndexProblem> {
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return read_json(bytes, chart);
    }
    match cut_chart(bytes, chart) {
        Some(IndexCut::Chart(lines)) => {
            // This fails, for example, if the lines have aliases of other parts of the file.
            if let Ok(value) = read_yaml(lines)
                && let Some(list) = value.get(chart)
            {
                return Ok(parse_versions(list));
            }
        }
        Some(IndexCut::Others(names)) => return Err(unknown_chart(chart, &names)),
        None => {}
    }
    let value = read_yaml(bytes)?;
    let all = value.get("entries").ok_or(IndexProblem::NotAnIndex)?;
    let all = match all {
        Value::Object(all) => all,
        Value::Null => return Err(unknown_chart(chart, &[])),
        _ => return Err(IndexProblem::NotAnIndex),
    };
    match all.get(chart) {
        Some(list) => Ok(parse_versions(list)),
        None => Err(unknown_chart(
            chart,
            &all.keys().map(String::as_str).collect::<Vec<_>>(),
        )),
    }
}

fn read_json(bytes: &[u8], chart: &str) -> Result<Vec<ChartVersion>, IndexProblem> {
    #[derive(Deserialize)]
    struct JsonIndex<'a> {
        #[serde(borrow)]
        entries: BTreeMap<String, &'a RawValue>,
    }
    let unreadable = IndexProblem::Unreadable { line: 0 };
    let index: JsonIndex<'_> = entrance::read_outline(bytes).map_err(|_| unreadable.clone())?;
    let Some(list) = index.entries.get(chart) else {
        let names: Vec<&str> = index.entries.keys().map(String::as_str).collect();
        return Err(unknown_chart(chart, &names));
    };
    let list = entrance::from_str(list.get()).map_err(|_| unreadable)?;
    Ok(parse_versions(&list))
}

fn unknown_chart(chart: &str, names: &[&str]) -> IndexProblem {
    IndexProblem::Unknown {
        chart: chart.to_owned(),
        near: nearest(chart, names.iter().copied()).map(str::to_owned),
        count: names.len(),
    }
}

/// Parses the list of versions. Versions without an archive are ignored, as in helm.
fn parse_versions(list: &Value) -> Vec<ChartVersion> {
    let entries = list.as_array().into_iter().flatten();
    let entry = |entry: &Value| {
        let text = |name| entry.get(name).and_then(Value::as_str);
        let digest = text("digest").filter(|digest| !digest.is_empty());
        let digest = digest.map(|digest| digest.trim_start_matches("sha256:").to_ascii_lowercase());
        Some(ChartVersion {
            version: text("version")?.to_owned(),
            url: entry.get("urls")?.get(0)?.as_str()?.to_owned(),
            digest,
        })
    };
    entries.filter_map(entry).collect()
}

fn read_yaml(bytes: &[u8]) -> Result<Value, IndexProblem> {
    let options = YamlOptions {
        duplicate_keys: DuplicateKeys::LastWins,
        floats: FloatReading::Text,
    };
    match documents(bytes, &options).next() {
        Some(Ok(document)) => Ok(document.value),
        Some(Err(error)) => Err(IndexProblem::Unreadable { line: error.line }),
        None => Ok(Value::Null),
    }
}

/// The result of searching for a chart in the lines of an index.
enum IndexCut<'a> {
    /// The lines of the chart, starting with its name.
    Chart(&'a [u8]),
    /// The chart does not exist. Has the names of all charts.
    Others(Vec<&'a str>),
}

/// Cuts out the lines of a chart. Returns `None` if the index does not have the layout of `helm repo index`.
fn cut_chart<'a>(bytes: &'a [u8], chart: &str) -> Option<IndexCut<'a>> {
    let mut lines = Lines { bytes, start: 0 };
    loop {
        let (_, line) = lines.next()?;
        if line.trim_ascii_end() == b"entries:" {
            break;
        }
    }
    let mut depth = None;
    let mut names = Vec::new();
    let mut begin = None;
    for (start, line) in lines {
        let indent = line.iter().take_while(|byte| **byte == b' ').count();
        let rest = line.get(indent..)?.trim_ascii_end();
        if rest.is_empty() || rest.starts_with(b"#") {
            continue;
        }
        if indent == 0 && !rest.starts_with(b"-") {
            return match begin {
                Some(begin) => bytes.get(begin..start).map(IndexCut::Chart),
                None => Some(IndexCut::Others(names)),
            };
        }
        let depth = *depth.get_or_insert(indent);
        if indent > depth || (indent == depth && rest.starts_with(b"-")) {
            continue;
        }
        if indent < depth {
            return None;
        }
        if let Some(begin) = begin {
            return bytes.get(begin..start).map(IndexCut::Chart);
        }
        // Chart names need no quotes. If there are quotes, the whole index is parsed.
        let name = std::str::from_utf8(rest).ok()?.strip_suffix(':')?;
        if name.contains(['"', '\'', ' ', ':', '&', '*', '{', '[', '?', '!']) {
            return None;
        }
        if name == chart {
            begin = Some(start);
        }
        names.push(name);
    }
    match begin {
        Some(begin) => bytes.get(begin..).map(IndexCut::Chart),
        None => Some(IndexCut::Others(names)),
    }
}

/// Iterates over lines with their offsets.
struct Lines<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl<'a> Iterator for Lines<'a> {
    type Item = (usize, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.start;
        let rest = self.bytes.get(start..).filter(|rest| !rest.is_empty())?;
        let line = rest.split(|byte| *byte == b'\n').next()?;
        self.start = start + line.len() + 1;
        Some((start, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = r#"apiVersion: v1
entries:
  # generated
  db:
  - name: db
    version: 2.0.0
    description: |
      text
      web:
        - no
    urls: [db-2.0.0.tgz]
  web:
  - name: web
    version: 1.10
    digest: "ABCD"
    urls:
    - https://a.example/web.tgz
  - version: v1.9.0
    urls:
    - web-1.9.0.tgz

  - version: 1.8.0
    urls: []
  zzz:
    - version: 1.0.0
      urls: ["zzz.tgz"]
generated: "2026-01-01T00:00:00Z"
"#;

    #[test]
    fn one_chart_is_read() {
        let as_json = documents(
            INDEX.as_bytes(),
            &YamlOptions {
                floats: FloatReading::Text,
                ..YamlOptions::default()
            },
        );
        let as_json = as_json
            .into_iter()
            .next()
            .unwrap()
            .unwrap()
            .value
            .to_string();
        let quoted = INDEX.replace("  web:\n  -", "  \"web\":\n  -");
        let cut_off = INDEX.split("  zzz").next().unwrap();
        for index in [INDEX, &as_json, &quoted, cut_off] {
            let web = read_versions(index.as_bytes(), "web").unwrap();
            assert_eq!(
                web,
                [
                    ChartVersion {
                        version: "1.10".to_owned(),
                        url: "https://a.example/web.tgz".to_owned(),
                        digest: Some("abcd".to_owned()),
                    },
                    ChartVersion {
                        version: "v1.9.0".to_owned(),
                        url: "web-1.9.0.tgz".to_owned(),
                        digest: None,
                    },
                ]
            );
        }
        assert_eq!(read_versions(INDEX.as_bytes(), "zzz").unwrap().len(), 1);
        assert!(matches!(
            cut_chart(INDEX.as_bytes(), "web"),
            Some(IndexCut::Chart(_))
        ));
        assert!(cut_chart(quoted.as_bytes(), "web").is_none());
    }

    #[test]
    fn aliases_are_followed() {
        let index = "entries:\n  a:\n  - &x\n    version: 1.0.0\n    urls: [a.tgz]\n  b:\n  - *x\n";
        assert_eq!(
            read_versions(index.as_bytes(), "b"),
            read_versions(index.as_bytes(), "a")
        );
    }

    #[test]
    fn problems_are_named() {
        for (index, expected) in [
            (
                INDEX,
                "there is no chart named webb among 3; did you mean web?",
            ),
            ("entries: {}\n", "there is no chart named webb among 0"),
            ("entries:\n", "there is no chart named webb among 0"),
            ("{\"entries\": {}}", "there is no chart named webb among 0"),
            ("{\"entries\": ", "the index cannot be read as JSON"),
            ("a: [\n", "the index cannot be read as YAML, line 1"),
            (
                "<html></html>",
                "this is not the index of a chart repository: it has no map `entries`; check the URL",
            ),
        ] {
            let problem = read_versions(index.as_bytes(), "webb").unwrap_err();
            assert_eq!(problem.to_string(), expected);
        }
    }
}
