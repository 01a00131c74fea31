//! `tests/golden/replaces.tsv`: the documented kops rules, every row.

use addons_tests::shared;
use addons_tests::tally::Tally;
use common::catalogue::replaces::{ReplacementKey, is_documented_replacement};

#[test]
fn documented_rules() {
    let mut tally = Tally::new("replaces::documented_rules");
    let mut wrong = Vec::new();
    for row in shared::rows("replaces.tsv") {
        let columns: Vec<Option<&str>> = row
            .iter()
            .map(|column| (column != "-").then_some(column.as_str()))
            .collect();
        let [
            version,
            id,
            manifest_hash,
            new_version,
            new_id,
            new_hash,
            Some(expect),
        ] = columns[..]
        else {
            panic!("a row has seven columns, not {row:?}");
        };
        let old = ReplacementKey {
            version,
            id,
            manifest_hash,
            generation: 0,
        };
        let new = ReplacementKey {
            version: new_version,
            id: new_id,
            manifest_hash: new_hash,
            generation: 0,
        };
        let answer = if is_documented_replacement(old, new) {
            "yes"
        } else {
            "no"
        };
        if answer != expect {
            wrong.push(format!("{row:?}: {answer}"));
        }
        tally.ran();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
