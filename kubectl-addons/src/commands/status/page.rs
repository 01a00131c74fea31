//! Renders the status as a page.

use addons_plan::readiness::Status;
use jiff::Timestamp;

use super::Looked;
use crate::output::html::{Page, Row, Tone};
use crate::words::plan::label;

/// Renders the page of these installations, each with the name of its cluster if there are several.
pub(super) fn page(all: &[(Option<&str>, &Looked)], now: Timestamp) -> String {
    let mut page = Page::new("Status of add-ons");
    page.text(&format!("At {}", now.strftime("%Y-%m-%d %H:%M:%S UTC")));
    if all.is_empty() {
        page.text("Nothing is installed.");
    }
    for (cluster, looked) in all {
        let record = &looked.record;
        let name = record.metadata.name.as_deref().unwrap_or_default();
        let version = record.installed().map(label).unwrap_or_default();
        let target = record.spec.target_namespace.as_deref().unwrap_or_default();
        let at = cluster.map_or_else(String::new, |cluster| format!("{cluster}: "));
        page.section(&format!("{at}{name} {version} in {target}"));
        page.text(&looked.state.to_string());
        let rows = looked.objects.iter().map(|object| {
            let (tone, word) = match object.readiness.as_ref().map(|it| it.status) {
                Some(Status::Current) => (Tone::Good, "ready"),
                Some(Status::InProgress) => (Tone::New, "not ready"),
                Some(Status::Failed) => (Tone::Bad, "failed"),
                Some(Status::Terminating) => (Tone::Bad, "being deleted"),
                Some(Status::Unknown) => (Tone::Bad, "unknown"),
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
            Row { tone, cells }
        });
        page.table(
            &["Status", "Object", "State", "Why"],
            &rows.collect::<Vec<_>>(),
        );
        let findings = findings(looked);
        if !findings.is_empty() {
            page.part("Findings");
            page.list(&findings);
        }
    }
    page.finish()
}

/// Lists edited objects, yielded fields and Helm releases.
fn findings(looked: &Looked) -> Vec<String> {
    let edited = looked.objects.iter().filter(|object| object.edited);
    let edited = edited.map(|object| format!("edited since our last apply: {}", object.key));
    let yielded = looked.objects.iter().flat_map(|object| {
        let fields = object.yielded.iter();
        fields.map(move |field| format!("left to another manager: {}  {field}", object.key))
    });
    let held = super::held(looked);
    let findings = edited.chain(yielded).chain(held);
    findings.chain(looked.helm.clone()).collect()
}
