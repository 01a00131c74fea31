//! Each fix of `doctor` is run by a test.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use syn::Item;

/// One thing after the other is broken and fixed there.
const BROKEN: &str = "doctor::what_is_broken_is_found_and_mended";
/// What stands instead of a test where the fix is a sentence, or a command of kubectl that changes nothing.
const NO_COMMAND: &str = "";

/// Each problem, and the test that runs its fix.
const FIXES: [(&str, &str); 37] = [
    ("Unreachable", NO_COMMAND),
    ("Unchecked", NO_COMMAND),
    ("OldServer", NO_COMMAND),
    ("DefinitionMissing", BROKEN),
    ("DefinitionNewer", NO_COMMAND),
    ("DefinitionDiffers", BROKEN),
    ("Right", NO_COMMAND),
    ("NoWebhook", BROKEN),
    ("PartMissing", BROKEN),
    ("PartDiffers", BROKEN),
    ("FailuresIgnored", BROKEN),
    ("StaleBundle", BROKEN),
    ("Certificate", BROKEN),
    ("NoEndpoints", BROKEN),
    ("Unanswered", BROKEN),
    ("RefusesAll", BROKEN),
    ("UnansweredOutside", NO_COMMAND),
    ("NotJudged", BROKEN),
    ("NoPolicies", BROKEN),
    ("PolicyMissing", BROKEN),
    ("PolicyDiffers", BROKEN),
    (
        "Unreadable",
        "guard::entrance::g10_a_record_that_cannot_be_read_hides_no_other",
    ),
    ("Interrupted", BROKEN),
    ("Held", BROKEN),
    ("Misplaced", "doctor::a_set_in_a_wrong_namespace_is_seen"),
    (
        "OtherCluster",
        "restored::a_record_of_another_cluster_is_followed_by_no_verb",
    ),
    ("Unwell", BROKEN),
    ("Edited", BROKEN),
    ("NoCluster", BROKEN),
    (
        "HeldByRelease",
        "truth::adoption::n20_helm_does_not_install_an_adopted_release_again",
    ),
    (
        "Deprecated",
        "end_of_life::a_successor_takes_over_the_objects_of_an_add_on_that_has_ended",
    ),
    ("Orphans", BROKEN),
    (
        "Duplicate",
        "rules::race::of_two_catalogues_created_at_once_one_gives_way",
    ),
    ("NoLeader", BROKEN),
    ("Unmarked", BROKEN),
    ("AmbiguousCluster", BROKEN),
    ("NoKubeconfig", BROKEN),
];

#[test]
fn each_fix_of_doctor_is_run_by_a_test() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../common/advice/src/doctor/problem.rs");
    let file = syn::parse_file(&std::fs::read_to_string(path)?)?;
    let problems = file.items.iter().find_map(|item| match item {
        Item::Enum(found) if found.ident == "DoctorProblem" => Some(&found.variants),
        _ => None,
    });
    let problems = problems.context("there is no DoctorProblem")?.iter();
    let problems: BTreeSet<String> = problems.map(|one| one.ident.to_string()).collect();
    let listed: BTreeSet<String> = FIXES.iter().map(|(name, _)| (*name).to_owned()).collect();
    ensure!(problems == listed, "{problems:?} are not {listed:?}");
    let tests = super::promises::tests()?;
    for (problem, test) in FIXES {
        ensure!(
            test == NO_COMMAND || tests.contains(test),
            "{problem}: there is no test {test}"
        );
    }
    Ok(())
}
