use common::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion};
use common::api::installation::AddonInstallationStatus;
use common::catalogue::Catalogue;
use common::catalogue::due::{DueReason, DueVerdict};

use super::*;
use crate::render::inputs::Inputs;

/// The only entry of an index: add-on `web` in version 1.1.0, of this id.
fn entry(id: &str) -> CatalogueEntry {
    let version = AddonVersion {
        version: "1.1.0".to_owned(),
        id: id.to_owned(),
        ..AddonVersion::default()
    };
    let spec = AddonCatalogueSpec {
        addons: vec![Addon {
            name: "web".to_owned(),
            versions: vec![version],
            ..Addon::default()
        }],
        ..AddonCatalogueSpec::default()
    };
    let location = "index.yaml".to_owned();
    Catalogue::from_spec(&spec, Origin::Index { location })
        .entries
        .remove(0)
}

fn name() -> InstallationName {
    InstallationName {
        namespace: "kubectl-addons".to_owned(),
        name: "web".to_owned(),
    }
}

fn record(version: Option<&str>, id: Option<&str>) -> AddonInstallation {
    let spec = AddonInstallationSpec {
        addon_ref: AddonRef {
            name: "web".to_owned(),
            version: version.map(str::to_owned),
            id: id.map(str::to_owned),
            ..AddonRef::default()
        },
        ..AddonInstallationSpec::default()
    };
    AddonInstallation::new("web", spec)
}

/// Semantics 12: `install NAME` names no version, `install NAME@V` does; an upgrade moves what a record names.
#[test]
fn a_record_names_the_version_that_was_asked_for() {
    for (before, is_asked_for, version, id) in [
        (None, false, None, None),
        (None, true, Some("1.1.0"), Some("b")),
        (Some((None, None)), false, None, None),
        (Some((Some("1.0.0"), None)), false, Some("1.1.0"), None),
        (Some((Some("1.0.0"), None)), true, Some("1.1.0"), None),
        (
            Some((Some("1.0.0"), Some("a"))),
            true,
            Some("1.1.0"),
            Some("b"),
        ),
        (Some((None, Some("a"))), false, None, Some("b")),
        (Some((None, None)), true, Some("1.1.0"), Some("b")),
    ] {
        let existing = before.map(|(version, id)| record(version, id));
        let mut resolved = Resolved::new(name(), existing, entry("b"), SelectionRules::Documented);
        if is_asked_for {
            resolved.pin();
        }
        let reference = &resolved.wanted.spec.addon_ref;
        let named = (reference.version.as_deref(), reference.id.as_deref());
        assert_eq!(named, (version, id), "{before:?} {is_asked_for}");
    }
}

/// Semantics 10: who keeps a record in a file finds it as it was written there, as long as it means the same.
#[test]
fn a_reference_that_means_the_entry_stays_as_it_is_spelled() {
    let index = |version: Option<&str>, id: Option<&str>| AddonRef {
        index: Some("index.yaml".to_owned()),
        ..record(version, id).spec.addon_ref
    };
    let mut of_catalogue = entry("b");
    of_catalogue.origin = Arc::new(Origin::Catalogue {
        namespace: "kubectl-addons".to_owned(),
        name: "team".to_owned(),
    });
    let bare = |version: Option<&str>| record(version, None).spec.addon_ref;
    for (before, entry, is_asked_for, stays) in [
        (index(None, None), entry("b"), false, true),
        (index(Some("v1.1"), None), entry("b"), false, true),
        (index(Some("v1.1"), None), entry("b"), true, true),
        (index(Some("1.1.0"), Some("b")), entry("b"), true, true),
        (index(Some("1.1.0"), Some("a")), entry("b"), false, false),
        (index(Some("1.0.0"), None), entry("b"), false, false),
        (index(None, None), entry("b"), true, false),
        (bare(None), of_catalogue.clone(), false, true),
        (bare(Some("1.1")), of_catalogue.clone(), true, true),
        (bare(None), entry("b"), false, false),
    ] {
        let mut existing = record(None, None);
        existing.spec.addon_ref = before.clone();
        let mut resolved = Resolved::new(name(), Some(existing), entry, SelectionRules::Documented);
        if is_asked_for {
            resolved.pin();
        }
        let after = &resolved.wanted.spec.addon_ref;
        assert_eq!(*after == before, stays, "{before:?} {after:?}");
    }
    let existing = record(Some("1.0.0"), None);
    let moved = Resolved::new(
        name(),
        Some(existing),
        of_catalogue,
        SelectionRules::Documented,
    );
    let moved = moved.wanted.spec.addon_ref;
    let named = (moved.version.as_deref(), moved.catalogue);
    assert_eq!(named, (Some("1.1.0"), None), "the origin is left open");
}

