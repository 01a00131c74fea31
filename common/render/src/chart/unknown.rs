//! Finds values that a chart does not use: a misspelt key has no effect, and helm does not report it.

use serde_json::{Map, Value};

use super::Chart;
use common::nearest::nearest;

/// Keys at the root that helm itself uses.
const OF_HELM: [&str; 2] = ["global", "tags"];

/// Returns the paths in `given` that occur neither in `known`, the values of all layers below, nor as a word in a text of the chart, each
/// with the nearest known key. Below the root, only keys that are similar to a known one count, because many maps are passed on as they
/// are.
pub fn find_unknown_keys<'a>(
    chart: &Chart,
    known: &Value,
    given: &Value,
    texts: impl Iterator<Item = &'a [u8]> + Clone,
) -> Vec<(String, Option<String>)> {
    let (Value::Object(known), Value::Object(given)) = (known, given) else {
        return Vec::new();
    };
    let mut search = UnknownKeySearch {
        texts,
        found: Vec::new(),
    };
    let is_of_part = |key: &str| {
        let mut parts = chart.dependencies.iter();
        parts.any(|part| part.alias.as_ref().unwrap_or(&part.name) == key)
    };
    for (key, value) in given {
        if !OF_HELM.contains(&key.as_str()) && !is_of_part(key) {
            search.check_key("", key, value, known);
        }
    }
    search.found
}

struct UnknownKeySearch<T> {
    texts: T,
    found: Vec<(String, Option<String>)>,
}

impl<'a, T: Iterator<Item = &'a [u8]> + Clone> UnknownKeySearch<T> {
    fn check_key(&mut self, above: &str, key: &str, value: &Value, known: &Map<String, Value>) {
        let path = match above {
            "" => key.to_owned(),
            above => format!("{above}.{key}"),
        };
        match (known.get(key), value) {
            (Some(Value::Object(inner)), Value::Object(fields)) if !inner.is_empty() => {
                for (key, value) in fields {
                    self.check_key(&path, key, value, inner);
                }
            }
            (Some(_), _) => {}
            // A null that removes a default which does not exist.
            (None, Value::Null) => {}
            (None, _) => {
                let near = nearest(key, known.keys().map(String::as_str));
                let counts = above.is_empty() || near.is_some();
                if counts && !self.texts.clone().any(|text| has_word(text, key)) {
                    self.found.push((path, near.map(str::to_owned)));
                }
            }
        }
    }
}

/// Returns whether a text contains a key as a whole word.
fn has_word(text: &[u8], word: &str) -> bool {
    let is_part =
        |byte: Option<&u8>| byte.is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_');
    memchr::memmem::find_iter(text, word.as_bytes()).any(|at| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        !is_part(before) && !is_part(text.get(at + word.len()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::package::{Package, PackagedFile};

    #[test]
    fn a_misspelt_value_is_found() {
        let about =
            "name: web\nversion: 1.0.0\ndependencies: [{name: db, alias: store}, {name: cache}]\n";
        let file = PackagedFile {
            path: "Chart.yaml".to_owned(),
            bytes: about.as_bytes().to_vec(),
        };
        let chart = Chart::read(&Package::from_folder(vec![file]).unwrap()).unwrap();
        let known = json!({"replicaCount": 1, "image": {"tag": "1", "repository": "web"}, "resources": {}, "labels": {"team": "a"}});
        let given = json!({
            "replicaCont": 2, "image": {"tags": "2", "digest": "x"}, "resources": {"limits": {}}, "labels": {"owner": "b"},
            "store": {"size": 1}, "cache": {"size": 1}, "db": {"size": 1}, "global": {"a": 1}, "zone": "x", "gone": null, "zoned": 1,
        });
        let texts = [&b"{{ .Values.zone }} {{ .Values.replicaCount }}"[..]];
        let found = find_unknown_keys(&chart, &known, &given, texts.into_iter());
        let found: Vec<(&str, Option<&str>)> = found
            .iter()
            .map(|(path, near)| (path.as_str(), near.as_deref()))
            .collect();
        let expected = [
            ("db", None),
            ("image.tags", Some("tag")),
            ("replicaCont", Some("replicaCount")),
            ("zoned", None),
        ];
        assert_eq!(found, expected);
    }
}
