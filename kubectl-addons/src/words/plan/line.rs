//! The lines in which operations are described, with the versions and counts in them.

use std::fmt::Write as _;

use addons_plan::summary;
use common::api::installation::Installed;
use common::foreign::ForeignText;
use common::manifest::key::ObjectKey;

/// How many objects are listed one by one. More are counted by kind.
pub const MAX_LISTED_OBJECTS: usize = 10;

/// Formats a version: `1.2.0`, `1.2.0 (id k8s-1.30)`, or the id or the first 8 characters of the hash if there is no version.
pub fn version_label(installed: &Installed) -> String {
    let label = match (installed.version.as_str(), installed.id.as_str()) {
        ("", "") => installed.manifest_hash.chars().take(8).collect(),
        ("", id) => format!("id {id}"),
        (version, "") => version.to_owned(),
        (version, id) => format!("{version} (id {id})"),
    };
    ForeignText::new(&label).into()
}

/// `1 object`, `2 objects`.
pub fn count_objects(count: usize) -> String {
    if count == 1 {
        "1 object".to_owned()
    } else {
        format!("{count} objects")
    }
}

/// Adds a line for each object, or one with counts if there are more than [`MAX_LISTED_OBJECTS`].
pub fn add_each(
    text: &mut String,
    word: &str,
    keys: Vec<&ObjectKey>,
    words: impl Fn(&ObjectKey) -> String,
) {
    if keys.len() > MAX_LISTED_OBJECTS {
        let counted = format!("{:<11} {}", count_objects(keys.len()), summary::kinds(keys));
        return add_line(text, word, &counted);
    }
    for key in keys {
        add_line(text, word, &words(key));
    }
}

/// Adds a line: a word in the first column, and the rest.
pub fn add_line(text: &mut String, word: &str, rest: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {word:<9} {}", ForeignText::new(rest));
}