/// Semantics 12: a spec that was changed with kubectl or in Git is due by its generation. A record that is kept as it is written is not
/// due for the defaults that are filled in for the rendering; one without a generation that was installed is so for a loop alone.
#[test]
fn a_record_is_due_when_its_spec_was_changed() {
    let installed = Installed {
        version: "1.1.0".to_owned(),
        ..Installed::default()
    };
    for (keeps_spec, observed, due) in [
        (true, Some(4), false),
        (true, Some(3), true),
        (true, None, true),
        (false, Some(4), false),
        (false, Some(3), true),
        (false, None, false),
    ] {
        let mut existing = record(None, None);
        existing.spec.addon_ref.index = Some("index.yaml".to_owned());
        existing.metadata.generation = Some(4);
        existing.status = Some(AddonInstallationStatus {
            observed_generation: observed,
            installed: Some(installed.clone()),
            ..AddonInstallationStatus::default()
        });
        let mut resolved = Resolved::new(
            name(),
            Some(existing),
            entry(""),
            SelectionRules::Documented,
        );
        if keeps_spec {
            resolved.wanted.spec.target_namespace = Some("web".to_owned());
        }
        resolved.keeps_spec = keeps_spec;
        let is_due = resolved.check_due(&Inputs::default(), None) != DueVerdict::No;
        assert_eq!(is_due, due, "{keeps_spec} {observed:?}");
        assert_eq!(resolved.record().spec.target_namespace, None);
    }
}

/// Semantics 12: another private registry is due, that of the installation before that of its catalogue.
#[test]
fn a_record_is_due_when_its_registry_was_changed() {
    for (own, of_catalogue, recorded, is_due) in [
        (None, None, None, false),
        (None, Some("a"), Some("a"), false),
        (None, Some("b"), Some("a"), true),
        (None, None, Some("a"), true),
        (None, Some("a"), None, true),
        (Some("c"), Some("b"), Some("c"), false),
        (Some("c"), Some("c"), Some("b"), true),
    ] {
        let mut existing = record(None, None);
        existing.spec.addon_ref.index = Some("index.yaml".to_owned());
        existing.spec.registry = own.map(str::to_owned);
        existing.status = Some(AddonInstallationStatus {
            installed: Some(Installed {
                version: "1.1.0".to_owned(),
                registry: recorded.map(str::to_owned),
                ..Installed::default()
            }),
            ..AddonInstallationStatus::default()
        });
        let mut entry = entry("");
        entry.registry = of_catalogue.map(str::to_owned);
        let resolved = Resolved::new(name(), Some(existing), entry, SelectionRules::Documented);
        let due = resolved.check_due(&Inputs::default(), None);
        let reason = DueReason::RegistryChanged;
        let expected = if is_due {
            DueVerdict::Yes { reason }
        } else {
            DueVerdict::No
        };
        assert_eq!(due, expected, "{own:?} {of_catalogue:?} {recorded:?}");
        let target = resolved.target(&Inputs::default()).registry;
        assert_eq!(target.as_deref(), own.or(of_catalogue));
    }
}
