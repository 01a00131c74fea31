use addons_engine::{FailureCause, Fate};
use addons_plan::readiness::{Readiness, ReadinessStatus};
use common::manifest::key::ObjectKey;

use super::*;

#[test]
fn the_highest_code_counts() {
    let report = |causes: &[FailureCause], is_late: bool| Report {
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
                    status: ReadinessStatus::InProgress,
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
        (&[FailureCause::Other], false, Exit::Failed),
        (&[FailureCause::Other], true, Exit::TimedOut),
        (
            &[FailureCause::Other, FailureCause::Conflict],
            true,
            Exit::Conflict,
        ),
        (
            &[FailureCause::Denied, FailureCause::Conflict],
            true,
            Exit::Denied,
        ),
    ] {
        assert_eq!(
            exit_without_skipped(&report(causes, is_late)),
            exit,
            "{causes:?}"
        );
    }
    let skipped = Report {
        skipped: vec![(ObjectKey::default(), "timed out".to_owned())],
        ..Report::default()
    };
    assert_eq!(exit_without_skipped(&skipped), Exit::Done);
    for (worst, skipped, exit) in [
        (Exit::Done, false, Exit::Done),
        (Exit::Done, true, Exit::TimedOut),
        (Exit::Failed, true, Exit::Failed),
        (Exit::Conflict, true, Exit::Conflict),
    ] {
        assert_eq!(exit_with_skipped(worst, skipped), exit, "{worst:?}");
    }
}
