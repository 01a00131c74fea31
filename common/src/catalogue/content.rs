//! Rules for the content of core add-ons: it has to be fixed, and changes of it reach the clusters in waves (semantics 8, 14.8).

use serde_json::json;

use super::{Catalogue, CatalogueEntry, Origin};
use crate::api::catalogue::{CatalogueClass, SourceKind};
use crate::api::installation::AddonInstallationSpec;
use crate::manifest::digest::sha256_canonical;

/// Why an installation cannot be installed from an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// The content of the source can change: anyone who may write to the source decides what is installed.
    #[error(
        "{entry}: its source may have other content later, and a core add-on is installed from fixed content: give the entry a \
         manifestHash"
    )]
    Moves {
        /// The entry.
        entry: String,
    },
    /// The entry has another digest than the one that the installation names.
    #[error(
        "{entry}: its digest is {found}, and spec.addonRef.digest is {named}: an upgrade of a core add-on accepts the entry as it is \
         now, and another installation is changed by hand"
    )]
    Changed {
        /// The entry.
        entry: String,
        /// The digest of the entry.
        found: String,
        /// The digest that the installation names.
        named: String,
    },
    /// Users outside the core group can change the catalogue of the entry.
    #[error(
        "{entry}: the catalogue is of class Custom, which not only the core group changes: list it in one of class Core, or name the \
         entry with digest: {digest}"
    )]
    Unguarded {
        /// The entry.
        entry: String,
        /// The digest of the entry.
        digest: String,
    },
}

impl ContentError {
    /// Returns the error for an entry of a catalogue that is not of class Core.
    #[must_use]
    pub fn unguarded(entry: &CatalogueEntry) -> Self {
        Self::Unguarded {
            entry: describe_entry(entry),
            digest: entry.digest(),
        }
    }
}

impl CatalogueEntry {
    /// Returns the sha256 of everything in a catalogue that decides what this entry installs. The commit of a source does not count
    /// if a hash verifies the content: a catalogue in a repository keeps its digests when another file in the repository changes.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut version = self.version.clone();
        if self.verifiable_hash().is_some()
            && let Some(git) = &mut version.source.git
        {
            git.r#ref = None;
        }
        sha256_canonical(&json!([
            version,
            self.base_url,
            self.registry,
            self.signature.as_deref()
        ]))
    }

    /// Whether the source always has the same content, because a hash, a commit or a digest pins it.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.verifiable_hash().is_some()
            || match self.version.source.kind() {
                Ok(SourceKind::Inline(_)) => true,
                Ok(SourceKind::Git(git)) => {
                    git.r#ref.as_ref().is_some_and(|it| it.commit.is_some())
                }
                Ok(SourceKind::Docker(docker)) => docker.image.contains("@sha256:"),
                Ok(SourceKind::Helm(helm)) => helm.digest.is_some(),
                Ok(SourceKind::Url(_) | SourceKind::Catalogue(_)) | Err(_) => false,
            }
    }

    fn is_from_catalogue(&self) -> bool {
        matches!(*self.origin, Origin::Catalogue { .. })
    }
}

/// Returns the entries that a core set may choose from: those in catalogues of class Core or, if the set names a digest, the entry
/// with it (semantics 14.5).
#[must_use]
pub fn select_guarded(all: &Catalogue, addon: &str, digest: Option<&str>) -> Catalogue {
    let is_guarded = |entry: &&CatalogueEntry| {
        entry.addon == addon
            && match digest {
                Some(digest) => entry.digest() == digest,
                None => entry.class == CatalogueClass::Core,
            }
    };
    Catalogue {
        entries: all.entries.iter().filter(is_guarded).cloned().collect(),
        unread: all.unread.clone(),
        lost: all.lost.clone(),
        name: all.name.clone(),
    }
}

/// Returns the digest to record for a core add-on when a member of the core group, or the core set, chooses an entry. Returns `None`
/// if the entry is not from a catalogue.
///
/// # Errors
/// [`ContentError::Moves`].
pub fn accepted_digest(entry: &CatalogueEntry) -> Result<Option<String>, ContentError> {
    if !entry.is_from_catalogue() {
        return Ok(None);
    }
    if !entry.is_fixed() {
        return Err(ContentError::Moves {
            entry: describe_entry(entry),
        });
    }
    Ok(Some(entry.digest()))
}

/// Checks that an installation may be installed from an entry: the entry must have the digest that the installation names. For a core
/// add-on that names none, it must be fixed content of class Core (semantics 8).
///
/// # Errors
/// [`ContentError`].
pub fn check(spec: &AddonInstallationSpec, entry: &CatalogueEntry) -> Result<(), ContentError> {
    if !entry.is_from_catalogue() {
        return Ok(());
    }
    match &spec.addon_ref.digest {
        Some(named) => {
            let found = entry.digest();
            if found == *named {
                return Ok(());
            }
            Err(ContentError::Changed {
                entry: describe_entry(entry),
                found,
                named: named.clone(),
            })
        }
        None if !spec.core_addon => Ok(()),
        None if entry.class == CatalogueClass::Core => accepted_digest(entry).map(drop),
        None => Err(ContentError::unguarded(entry)),
    }
}

