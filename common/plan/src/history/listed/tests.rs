use serde_json::{Value, json};

use super::*;
use crate::history::tests::entry as of_catalogue;
use common::api::catalogue::SignaturePolicy;
use common::api::installation::{
    AddonInstallation, AddonInstallationSpec, HistoryEntry, Installed,
};

const HASH: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn entry(origin: Origin, source: &Value) -> CatalogueEntry {
    CatalogueEntry {
        origin: Arc::new(origin),
        ..of_catalogue("1.0.0", source.clone())
    }
}

fn catalogue(name: &str) -> Origin {
    Origin::Catalogue {
        namespace: "kubectl-addons".to_owned(),
        name: name.to_owned(),
    }
}

fn of(location: &str) -> Origin {
    Origin::Index {
        location: location.to_owned(),
    }
}

fn reference(name: &str, index: Option<&str>) -> AddonRef {
    AddonRef {
        name: name.to_owned(),
        index: index.map(str::to_owned),
        ..AddonRef::default()
    }
}

fn revision(entry: &CatalogueEntry, hash: &str, resolved: Option<&str>) -> StoredRevision {
    let record = AddonInstallation::new("web", AddonInstallationSpec::default());
    let operation = HistoryEntry {
        verb: "rollback".into(),
        installed: Installed {
            version: "1.0.0".to_owned(),
            manifest_hash: hash.to_owned(),
            resolved: resolved.map(str::to_owned),
            ..Installed::default()
        },
        outcome: "done".into(),
    };
    StoredRevision::new(operation, &record, entry, None)
}

fn today(entry: CatalogueEntry) -> Catalogue {
    Catalogue {
        entries: vec![entry],
        ..Catalogue::default()
    }
}

fn url(host: &str) -> Value {
    json!({"url": {"manifest": format!("https://{host}/web.yaml")}})
}

#[test]
fn what_a_catalogue_lists_is_read_as_it_says_with_the_recorded_hash() {
    let branch = json!({"git": {"remote": "https://h/r", "ref": {"branch": "main"}}});
    let tag = json!({"docker": {"image": "h:5000/i:latest"}});
    for (source, resolved) in [
        (branch, Some("c0ffee")),
        (tag, Some("sha256:1")),
        (url("h"), None),
    ] {
        let listed = CatalogueEntry {
            registry: Some("mirror.example".to_owned()),
            ..entry(catalogue("custom"), &source)
        };
        let kept = revision(&entry(catalogue("gone"), &source), HASH, resolved);
        let found = kept.find_listed_entry(&reference("web", None), &today(listed.clone()));
        let mut expected = listed.clone();
        expected.version.manifest_hash = Some(HASH.to_owned());
        assert_eq!(found.as_ref(), Some(&expected), "{source}");
        // What a rollback keeps of it is it as well.
        let pinned = kept.entry_as_installed().unwrap();
        for again in [expected.clone(), pinned] {
            let again = revision(&again, HASH, resolved);
            let found = again.find_listed_entry(&reference("web", None), &today(listed.clone()));
            assert_eq!(found.as_ref(), Some(&expected), "{source}");
        }
    }
}

#[test]
fn what_differs_is_not_listed() {
    let listed = entry(catalogue("custom"), &url("h"));
    let mut hashed = listed.clone();
    hashed.version.manifest_hash = Some("b".repeat(64));
    let mut other = listed.clone();
    other.version.version = "1.0.1".to_owned();
    let evil = entry(catalogue("custom"), &url("evil"));
    let indexed = entry(of("https://h/index.yaml"), &url("h"));
    for (kept, today_, reference, is_listed) in [
        (&listed, &listed, reference("web", None), true),
        (&evil, &listed, reference("web", None), false),
        (&hashed, &hashed, reference("web", None), true),
        (&listed, &hashed, reference("web", None), false),
        (&other, &listed, reference("web", None), false),
        (&listed, &indexed, reference("web", None), false),
        (&listed, &listed, reference("dns", None), false),
        (&listed, &listed, reference("web", Some("https://i")), false),
    ] {
        let found =
            revision(kept, HASH, None).find_listed_entry(&reference, &today(today_.clone()));
        assert_eq!(found.is_some(), is_listed, "{kept:?} {today_:?}");
    }
}

/// The recorded hash may be anyone's: it does not stand for a signature.
#[test]
fn a_recorded_hash_vouches_for_nothing() {
    let policy = SignaturePolicy {
        required: true,
        ..SignaturePolicy::default()
    };
    let listed = CatalogueEntry {
        signature: Some(Arc::new(policy)),
        ..entry(catalogue("custom"), &url("h"))
    };
    let kept = revision(&entry(catalogue("custom"), &url("h")), HASH, None);
    let found = kept.find_listed_entry(&reference("web", None), &today(listed.clone()));
    assert_eq!(found, Some(listed));
}

#[test]
fn what_is_not_listed_is_no_catalogues() {
    let place = || "revision 3".to_owned();
    let forged = CatalogueEntry {
        support: Some(common::api::catalogue::Support::Core),
        ..entry(catalogue("custom"), &url("evil"))
    };
    let kept = revision(&forged, HASH, None);
    let found = kept
        .to_unlisted_entry(&reference("web", None), place())
        .unwrap();
    assert_eq!(*found.origin, of("revision 3"));
    assert_eq!((found.support, found.place.as_str()), (None, ""));
    assert_eq!(
        kept.claimed_catalogues(&reference("web", None)),
        Some(vec!["custom"])
    );

    // An index of the installation stays its index, and only that.
    let index = "https://h/index.yaml";
    for (origin, named, expected) in [
        (of(index), Some(index), of(index)),
        (of("https://other"), Some(index), of(index)),
        (of(index), None, of("revision 3")),
        (catalogue("custom"), Some(index), of("revision 3")),
        (of(INDEX_BUILTIN), Some(INDEX_BUILTIN), of("revision 3")),
    ] {
        let kept = revision(&entry(origin.clone(), &url("h")), HASH, None);
        let reference = reference("web", named);
        let found = kept.to_unlisted_entry(&reference, place()).unwrap();
        assert_eq!(*found.origin, expected, "{origin} {named:?}");
        let is_of_index = kept.claimed_catalogues(&reference).is_none();
        assert_eq!(is_of_index, expected == of(index), "{origin} {named:?}");
    }
}
