//! Renders the status as a page.

use addons_plan::readiness::ReadinessStatus;
use jiff::Timestamp;

use super::ObservedInstallation;
use crate::output::html::{HtmlPage, HtmlRow, Tone};
use crate::words::plan::version_label;

/// Renders the page of these installations, each with the name of its cluster if there are several.
pub(super) fn render_page(all: &[(Option<&str>, &ObservedInstallation)], now: Timestamp) -> String {
    let mut page = HtmlPage::new("Status of add-ons");
    page.text(&format!("At {}", now.strftime("%Y-%m-%d %H:%M:%S UTC")));
    if all.is_empty() {
        page.text("Nothing is installed.");
    }
    for (cluster, looked) in all {
        let record = &looked.record;
        let name = record.metadata.name.as_deref().unwrap_or_default();
        let version = record.installed().map(version_label).unwrap_or_default();
        let target = record.spec.target_namespace.as_deref().unwrap_or_default();
        let at = cluster.map_or_else(String::new, |cluster| format!("{cluster}: "));
        page.section(&format!("{at}{name} {version} in {target}"));
        page.text(&looked.state.to_string());
        let rows = looked.objects.iter().map(|object| {
            let (tone, word) = match object.readiness.as_ref().map(|it| it.status) {
                Some(ReadinessStatus::Current) => (Tone::Good, "ready"),
                Some(ReadinessStatus::InProgress) => (Tone::New, "not ready"),
                Some(ReadinessStatus::Failed) => (Tone::Bad, "failed"),
                Some(ReadinessStatus::Terminating) => (Tone::Bad, "being deleted"),
                Some(ReadinessStatus::Unknown) => (Tone::Bad, "unknown"),
                None if object.planned => (Tone::New, "not created"),
                None => (Tone::Bad, "gone"),
            };
            let why = object.blocker.as_ref().map(|it| it.message.clone());
            let cells = vec![
                word.to_owned(),
                object.key.to_string(),
                object.message().to_owned(),
                why.unwrap_or_default(),
            ];
            HtmlRow { tone, cells }
        });
        page.table(
            &["Status", "Object", "State", "Why"],
            &rows.collect::<Vec<_>>(),
        );
        let findings = list_findings(looked);
        if !findings.is_empty() {
            page.part("Findings");
            page.list(&findings);
        }
    }
    page.finish()
}

/// Lists edited objects, yielded fields and Helm releases.
fn list_findings(looked: &ObservedInstallation) -> Vec<String> {
    let edited = looked.objects.iter().filter(|object| object.edited);
    let edited = edited.map(|object| format!("edited since our last apply: {}", object.key));
    let yielded = looked.objects.iter().flat_map(|object| {
        let fields = object.yielded.iter();
        fields.map(move |field| format!("left to another manager: {}  {field}", object.key))
    });
    let held = super::describe_releases(looked);
    let findings = edited.chain(yielded).chain(held);
    findings.chain(looked.helm.clone()).collect()
}