/// `dns 1.0.0 of catalogue core`
fn describe_entry(entry: &CatalogueEntry) -> String {
    let version = super::version_label(&entry.version.version, &entry.version.id);
    format!("{} {version} of {}", entry.addon, entry.origin)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::catalogue::AddonCatalogue;

    fn catalogue(name: &str, class: &str, change: &Value) -> AddonCatalogue {
        let mut version = json!({"version": "1.0.0", "source": {"inline": {"manifest": "a: b"}}});
        json_patch::merge(&mut version, change);
        let addons = json!([{"name": "dns", "versions": [version]}]);
        let spec = json!({"class": class, "addons": addons});
        AddonCatalogue::new(name, serde_json::from_value(spec).unwrap())
    }

    fn entry(class: &str, change: &Value) -> CatalogueEntry {
        let all = Catalogue::from_objects(&[catalogue("team", class, change)]);
        all.entries[0].clone()
    }

    fn git(reference: &Value, hash: Option<&str>) -> Value {
        let git = json!({"remote": "https://git.example.test/a", "ref": reference});
        json!({"source": {"inline": null, "git": git}, "manifestHash": hash})
    }

    #[test]
    fn content_is_fixed_by_a_hash_a_commit_or_a_digest() {
        let hash = "a".repeat(64);
        let image = |image: &str| json!({"source": {"inline": null, "docker": {"image": image}}});
        let url = json!({"inline": null, "url": {"manifest": "https://example.test/m.yaml"}});
        for (change, is_fixed) in [
            (json!({}), true),
            (git(&json!({"branch": "main"}), None), false),
            (git(&json!({"branch": "main"}), Some(&hash)), true),
            (git(&json!({"commit": "b"}), None), true),
            (image("registry.example.test/m:1.0.0"), false),
            (image("registry.example.test/m@sha256:abc"), true),
            (json!({"source": url}), false),
            (json!({"source": url, "manifestHash": hash}), true),
        ] {
            let entry = entry("Core", &change);
            assert_eq!(entry.is_fixed(), is_fixed, "{change}");
            assert_eq!(accepted_digest(&entry).is_ok(), is_fixed, "{change}");
        }
    }

    #[test]
    fn a_digest_is_of_what_decides_what_is_installed() {
        let hash = "a".repeat(64);
        let at = |commit: &str, hash| entry("Core", &git(&json!({"commit": commit}), hash));
        assert_ne!(at("a", None).digest(), at("b", None).digest());
        assert_eq!(at("a", Some(&hash)).digest(), at("b", Some(&hash)).digest());
        let before = entry("Core", &json!({}));
        let mut moved = before.clone();
        moved.place = "spec.addons[7].versions[7]".to_owned();
        assert_eq!(moved.digest(), before.digest());
        let changes: [fn(&mut CatalogueEntry); 4] = [
            |entry: &mut CatalogueEntry| entry.registry = Some("other.example.test".to_owned()),
            |entry: &mut CatalogueEntry| {
                entry.base_url = Some("https://other.example.test".to_owned())
            },
            |entry: &mut CatalogueEntry| entry.signature = Some(Default::default()),
            |entry: &mut CatalogueEntry| entry.version.values = Some(json!({"a": 1})),
        ];
        for change in changes {
            let mut changed = before.clone();
            change(&mut changed);
            assert_ne!(changed.digest(), before.digest(), "{changed:?}");
        }
    }

    #[test]
    fn a_core_addon_is_installed_from_what_it_names() {
        let (core, custom) = (entry("Core", &json!({})), entry("Custom", &json!({})));
        let mut index = custom.clone();
        index.origin = std::sync::Arc::new(Origin::Index {
            location: "https://example.test/i.yaml".to_owned(),
        });
        let digest = core.digest();
        for (is_core, named, entry, expected) in [
            (false, None, &custom, true),
            (true, None, &custom, false),
            (true, None, &core, true),
            (true, None, &index, true),
            (true, Some(&digest), &custom, true),
            (true, Some(&"other".to_owned()), &core, false),
            (false, Some(&"other".to_owned()), &custom, false),
        ] {
            let mut spec = AddonInstallationSpec {
                core_addon: is_core,
                ..AddonInstallationSpec::default()
            };
            spec.addon_ref.digest = named.cloned();
            let checked = check(&spec, entry);
            assert_eq!(checked.is_ok(), expected, "{is_core} {named:?} {checked:?}");
        }
    }

    #[test]
    fn a_core_set_chooses_from_class_core_or_by_digest() {
        let other = json!({"version": "2.0.0"});
        let all = Catalogue::from_objects(&[catalogue("custom", "Custom", &other)]);
        assert!(select_guarded(&all, "dns", None).entries.is_empty());
        let digest = all.entries[0].digest();
        assert_eq!(select_guarded(&all, "dns", Some(&digest)).entries.len(), 1);
        assert!(
            select_guarded(&all, "dns", Some("other"))
                .entries
                .is_empty()
        );
        assert!(
            select_guarded(&all, "web", Some(&digest))
                .entries
                .is_empty()
        );
        let all = Catalogue::from_objects(&[catalogue("core", "Core", &other)]);
        assert_eq!(select_guarded(&all, "dns", None).entries.len(), 1);
    }
}
