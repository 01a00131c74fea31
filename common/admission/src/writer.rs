//! The writer of an installation, recorded in an annotation so that policies can be evaluated after the request as well (semantics 19.3).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::Requester;
use super::marks::GuardMarks;
use super::verdict::AdmissionProblem;
use common::api::names::ANNOTATION_WRITTEN_BY;

/// Returns the text of the annotation: the name of the user, and each group on a line of its own.
#[must_use]
pub fn format_writer(requester: &Requester) -> String {
    let groups = requester.groups.iter();
    // A group with a line break would be read as two groups.
    let groups = groups.filter(|group| !group.contains('\n'));
    let lines: Vec<&str> = std::iter::once(&requester.user)
        .chain(groups)
        .map(String::as_str)
        .collect();
    lines.join("\n")
}

/// Returns the writer that a record names. Without the annotation, the user name is empty.
#[must_use]
pub fn parse_writer(metadata: &ObjectMeta) -> Requester {
    let annotations = metadata.annotations.as_ref();
    let text = annotations.and_then(|all| all.get(ANNOTATION_WRITTEN_BY));
    let mut lines = text.map_or("", String::as_str).split('\n');
    let user = lines.next().unwrap_or_default().to_owned();
    Requester {
        user,
        groups: lines.map(str::to_owned).collect(),
    }
}

/// A record must name the requester as its writer, or no one. If policies do not evaluate the change, it may keep the former writer. Core
/// add-ons are exempt, as from policies.
#[must_use]
pub fn check_writer(
    new: &GuardMarks,
    old: Option<&GuardMarks>,
    is_judged: bool,
    requester: &Requester,
) -> Option<AdmissionProblem> {
    let named = parse_writer(&new.metadata);
    let mut groups = named.groups.iter();
    let is_own =
        named.user == requester.user && groups.all(|group| requester.groups.contains(group));
    let is_kept = !is_judged && old.is_some_and(|old| parse_writer(&old.metadata) == named);
    let is_free = new.core || new.is_being_deleted() || named == Requester::default();
    (!is_free && !is_own && !is_kept).then(|| {
        AdmissionProblem::forbidden(
            "written-by",
            format!("metadata.annotations[{ANNOTATION_WRITTEN_BY}]"),
            format!(
                "it names another writer than {}; leave the annotation out",
                requester.user
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::{marks, requester};

    fn named(text: &str) -> GuardMarks {
        marks(false, json!({"annotations": {ANNOTATION_WRITTEN_BY: text}}))
    }

    #[test]
    fn what_is_written_is_read_again() {
        let jane = requester(&["devs", "system:authenticated"]);
        assert_eq!(format_writer(&jane), "jane\ndevs\nsystem:authenticated");
        assert_eq!(parse_writer(&named(&format_writer(&jane)).metadata), jane);
        let none = marks(false, json!({}));
        assert_eq!(parse_writer(&none.metadata), Requester::default());
        assert_eq!(format_writer(&requester(&["devs\nops"])), "jane");
    }

    #[test]
    fn no_one_writes_in_the_name_of_others() {
        let jane = requester(&["devs", "all"]);
        let before = named("anna\nops");
        for (new, old, is_judged, is_forged) in [
            ("jane\ndevs", None, true, false),
            ("jane", Some(&before), false, false),
            ("jane\ndevs\nops", None, true, true),
            ("janet", None, true, true),
            ("\nops", None, true, true),
            ("anna\nops", Some(&before), false, false),
            ("anna\nops", Some(&before), true, true),
            ("anna", Some(&before), false, true),
            ("anna\nops", None, false, true),
        ] {
            let found = check_writer(&named(new), old, is_judged, &jane);
            assert_eq!(found.is_some(), is_forged, "{new:?} {is_judged}");
        }
        let none = marks(false, json!({}));
        assert_eq!(check_writer(&none, Some(&before), true, &jane), None);
        let core = marks(
            true,
            json!({"annotations": {ANNOTATION_WRITTEN_BY: "anna"}}),
        );
        assert_eq!(check_writer(&core, None, true, &jane), None);
    }
}
