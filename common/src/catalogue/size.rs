//! Checks whether a catalogue fits into an object of the cluster.

use crate::api::catalogue::AddonCatalogueSpec;

/// The maximum size of a catalogue as JSON. etcd refuses requests over 1.5 MiB, and metadata takes a part of that.
pub const MAX_BYTES: usize = 1 << 20;
/// The number of largest entries that the error names.
const NAMED: usize = 3;

/// A catalogue that does not fit into an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it takes {:.1} MiB, and an object of a cluster at most {} MiB; the largest entries are {}",
    mebibytes(*bytes), MAX_BYTES >> 20, largest.join(", ")
)]
pub struct CatalogueTooLarge {
    /// The size of the catalogue.
    pub bytes: usize,
    /// The largest entries, such as `web 1.0.0 (0.6 MiB)`, the largest first.
    pub largest: Vec<String>,
}

/// Checks that the API server can store a catalogue.
///
/// # Errors
/// [`CatalogueTooLarge`].
pub fn check(spec: &AddonCatalogueSpec) -> Result<(), CatalogueTooLarge> {
    let bytes = size(spec);
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let mut entries: Vec<(usize, String)> = Vec::new();
    for addon in &spec.addons {
        for version in &addon.versions {
            let name = format!("{} {}", addon.name, version.version);
            entries.push((size(version), name));
        }
    }
    entries.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let largest = entries.iter().take(NAMED);
    let largest =
        largest.map(|(bytes, name)| format!("{} ({:.1} MiB)", name.trim_end(), mebibytes(*bytes)));
    Err(CatalogueTooLarge {
        bytes,
        largest: largest.collect(),
    })
}

/// Returns the size of a value as JSON.
fn size(value: &impl serde::Serialize) -> usize {
    // Values that were read from JSON or YAML can always be written as JSON.
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_largest_entries_are_named() {
        let version = |version: &str, bytes| json!({"version": version, "source": {"inline": {"manifest": "a".repeat(bytes)}}});
        let spec = |bytes| {
            let versions = [
                version("1", 10),
                version("2", bytes),
                version("3", bytes / 2),
            ];
            let spec = json!({"addons": [{"name": "web", "versions": versions}]});
            serde_json::from_value::<AddonCatalogueSpec>(spec).unwrap()
        };
        assert_eq!(check(&spec(600_000)), Ok(()));
        assert_eq!(
            check(&spec(800_000)).map_err(|error| error.to_string()),
            Err(
                "it takes 1.1 MiB, and an object of a cluster at most 1 MiB; the largest entries are web 2 (0.8 MiB), web 3 (0.4 MiB), \
                 web 1 (0.0 MiB)"
                    .to_owned()
            )
        );
    }
}
