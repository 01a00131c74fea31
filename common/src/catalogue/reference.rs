//! Catalogues by reference: the object holds the digest of a file and the names of its add-ons, and the file holds everything else
//! (semantics 1.5).

use std::collections::BTreeSet;

use crate::api::catalogue::{Addon, AddonCatalogueSpec, CatalogueFrom};

/// The file and the object list different add-ons: the object was edited by hand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("spec.addons: {}", match is_in_file {
    true => format!("{addon} is in the file and not among the names"),
    false => format!("{addon} is among the names and not in the file"),
})]
pub struct NamesMismatch {
    /// The first add-on that only one of them lists.
    pub addon: String,
    /// Whether the file lists it.
    pub is_in_file: bool,
}

/// Returns the spec of a catalogue by reference to `content`.
#[must_use]
pub fn to_reference(
    content: &AddonCatalogueSpec,
    digest: &str,
    revision: Option<String>,
) -> AddonCatalogueSpec {
    let named = list_names(content).into_iter().map(|name| Addon {
        name: name.to_owned(),
        ..Addon::default()
    });
    AddonCatalogueSpec {
        from: Some(CatalogueFrom {
            digest: Some(format!("sha256:{digest}")),
            revision,
            ..content.from.clone().unwrap_or_default()
        }),
        addons: named.collect(),
        class: content.class,
        base_url: content.base_url.clone(),
        registry: content.registry.clone(),
        signature: content.signature.clone(),
        unreadable: None,
    }
}

/// Checks that the content has the same names as the object, because only the names in the object were validated.
///
/// # Errors
/// [`NamesMismatch`].
pub fn check(
    object: &AddonCatalogueSpec,
    content: &AddonCatalogueSpec,
) -> Result<(), NamesMismatch> {
    let (listed, found) = (list_names(object), list_names(content));
    match listed.symmetric_difference(&found).next() {
        None => Ok(()),
        Some(&addon) => Err(NamesMismatch {
            addon: addon.to_owned(),
            is_in_file: found.contains(addon),
        }),
    }
}

fn list_names(spec: &AddonCatalogueSpec) -> BTreeSet<&str> {
    spec.addons
        .iter()
        .map(|addon| addon.name.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(names: &[&str]) -> AddonCatalogueSpec {
        let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": ""}}});
        let addons: Vec<_> = names
            .iter()
            .map(|name| json!({"name": name, "description": "one", "versions": [version]}))
            .collect();
        let from = json!({"git": {"remote": "https://h/r", "ref": {"branch": "main"}}});
        let spec = json!({"class": "Core", "registry": "mirror", "from": from, "addons": addons});
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn a_reference_holds_names_the_digest_and_the_revision() {
        let content = content(&["web", "api"]);
        let object = to_reference(&content, &"a".repeat(64), Some("c0ffee".to_owned()));
        let expected = json!({
            "class": "Core",
            "registry": "mirror",
            "from": {
                "git": {"remote": "https://h/r", "ref": {"branch": "main"}},
                "digest": format!("sha256:{}", "a".repeat(64)),
                "revision": "c0ffee",
            },
            "addons": [{"name": "api", "versions": []}, {"name": "web", "versions": []}],
        });
        assert_eq!(serde_json::to_value(&object).unwrap(), expected);
        let pinned = object.from.unwrap().to_pinned_source();
        let git = json!({"git": {"remote": "https://h/r", "ref": {"commit": "c0ffee"}}});
        assert_eq!(serde_json::to_value(&pinned).unwrap(), git);
    }

    #[test]
    fn the_names_of_the_object_are_those_of_the_file() {
        for (object, file, expected) in [
            (&["web"][..], &["web"][..], None),
            (
                &[],
                &["dns"],
                Some("spec.addons: dns is in the file and not among the names"),
            ),
            (
                &["web"],
                &[],
                Some("spec.addons: web is among the names and not in the file"),
            ),
        ] {
            let found = check(&content(object), &content(file)).err();
            let found = found.map(|error| error.to_string());
            assert_eq!(found.as_deref(), expected);
        }
    }
}
