use std::sync::Arc;

use common::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion};
use common::catalogue::Catalogue;
use serde_json::{Value, json};

use super::*;

fn entry(hash: Option<String>) -> CatalogueEntry {
    let version = AddonVersion {
        version: "1.0.0".to_owned(),
        manifest_hash: hash,
        ..AddonVersion::default()
    };
    let spec = AddonCatalogueSpec {
        signature: Some(SignaturePolicy {
            required: true,
            ..SignaturePolicy::default()
        }),
        addons: vec![Addon {
            name: "web".to_owned(),
            versions: vec![version],
            ..Addon::default()
        }],
        ..AddonCatalogueSpec::default()
    };
    let location = "index.yaml".to_owned();
    let mut catalogue = Catalogue::from_spec(&spec, Origin::Index { location });
    catalogue.entries.remove(0)
}

#[test]
fn only_a_sha256_stands_for_a_signature() {
    for (digits, expected) in [(32, false), (40, false), (64, true)] {
        let entry = entry(Some("a".repeat(digits)));
        assert_eq!(pinned_sha256(&entry).is_some(), expected, "{digits}");
    }
    assert_eq!(pinned_sha256(&entry(None)), None);
}

#[test]
fn what_a_catalogue_does_not_list_does_not_get_around_its_policy() {
    let catalogue = |name: &str, addon: &str, required: bool| -> AddonCatalogue {
        let spec = AddonCatalogueSpec {
            signature: Some(SignaturePolicy {
                required,
                ..SignaturePolicy::default()
            }),
            addons: vec![Addon {
                name: addon.to_owned(),
                ..Addon::default()
            }],
            ..AddonCatalogueSpec::default()
        };
        AddonCatalogue::new(name, spec)
    };
    let all = [
        catalogue("open", "web", false),
        catalogue("signed", "dns", true),
    ];
    let cases: [(&str, &[&str], Option<&str>); 5] = [
        ("web", &[], None),
        ("web", &["open"], None),
        ("web", &["open", "signed"], Some("signed")),
        ("dns", &[], Some("signed")),
        ("dns", &["gone"], Some("signed")),
    ];
    for (addon, claimed, expected) in cases {
        assert_eq!(
            find_requiring(&all, addon, claimed),
            expected,
            "{addon} {claimed:?}"
        );
    }
}

#[test]
fn an_entry_has_the_policy_of_its_catalogue() {
    let policy = entry(None).signature.map(Arc::unwrap_or_clone);
    assert!(policy.is_some_and(|policy| policy.required));
}

/// A catalogue that requires signatures of `own`, if that is one, with two versions that bring along what their catalogue required.
fn merged(own: Option<&str>) -> AddonCatalogue {
    let policy = own.map(|key| json!({"key": key}));
    let versions = [version("2.0.0", Some("theirs")), version("1.0.0", None)];
    let addons = json!([{"name": "web", "versions": versions}]);
    let spec = serde_json::from_value(json!({"signature": policy, "addons": addons}));
    AddonCatalogue::new("team", spec.unwrap())
}

fn version(version: &str, key: Option<&str>) -> Value {
    let policy = key.map(|key| json!({"key": key}));
    json!({
        "version": version, "source": {"inline": {"manifest": ""}},
        "mergedFrom": {"catalogue": "site", "signature": policy},
    })
}

/// The key that a version must be signed with today, which was kept with a revision when its catalogue required `former`.
fn key_today(object: &AddonCatalogue, kept: &str) -> Option<String> {
    let addons = json!([{"name": "web", "versions": [version(kept, Some("former"))]}]);
    let spec: AddonCatalogueSpec = serde_json::from_value(json!({"addons": addons})).unwrap();
    let location = "index.yaml".to_owned();
    let mut entries = Catalogue::from_spec(&spec, Origin::Index { location }).entries;
    let judged = apply_policy(object, entries.remove(0));
    judged.signature?.key.clone()
}

#[test]
fn what_a_version_brings_along_does_not_replace_the_policy_of_the_object() {
    let object = merged(Some("own"));
    for kept in ["1.0.0", "2.0.0", "3.0.0"] {
        assert_eq!(key_today(&object, kept).as_deref(), Some("own"), "{kept}");
    }
    let requires = |required| {
        let mut object = merged(Some("own"));
        let policy = object.spec.signature.as_mut().unwrap();
        policy.required = required;
        find_requiring(&[object], "web", &[]).is_some()
    };
    assert!(requires(true) && !requires(false));
}

/// A catalogue that was merged from one whose versions have different policies.
#[test]
fn what_is_not_listed_any_more_gets_around_no_policy() {
    let object = merged(None);
    for (kept, expected) in [
        ("1.0.0", None),
        ("2.0.0", Some("theirs")),
        ("3.0.0", Some("theirs")),
    ] {
        assert_eq!(key_today(&object, kept).as_deref(), expected, "{kept}");
    }
}
