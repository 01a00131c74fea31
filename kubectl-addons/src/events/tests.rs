use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::*;

const PAGE: &str = include_str!("../../docs/events.md");

/// An event of every type, with all of its fields.
#[rustfmt::skip]
fn all<'a>(installation: &'a InstallationName, object: &'a ObjectKey) -> Vec<PrintedEvent<'a>> {
    let (verb, exit_code, message) = (Verb::Install, 0, "");
    let version = || {
        let (version, id) = ("1.0.0", "");
        Some(EventVersion { version, id })
    };
    vec![
        PrintedEvent::Finding { message },
        PrintedEvent::UpToDate { installation, addon: "" },
        PrintedEvent::Planned { installation, addon: "", verb, from: version(), to: version(), counts: PlannedCounts::default() },
        PrintedEvent::Defined { object, message },
        PrintedEvent::Started { installation, verb },
        PrintedEvent::WaitingForLock { installation, holder: "" },
        PrintedEvent::Applied { installation, object, action: Action::Create },
        PrintedEvent::Conflict { installation, object, field: "", manager: "", settlement: PrintedSettlement::Taken },
        PrintedEvent::Waiting { installation, object, status: ReadinessStatus::InProgress, message },
        PrintedEvent::Ready { installation, object, message },
        PrintedEvent::Deleted { installation, object },
        PrintedEvent::Warning { installation, object: Some(object), message },
        PrintedEvent::Failed { installation, object, message },
        PrintedEvent::Skipped { installation, object, message },
        PrintedEvent::NotReady { installation, object, message },
        PrintedEvent::Finished { installation, verb, outcome: Exit::Done, exit_code, seconds: 0.5, counts: ReportCounts::default() },
        PrintedEvent::Error { message, exit_code },
        PrintedEvent::Ended { outcome: Exit::Done, exit_code },
    ]
}

/// How many types there are: a new one is missing in [`all`] and on the page until it is counted here.
const fn types(event: &PrintedEvent<'_>) -> usize {
    match event {
        PrintedEvent::Finding { .. }
        | PrintedEvent::UpToDate { .. }
        | PrintedEvent::Planned { .. }
        | PrintedEvent::Defined { .. }
        | PrintedEvent::Started { .. }
        | PrintedEvent::WaitingForLock { .. }
        | PrintedEvent::Applied { .. }
        | PrintedEvent::Conflict { .. }
        | PrintedEvent::Waiting { .. }
        | PrintedEvent::Ready { .. }
        | PrintedEvent::Deleted { .. }
        | PrintedEvent::Warning { .. }
        | PrintedEvent::Failed { .. }
        | PrintedEvent::Skipped { .. }
        | PrintedEvent::NotReady { .. }
        | PrintedEvent::Finished { .. }
        | PrintedEvent::Error { .. }
        | PrintedEvent::Ended { .. } => 18,
    }
}

/// The words in backticks of a cell, without the mark of fields that may be missing.
fn words(cell: &str) -> BTreeSet<String> {
    let words = cell.split('`').skip(1).step_by(2);
    words
        .map(|word| word.trim_end_matches('?').to_owned())
        .collect()
}

/// The rows of the page's table with these columns: the first cell, and the words of the second.
fn table(header: &str) -> BTreeMap<String, BTreeSet<String>> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(header));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let row = |cells: Vec<&str>| (cells[1].trim_matches('`').to_owned(), words(cells[2]));
    cells.map(row).collect()
}

#[test]
fn the_page_lists_every_type_and_every_field() {
    let installation = InstallationName {
        namespace: "a".into(),
        name: "b".into(),
    };
    let object = ObjectKey::default();
    let all = all(&installation, &object);
    assert_eq!(all.first().map(types), Some(all.len()));
    let written = all.iter().map(|event| {
        let mut fields = serde_json::to_value(event).unwrap();
        let fields = fields.as_object_mut().unwrap();
        let kind = fields.remove("type").unwrap();
        let keys = fields.keys().cloned().collect();
        (kind.as_str().unwrap().to_owned(), keys)
    });
    let written: BTreeMap<String, BTreeSet<String>> = written.collect();
    assert_eq!(table("| type | fields |"), written);
}

#[test]
fn the_page_lists_every_count() {
    let keys = |counts: Value| -> BTreeSet<String> {
        counts.as_object().unwrap().keys().cloned().collect()
    };
    let counts = table("| counts of | are |");
    assert_eq!(
        counts["planned"],
        keys(serde_json::to_value(PlannedCounts::default()).unwrap())
    );
    assert_eq!(
        counts["finished"],
        keys(serde_json::to_value(ReportCounts::default()).unwrap())
    );
}

#[test]
fn the_page_lists_every_outcome() {
    let page = table("| outcome | exitCode |");
    for exit in [
        Exit::Done,
        Exit::Failed,
        Exit::Usage,
        Exit::TimedOut,
        Exit::Conflict,
        Exit::DoesNotFit,
        Exit::Denied,
        Exit::Interrupted,
    ] {
        let outcome = serde_json::to_value(exit).unwrap();
        let code = (exit as u8).to_string();
        assert_eq!(page[outcome.as_str().unwrap()], BTreeSet::from([code]));
    }
    assert_eq!(page.len(), 8);
}
