//! Versions, ranges, indexes and selection on arbitrary input.

use std::collections::BTreeSet;

use addons_versions::constraint::{self, Constraint};
use addons_versions::range::Range;
use addons_versions::tolerant;
use common::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion, Constraints};
use common::catalogue::channel::{self, resolve_manifest};
use common::catalogue::select::{ClusterVersions, EntryRequest, Selection, SelectionRules, select};
use common::catalogue::{Catalogue, Origin};
use proptest::prelude::*;
use semver::Version;

/// Ranges and versions of the characters that matter, or any text at all.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9vxX*.<>=!~^|, +a-]{0,24}",
        "(>=|<|=|~|\\^|)?[0-9]{1,3}(\\.[0-9x]{1,2}){0,3}(-[a-z0-9.]{0,4})?( \\|\\| | - |, | )?(>=|<|!=)?[0-9x.]{0,6}",
        any::<String>(),
    ]
}

fn entries() -> impl Strategy<Value = Vec<AddonVersion>> {
    let version = "(v?[0-2](\\.[0-2]){0,2}|[0-2]\\.[0-2]\\.[0-2]-rc\\.[0-2]|junk)?";
    let range = "((>=|<)1\\.[0-3]\\.0|\\^1)?";
    let entry = (version, "[ab]?", "[gh]?", range);
    let entry = entry.prop_map(|(version, id, hash, range)| AddonVersion {
        version,
        id,
        manifest_hash: (!hash.is_empty()).then_some(hash),
        constraints: Constraints {
            kubernetes_version: (!range.is_empty()).then_some(range),
            ..Constraints::default()
        },
        ..AddonVersion::default()
    });
    prop::collection::vec(entry, 0..8)
}

fn rules() -> impl Strategy<Value = SelectionRules> {
    prop_oneof![
        Just(SelectionRules::Auto),
        Just(SelectionRules::Documented),
        Just(SelectionRules::Channels)
    ]
}

fn choose(versions: &[AddonVersion], rules: SelectionRules) -> Selection {
    let addon = Addon {
        name: "a".to_owned(),
        versions: versions.to_vec(),
        ..Addon::default()
    };
    let spec = AddonCatalogueSpec {
        addons: vec![addon],
        ..AddonCatalogueSpec::default()
    };
    let origin = Origin::Index {
        location: "index".to_owned(),
    };
    let request = EntryRequest {
        addon: "a",
        ..EntryRequest::default()
    };
    let facts = ClusterVersions {
        kubernetes: Some(Version::new(1, 2, 0)),
        kkp: None,
        profile: None,
    };
    select(
        &Catalogue::from_spec(&spec, origin),
        &request,
        &facts,
        rules,
    )
}

/// Chosen entry and reasons, without places.
fn summary(selection: &Selection) -> (SelectionRules, String, BTreeSet<String>) {
    let rejections = selection.rejections.iter();
    (
        selection.rules,
        format!(
            "{:?}",
            selection.chosen.as_ref().map(|entry| &entry.version)
        ),
        rejections
            .map(|rejection| format!("{:?}: {}", rejection.entry.version, rejection.reason))
            .collect(),
    )
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in text(), version in text()) {
        let version = tolerant::parse(&version).unwrap_or(Version::new(1, 2, 3));
        let _ = (tolerant::parse_kubernetes(&text), constraint::parse_version(&text), tolerant::is_same(&text, "1"));
        if let Ok(range) = Range::parse(&text) {
            let _ = range.matches(&version);
        }
        if let Ok(constraint) = Constraint::parse(&text) {
            let _ = constraint.matches(&version);
        }
        if let Ok(path) = resolve_manifest(&text, "a/../b.yaml") {
            prop_assert!(!path.is_empty());
        }
        let _ = (resolve_manifest("s3://bucket/index.yaml", &text), resolve_manifest("/a/b", &text));
    }

    #[test]
    fn no_bytes_make_the_index_parser_panic(bytes in any::<Vec<u8>>(), value in text(), field in "[a-zA-Z]{2,18}") {
        let _ = channel::parse(&bytes, "index");
        let index = format!("kind: Addons\nspec:\n  addons:\n  - {field}: {value}\n  - {{name: {value}, {field}: {value}}}");
        let _ = channel::parse(index.as_bytes(), "index");
    }

    /// A version that was read prints as one that reads the same.
    #[test]
    fn versions_survive_printing(text in text()) {
        if let Ok(version) = tolerant::parse(&text) {
            prop_assert_eq!(tolerant::parse(&version.to_string()), Ok(version));
        }
    }

    /// Either the entry is chosen or it is rejected with its reason, never both.
    #[test]
    fn every_entry_is_accounted_for(entries in entries(), rules in rules()) {
        let selection = choose(&entries, rules);
        prop_assert!(selection.rules != SelectionRules::Auto);
        let chosen = usize::from(selection.chosen.is_some());
        prop_assert_eq!(selection.rejections.len() + chosen, entries.len());
    }

    /// Semantics 11: independent of order but for ties, which are warned about.
    #[test]
    fn order_matters_for_ties_only(
        (entries, shuffled) in entries().prop_flat_map(|entries| {
            (Just(entries.clone()), Just(entries).prop_shuffle())
        }),
    ) {
        let (one, other) = (choose(&entries, SelectionRules::Documented), choose(&shuffled, SelectionRules::Documented));
        let is_tie = |warning: &String| warning.contains("the last one is taken");
        prop_assert_eq!(one.warnings.iter().any(is_tie), other.warnings.iter().any(is_tie));
        if !one.warnings.iter().any(is_tie) {
            prop_assert_eq!(summary(&one), summary(&other));
        }
    }
}
