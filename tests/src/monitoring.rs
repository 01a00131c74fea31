//! Metrics: those that the page lists, those that a process exports, and those that an expression of Prometheus asks for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};

/// The labels of metrics, by the name of the metric.
pub type Metrics = BTreeMap<String, BTreeSet<String>>;

/// The page that lists all metrics and alerts.
pub const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../kubectl-addons/docs/monitoring.md"
);

/// The labels that Prometheus adds, or that belong to a kind of metric.
const ADDED: [&str; 2] = ["le", "pod"];

/// The metrics with this prefix that the page lists.
///
/// # Errors
/// The page cannot be read, or lists none.
pub fn listed(prefix: &str) -> Result<Metrics> {
    let page = std::fs::read_to_string(PAGE)?;
    let mut metrics = Metrics::new();
    for line in page.lines() {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(name), Some(labels)) = (cells.next(), cells.next()) else {
            continue;
        };
        let name = name.trim_matches('`');
        if name.starts_with(prefix) {
            let labels = labels
                .split(',')
                .map(|label| label.trim().trim_matches('`'));
            let labels = labels.filter(|label| !label.is_empty());
            metrics.insert(name.to_owned(), labels.map(str::to_owned).collect());
        }
    }
    ensure!(!metrics.is_empty(), "{PAGE} lists no metric {prefix}…");
    Ok(metrics)
}

/// The metrics that an OpenMetrics text has. A metric without a value yet has no labels.
///
/// # Errors
/// A line is not of the format.
pub fn exported(text: &str) -> Result<Metrics> {
    let mut metrics = Metrics::new();
    let mut family = String::new();
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            let (name, kind) = described.split_once(' ').context(line.to_owned())?;
            family = match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            };
            metrics.entry(family.clone()).or_default();
        } else if !line.starts_with('#') {
            ensure!(
                line.starts_with(family.as_str()),
                "{line} belongs to {family}"
            );
            let labels = metrics.entry(family.clone()).or_default();
            labels.extend(label_names(line));
        }
    }
    Ok(metrics)
}

/// The metrics with one of these prefixes that an expression names, with the labels that it selects by.
#[must_use]
pub fn asked(expression: &str, prefixes: &[&str]) -> Metrics {
    let mut metrics = Metrics::new();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = expression;
    while let Some(start) = rest.find(is_part) {
        rest = &rest[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        if prefixes.iter().any(|prefix| word.starts_with(prefix)) {
            let name = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| word.strip_suffix(suffix))
                .unwrap_or(word);
            let selected = after.starts_with('{').then(|| label_names(after));
            let labels = metrics.entry(name.to_owned()).or_default();
            labels.extend(selected.into_iter().flatten());
        }
    }
    metrics
}

/// The labels in the first braces of a text.
fn label_names(text: &str) -> BTreeSet<String> {
    let Some((_, labels)) = text.split_once('{') else {
        return BTreeSet::new();
    };
    // Values are quoted, and may contain anything but quotes.
    let outside = labels.split('"').step_by(2);
    let mut names = BTreeSet::new();
    for piece in outside {
        let piece = piece.trim_start_matches(',');
        let end = piece.find(['=', '!', '}']).unwrap_or(0);
        let name = piece[..end].trim();
        if !name.is_empty() && !ADDED.contains(&name) {
            names.insert(name.to_owned());
        }
        if piece.contains('}') {
            break;
        }
    }
    names
}

/// Fails unless a process exports what the page lists, and nothing else. `unused`: metrics that may have no value yet, and thus are not
/// exported.
///
/// # Errors
/// They differ.
pub fn ensure_listed(prefix: &str, text: &str, unused: &[&str]) -> Result<()> {
    let mut listed = listed(prefix)?;
    let mut exported = exported(text)?;
    for name in unused {
        listed.remove(*name).with_context(|| (*name).to_owned())?;
        exported.remove(*name);
    }
    ensure!(
        listed == exported,
        "the page lists {listed:?}, and there are {exported:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(all: &[(&str, &[&str])]) -> Metrics {
        let all = all.iter().map(|(name, labels)| {
            let labels = labels.iter().map(|label| (*label).to_owned());
            ((*name).to_owned(), labels.collect())
        });
        all.collect()
    }

    #[test]
    fn what_is_exported() {
        let text = "# HELP a_reviews Reviews.\n# TYPE a_reviews counter\na_reviews_total{path=\"/x,y=\",ok=\"true\"} 1\n\
            # TYPE a_seconds histogram\na_seconds_bucket{le=\"0.1\",path=\"/\"} 1\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
            # TYPE a_up gauge\na_up 1\n# EOF\n";
        let expected = metrics(&[
            ("a_build_info", &["version"]),
            ("a_reviews_total", &["ok", "path"]),
            ("a_seconds", &["path"]),
            ("a_up", &[]),
        ]);
        assert_eq!(exported(text).unwrap(), expected);
    }

    #[test]
    fn what_is_asked_for() {
        let expression =
            "max by (pod) (rate(a_seconds_bucket{path=\"/\",le!=\"1\"}[5m])) / time() + a_up";
        let expected = metrics(&[("a_seconds", &["path"]), ("a_up", &[])]);
        assert_eq!(asked(expression, &["a_"]), expected);
    }
}
