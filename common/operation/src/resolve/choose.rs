//! Chooses the entry that fits, or explains why there is none.

use common::catalogue::select::{
    self, ClusterVersions, EntryRequest, RejectionReason, Selection, SelectionRules,
};
use common::catalogue::{
    Catalogue, CatalogueEntry, LostEntry, Origin, describe_lost_entry, version_label,
};
use common::nearest::{did_you_mean, nearest};
use common::text::list_first;

use addons_versions::tolerant;

/// How many versions an error lists.
const MAX_LISTED: usize = 5;

/// Why there is no entry to install.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// No catalogue has the name.
    #[error("no add-on named {name}{}", meant(near.as_deref(), *nothing))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// A similar name that may have been meant: `prometheus (catalogue custom)`.
        near: Option<String>,
        /// Whether there is nothing at all to choose from.
        nothing: bool,
    },
    /// A catalogue that lists the name cannot be read.
    #[error("catalogue {catalogue}: the versions of {name} cannot be read: {why}")]
    Unread {
        /// Name of the add-on.
        name: String,
        /// The catalogue.
        catalogue: String,
        /// Why.
        why: String,
    },
    /// The catalogue that was asked for lost the entry to another one (semantics 2.4).
    #[error("{}", describe_lost_entry(holder, name, version, catalogue))]
    Held {
        /// Name of the add-on.
        name: String,
        /// Its version, or its id where it has none.
        version: String,
        /// The catalogue that was asked for.
        catalogue: String,
        /// The catalogue that holds the entry.
        holder: String,
    },
    /// The add-on has only other versions.
    #[error("{name} has no version {version}{}", others(versions))]
    NoSuchVersion {
        /// Name of the add-on.
        name: String,
        /// The version that was asked for.
        version: String,
        /// The existing versions, newest first.
        versions: Vec<String>,
    },
    /// The name has entries, and none of them fits (exit code 5).
    #[error("no version of {name} fits this cluster{details}")]
    DoesNotFit {
        /// Name of the add-on.
        name: String,
        /// Which version would fit which cluster.
        details: String,
    },
}

/// Returns the entry that fits.
///
/// # Errors
/// [`ChooseError`].
pub fn choose(
    catalogue: &Catalogue,
    request: &EntryRequest<'_>,
    facts: &ClusterVersions,
    rules: SelectionRules,
) -> Result<(CatalogueEntry, Selection), ChooseError> {
    check_read(catalogue, request.addon, request.catalogue)?;
    check_holder(catalogue, request, facts, rules)?;
    let selection = select::select(catalogue, request, facts, rules);
    if let Some(entry) = selection.chosen.clone() {
        return Ok((entry, selection));
    }
    let name = request.addon.to_owned();
    if selection.rejections.is_empty() {
        let near = nearest(request.addon, catalogue.names());
        return Err(ChooseError::Unknown {
            name,
            near: near.map(|near| format!("{near}{}", describe_holder(catalogue, near))),
            nothing: catalogue.entries.is_empty() && catalogue.lost.is_empty(),
        });
    }
    if let Some(version) = request.version {
        let of_catalogue = |entry: &&CatalogueEntry| {
            request.catalogue.is_none_or(
                |wanted| matches!(&*entry.origin, Origin::Catalogue { name, .. } if name == wanted),
            )
        };
        let entries = selection.rejections.iter().map(|one| &one.entry);
        let entries = entries.filter(of_catalogue);
        let mut versions: Vec<String> = Vec::new();
        for entry in entries {
            let found = &entry.version.version;
            if !found.is_empty() && !versions.contains(found) {
                versions.push(found.clone());
            }
        }
        if !versions
            .iter()
            .any(|found| tolerant::is_same(version, found))
        {
            return Err(ChooseError::NoSuchVersion {
                name,
                version: version.to_owned(),
                versions,
            });
        }
    }
    Err(ChooseError::DoesNotFit {
        details: describe_rejections(&selection, request),
        name,
    })
}

/// Refuses to choose without the versions of a catalogue that lists the add-on and cannot be read: it may have the right one.
pub(crate) fn check_read(
    known: &Catalogue,
    addon: &str,
    catalogue: Option<&str>,
) -> Result<(), ChooseError> {
    match known.find_unread(addon, catalogue) {
        None => Ok(()),
        Some(unread) => Err(ChooseError::Unread {
            name: addon.to_owned(),
            catalogue: unread.catalogue.clone(),
            why: unread.why.clone(),
        }),
    }
}

/// Refuses to choose from a catalogue that lost the right entry to another one: an older entry would be chosen, or none (semantics 2.4).
fn check_holder(
    known: &Catalogue,
    request: &EntryRequest<'_>,
    facts: &ClusterVersions,
    rules: SelectionRules,
) -> Result<(), ChooseError> {
    let named = request.catalogue.or(known.name.as_deref());
    let Some(catalogue) = named.filter(|_| !known.lost.is_empty()) else {
        return Ok(());
    };
    let lost = known.lost.iter().map(|lost| &lost.entry);
    // In a tie, the last one is chosen: the entry that the catalogue holds.
    let choice = select::choose(lost.chain(&known.entries), request, facts, rules);
    let is_chosen = |lost: &&LostEntry| {
        choice
            .chosen
            .is_some_and(|it| std::ptr::eq(it, &lost.entry))
    };
    match known.lost.iter().find(is_chosen) {
        None => Ok(()),
        Some(LostEntry { entry, holder }) => Err(ChooseError::Held {
            name: entry.addon.clone(),
            version: version_label(&entry.version.version, &entry.version.id),
            catalogue: catalogue.to_owned(),
            holder: holder.clone(),
        }),
    }
}

