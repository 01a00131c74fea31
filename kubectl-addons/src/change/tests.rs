use addons_engine::{Cause, Fate};
use addons_plan::readiness::{Readiness, Status};
use common::manifest::key::ObjectKey;

use super::*;

#[test]
fn the_highest_code_counts() {
    let report = |causes: &[Cause], is_late: bool| Report {
        failed: causes
            .iter()
            .map(|cause| Failure {
                key: ObjectKey::default(),
                message: String::new(),
                recorded: String::new(),
                fate: Fate::Refused,
                cause: *cause,
            })
            .collect(),
        not_ready: is_late
            .then(|| {
                let readiness = Readiness {
                    status: Status::InProgress,
                    message: String::new(),
                };
                (ObjectKey::default(), readiness)
            })
            .into_iter()
            .collect(),
        ..Report::default()
    };
    for (causes, is_late, exit) in [
        (&[][..], false, Exit::Done),
        (&[Cause::Other], false, Exit::Failed),
        (&[Cause::Other], true, Exit::TimedOut),
        (&[Cause::Other, Cause::Conflict], true, Exit::Conflict),
        (&[Cause::Denied, Cause::Conflict], true, Exit::Denied),
    ] {
        assert_eq!(of_report(&report(causes, is_late)), exit, "{causes:?}");
    }
    let skipped = Report {
        skipped: vec![(ObjectKey::default(), "timed out".to_owned())],
        ..Report::default()
    };
    assert_eq!(of_report(&skipped), Exit::Done);
    for (worst, skipped, exit) in [
        (Exit::Done, false, Exit::Done),
        (Exit::Done, true, Exit::TimedOut),
        (Exit::Failed, true, Exit::Failed),
        (Exit::Conflict, true, Exit::Conflict),
    ] {
        assert_eq!(of_skipped(worst, skipped), exit, "{worst:?}");
    }
}
