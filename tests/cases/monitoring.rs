//! Alerts and the dashboard ask only for metrics that exist, and each alert has a runbook.

use std::collections::BTreeSet;

use addons_loops::LoopMetrics;
use addons_tests::monitoring::{Metrics, PAGE, asked, ensure_listed, listed};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::pages::anchors_of;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const RUNBOOKS: &str = "kubectl-addons/docs/runbooks.md";
const PREFIXES: [&str; 2] = ["addons_webhook_", "addons_reconciler_"];
/// Annotations that a page on call needs.
const ANNOTATIONS: [&str; 2] = ["summary", "runbook"];

/// The alerts of both components.
fn alerts() -> Result<Vec<Value>> {
    let mut alerts = Vec::new();
    for component in ["webhook-monitor", "reconciler-monitor"] {
        let path = format!("{ROOT}/deploy/components/{component}/alerts.yaml");
        let rule: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
        let groups = rule["spec"]["groups"].as_array().context("no groups")?;
        for group in groups {
            let rules = group["rules"].as_array().context("no rules")?;
            alerts.extend(rules.iter().cloned());
        }
    }
    ensure!(alerts.len() > 10, "only {} alerts", alerts.len());
    Ok(alerts)
}

/// Fails unless the page lists each of these metrics, with these labels.
fn exist(metrics: &Metrics, of: &str) -> Result<()> {
    ensure!(!metrics.is_empty(), "{of} asks for no metric of ours");
    let mut known = Metrics::new();
    for prefix in PREFIXES {
        known.extend(listed(prefix)?);
    }
    for (name, labels) in metrics {
        let there = known
            .get(name)
            .with_context(|| format!("{of}: there is no metric {name}"))?;
        ensure!(
            labels.is_subset(there),
            "{of}: {name} has {there:?}, not {labels:?}"
        );
    }
    Ok(())
}

#[test]
fn alerts_and_the_dashboard_ask_for_metrics_that_exist() -> Result<()> {
    let mut tally = Tally::new("monitoring::metrics");
    for alert in alerts()? {
        let name = alert["alert"].as_str().context("no name")?;
        let expression = alert["expr"].as_str().context("no expression")?;
        exist(&asked(expression, &PREFIXES), name)?;
        tally.ran();
    }
    let path = format!("{ROOT}/deploy/components/webhook-monitor/dashboard.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    for panel in dashboard["panels"].as_array().context("no panels")? {
        for target in panel["targets"].as_array().context("no targets")? {
            let expression = target["expr"].as_str().context("no expression")?;
            exist(&asked(expression, &PREFIXES), &panel["title"].to_string())?;
            tally.ran();
        }
    }
    Ok(())
}

/// What a loop exports before anything has happened. Alerts compare the first failure with these values.
#[test]
fn the_page_lists_the_metrics_of_a_loop() -> Result<()> {
    let text = LoopMetrics::default().encode_text()?;
    let unused = [
        "addons_reconciler_installation_drifted_objects",
        "addons_reconciler_installation_info",
        "addons_reconciler_installation_installed_timestamp_seconds",
        "addons_reconciler_installation_window_timestamp_seconds",
    ];
    ensure_listed("addons_reconciler_", &text, &unused)?;
    for line in [
        "addons_reconciler_reconciles_total{outcome=\"failed\",core=\"true\"} 0",
        "addons_reconciler_watch_failures_total{resource=\"addoninstallations\"} 0",
        "addons_reconciler_conditions{condition=\"Stalled\",core=\"true\"} 0",
    ] {
        ensure!(text.contains(line), "{line} is not in {text}");
    }
    Ok(())
}

#[test]
fn each_alert_is_listed_and_has_a_runbook() -> Result<()> {
    let mut tally = Tally::new("monitoring::runbooks");
    let page = std::fs::read_to_string(PAGE)?;
    let anchors = anchors_of(RUNBOOKS)?;
    let mut linked = BTreeSet::new();
    for alert in alerts()? {
        let name = alert["alert"].as_str().context("no name")?;
        let severity = alert["labels"]["severity"].as_str().unwrap_or_default();
        for annotation in ANNOTATIONS {
            let text = alert["annotations"][annotation].as_str();
            ensure!(text.is_some(), "{name} has no annotation {annotation}");
        }
        let runbook = alert["annotations"]["runbook"].as_str().unwrap_or_default();
        let anchor = runbook
            .strip_prefix(&format!("{RUNBOOKS}#"))
            .with_context(|| format!("{name}: {runbook}"))?;
        ensure!(anchor == name.to_lowercase(), "{name}: {runbook}");
        ensure!(anchors.contains(anchor), "{name}: no heading {anchor}");
        let row = format!("| `{name}` | {severity} |");
        ensure!(page.contains(&row), "{PAGE} has no row {row}");
        linked.insert(anchor.to_owned());
        tally.ran();
    }
    let unlinked: Vec<_> = anchors
        .iter()
        .filter(|anchor| anchor.starts_with("addons") && !linked.contains(*anchor))
        .collect();
    ensure!(unlinked.is_empty(), "runbooks of no alert: {unlinked:?}");
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| `Addons"))
        .count();
    ensure!(
        rows == linked.len(),
        "{rows} rows for {} alerts",
        linked.len()
    );
    Ok(())
}