/// `; it has 1.1.0, 1.0.0 and 3 more`
fn others(versions: &[String]) -> String {
    match versions {
        [] => String::new(),
        versions => format!("; it has {}", list_first(versions, MAX_LISTED)),
    }
}

/// `; did you mean NAME?`
pub(crate) fn meant(near: Option<&str>, nothing: bool) -> String {
    match near {
        None if nothing => "; there is no catalogue yet".to_owned(),
        near => did_you_mean(near),
    }
}

/// Returns ` (catalogue NAME)` if a catalogue in the cluster holds the add-on, in the words of the webhook.
fn describe_holder(catalogue: &Catalogue, addon: &str) -> String {
    let mut entries = catalogue.entries.iter();
    match entries.find(|entry| entry.addon == addon) {
        Some(entry) if matches!(*entry.origin, Origin::Catalogue { .. }) => {
            format!(" ({})", entry.origin)
        }
        _ => String::new(),
    }
}

/// Returns one line for each entry that could have been meant, ten at most.
fn describe_rejections(selection: &Selection, request: &EntryRequest<'_>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for rejection in &selection.rejections {
        if rejection.reason == RejectionReason::NotAskedFor
            && request.version.is_some()
            && lines.len() >= 10
        {
            continue;
        }
        let version = &rejection.entry.version;
        let id = if version.id.is_empty() {
            String::new()
        } else {
            format!(" id {}", version.id)
        };
        lines.push(format!("\n  {}{id}: {}", version.version, rejection.reason));
    }
    let more = lines.len().saturating_sub(10);
    lines.truncate(10);
    if more > 0 {
        lines.push(format!("\n  and {more} more"));
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use common::api::catalogue::{Addon, AddonCatalogue, AddonCatalogueSpec, AddonVersion};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_that_does_not_exist_is_answered_with_those_that_do() {
        let said = |versions: &[&str]| {
            let version = |version: &&str| AddonVersion {
                version: (*version).to_owned(),
                ..AddonVersion::default()
            };
            let spec = AddonCatalogueSpec {
                addons: vec![Addon {
                    name: "hello".to_owned(),
                    versions: versions.iter().map(version).collect(),
                    ..Addon::default()
                }],
                ..AddonCatalogueSpec::default()
            };
            let location = "index.yaml".to_owned();
            let catalogue = Catalogue::from_spec(&spec, Origin::Index { location });
            let request = EntryRequest {
                addon: "hello",
                version: Some("1.2.0"),
                ..EntryRequest::default()
            };
            let facts = ClusterVersions::default();
            let chosen = choose(&catalogue, &request, &facts, SelectionRules::Auto);
            chosen.map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(said(&["1.0.0", "v1.2"]), Ok(()));
        for (versions, expected) in [
            (
                &["1.0.0", "1.1.0", "1.0.0"][..],
                "hello has no version 1.2.0; it has 1.1.0, 1.0.0",
            ),
            (
                &["1", "2", "3", "4", "5", "6", "7"][..],
                "hello has no version 1.2.0; it has 7, 6, 5, 4, 3 and 2 more",
            ),
            (&[""][..], "hello has no version 1.2.0"),
        ] {
            assert_eq!(said(versions), Err(expected.to_owned()));
        }
    }

    /// Semantics 2: neither an older version nor none is chosen in its place.
    #[test]
    fn a_catalogue_that_lost_the_right_entry_is_not_chosen_from() {
        let made = |name: &str, versions: &[&str]| {
            let source = json!({"inline": {"manifest": ""}});
            let versions = versions.iter();
            let versions = versions.map(|it| json!({"version": it, "source": source}));
            let addons = json!([{"name": "web", "versions": versions.collect::<Vec<_>>()}]);
            AddonCatalogue::new(
                name,
                serde_json::from_value(json!({"addons": addons})).unwrap(),
            )
        };
        // Without a time of creation the first by name counts as the older one.
        let all = [made("a", &["1.0.0", "2.0.0"]), made("b", &["v2", "0.9.0"])];
        let said = |version, catalogue| {
            let known = match catalogue {
                Some(name) => Catalogue::from_named(&all, name),
                None => Catalogue::from_objects(&all),
            };
            let request = EntryRequest {
                addon: "web",
                version,
                catalogue,
                ..EntryRequest::default()
            };
            let facts = ClusterVersions::default();
            match choose(&known, &request, &facts, SelectionRules::Auto) {
                Ok((entry, _)) => format!("{} {}", entry.origin, entry.version.version),
                Err(error) => error.to_string(),
            }
        };
        let held = "catalogue a holds web v2, which catalogue b lists as well";
        for (version, catalogue, expected) in [
            (None, None, "catalogue a 2.0.0"),
            (None, Some("a"), "catalogue a 2.0.0"),
            (None, Some("b"), held),
            (Some("2.0.0"), Some("b"), held),
            (Some("0.9.0"), Some("b"), "catalogue b 0.9.0"),
            (
                Some("3.0.0"),
                Some("b"),
                "web has no version 3.0.0; it has 0.9.0",
            ),
        ] {
            assert_eq!(
                said(version, catalogue),
                expected,
                "{version:?} {catalogue:?}"
            );
        }
        let none = [made("a", &["1.0.0"]), made("b", &["1.0.0"])];
        let known = Catalogue::from_named(&none, "b");
        let request = EntryRequest {
            addon: "dns",
            ..EntryRequest::default()
        };
        let error = choose(
            &known,
            &request,
            &ClusterVersions::default(),
            SelectionRules::Auto,
        )
        .unwrap_err();
        assert_eq!(error.to_string(), "no add-on named dns");
    }
}
