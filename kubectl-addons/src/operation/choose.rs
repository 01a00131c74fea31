//! From what the user typed to the entry that fits, or to a sentence that says why none does.

use common::admission::nearest::nearest;
use common::catalogue::select::{ClusterFacts, Reason, Request, Rules, Selection, select};
use common::catalogue::{Catalogue, Entry, Origin};

/// `NAME` or `NAME@VERSION` as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Name of an add-on or installation.
    pub name: String,
    /// Version, read tolerantly.
    pub version: Option<String>,
}

impl Wish {
    /// Splits at the first `@`.
    pub fn parse(typed: &str) -> Self {
        match typed.split_once('@') {
            Some((name, version)) => Self {
                name: name.to_owned(),
                version: Some(version.to_owned()),
            },
            None => Self {
                name: typed.to_owned(),
                version: None,
            },
        }
    }
}

/// Why there is no entry to install.
#[derive(Debug, thiserror::Error)]
pub enum ChooseError {
    /// No catalogue knows the name.
    #[error("no add-on named {name}{hint}")]
    Unknown {
        /// As typed.
        name: String,
        /// `; did you mean …`, or where to look.
        hint: String,
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
    let selection = select(catalogue, request, facts, rules);
    if let Some(entry) = selection.chosen.clone() {
        return Ok((entry, selection));
    }
    let name = request.addon.to_owned();
    if selection.rejections.is_empty() {
        let hint = match nearest(request.addon, catalogue.names()) {
            Some(near) => format!("; did you mean {near}{}?", held_by(catalogue, near)),
            None if catalogue.entries.is_empty() => {
                "; there is no catalogue yet: kubectl addons catalogue add FILE".to_owned()
            }
            None => "; see what there is: kubectl addons search".to_owned(),
        };
        return Err(ChooseError::Unknown { name, hint });
    }
    Err(ChooseError::DoesNotFit {
        details: details(&selection, request),
        name,
    })
}

/// ` (catalogue NAME)` where a catalogue in the cluster holds the add-on, as the webhook says it.
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
        lines.push(format!(
            "\n  and {more} more: kubectl addons show {}",
            request.addon
        ));
    }
    lines.concat()
}
