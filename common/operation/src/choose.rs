//! Chooses the entry that fits, or explains why none does.

use common::catalogue::select::{ClusterFacts, Reason, Request, Rules, Selection, select};
use common::catalogue::{Catalogue, Entry, Origin};
use common::nearest::nearest;

use addons_versions::tolerant;

/// How many versions an error lists.
const LISTED: usize = 5;

/// Why there is no entry to install.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// No catalogue knows the name.
    #[error("no add-on named {name}{}", meant(near.as_deref(), *nothing))]
    Unknown {
        /// As asked.
        name: String,
        /// One that may have been meant: `prometheus (catalogue custom)`.
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
    /// The add-on has other versions only.
    #[error("{name} has no version {version}{}", others(versions))]
    NoSuchVersion {
        /// Name of the add-on.
        name: String,
        /// As asked.
        version: String,
        /// Those that there are, newest first.
        versions: Vec<String>,
    },
    /// Entries of the name exist, none fits: exit 5.
    #[error("no version of {name} fits this cluster{details}")]
    DoesNotFit {
        /// Name of the add-on.
        name: String,
        /// Which version would fit which cluster.
        details: String,
    },
}

/// The entry that fits.
///
/// # Errors
/// [`ChooseError`].
pub fn choose(
    catalogue: &Catalogue,
    request: &Request<'_>,
    facts: &ClusterFacts,
    rules: Rules,
) -> Result<(Entry, Selection), ChooseError> {
    check_read(catalogue, request.addon, request.catalogue)?;
    let selection = select(catalogue, request, facts, rules);
    if let Some(entry) = selection.chosen.clone() {
        return Ok((entry, selection));
    }
    let name = request.addon.to_owned();
    if selection.rejections.is_empty() {
        let near = nearest(request.addon, catalogue.names());
        return Err(ChooseError::Unknown {
            name,
            near: near.map(|near| format!("{near}{}", held_by(catalogue, near))),
            nothing: catalogue.entries.is_empty(),
        });
    }
    if let Some(version) = request.version {
        let of_catalogue = |entry: &&Entry| {
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
        if !versions.iter().any(|found| tolerant::same(version, found)) {
            return Err(ChooseError::NoSuchVersion {
                name,
                version: version.to_owned(),
                versions,
            });
        }
    }
    Err(ChooseError::DoesNotFit {
        details: details(&selection, request),
        name,
    })
}

/// Refuses to choose without the versions of a catalogue that lists the add-on and cannot be read: the right one may be there.
pub(crate) fn check_read(
    known: &Catalogue,
    addon: &str,
    catalogue: Option<&str>,
) -> Result<(), ChooseError> {
    match known.unread(addon, catalogue) {
        None => Ok(()),
        Some(unread) => Err(ChooseError::Unread {
            name: addon.to_owned(),
            catalogue: unread.catalogue.clone(),
            why: unread.why.clone(),
        }),
    }
}

/// `; it has 1.1.0, 1.0.0 and 3 more`
fn others(versions: &[String]) -> String {
    if versions.is_empty() {
        return String::new();
    }
    let more = match versions.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<&str> = versions.iter().take(LISTED).map(String::as_str).collect();
    format!("; it has {}{more}", shown.join(", "))
}

/// `; did you mean NAME?`
pub(crate) fn meant(near: Option<&str>, nothing: bool) -> String {
    match near {
        Some(near) => format!("; did you mean {near}?"),
        None if nothing => "; there is no catalogue yet".to_owned(),
        None => String::new(),
    }
}

/// ` (catalogue NAME)` where a catalogue in the cluster holds the add-on, as the webhook writes it.
fn held_by(catalogue: &Catalogue, addon: &str) -> String {
    let mut entries = catalogue.entries.iter();
    match entries.find(|entry| entry.addon == addon) {
        Some(entry) if matches!(*entry.origin, Origin::Catalogue { .. }) => {
            format!(" ({})", entry.origin)
        }
        _ => String::new(),
    }
}

/// One line for each entry that could have been meant, ten at most.
fn details(selection: &Selection, request: &Request<'_>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for rejection in &selection.rejections {
        if rejection.reason == Reason::NotAskedFor && request.version.is_some() && lines.len() >= 10
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
    use common::api::catalogue::{Addon, AddonCatalogueSpec, AddonVersion};

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
            let catalogue = Catalogue::of_spec(&spec, Origin::Index { location });
            let request = Request {
                addon: "hello",
                version: Some("1.2.0"),
                ..Request::default()
            };
            let facts = ClusterFacts::default();
            let chosen = choose(&catalogue, &request, &facts, Rules::Auto);
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
}
