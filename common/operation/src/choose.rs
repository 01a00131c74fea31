//! Chooses the entry that fits, or explains why none does.

use common::catalogue::select::{ClusterFacts, Reason, Request, Rules, Selection, select};
use common::catalogue::{Catalogue, Entry, Origin};
use common::nearest::nearest;

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
        let near = nearest(request.addon, catalogue.names());
        return Err(ChooseError::Unknown {
            name,
            near: near.map(|near| format!("{near}{}", held_by(catalogue, near))),
            nothing: catalogue.entries.is_empty(),
        });
    }
    Err(ChooseError::DoesNotFit {
        details: details(&selection, request),
        name,
    })
}

fn meant(near: Option<&str>, nothing: bool) -> String {
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
