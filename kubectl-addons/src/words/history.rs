//! Sentences about revisions.

use addons_plan::history::StoredRevision;

use super::plan::version_label;

/// Lists what changed between two revisions: `1.0.0 → 1.1.0`, `values.replicas`.
pub fn list_changes(before: &StoredRevision, now: &StoredRevision) -> Vec<String> {
    let changes = now.changes_since(before);
    let (old, new) = (&before.operation.installed, &now.operation.installed);
    let mut words = Vec::new();
    if changes.version {
        words.push(format!("{} → {}", version_label(old), version_label(new)));
    }
    if changes.manifest {
        words.push("manifest".to_owned());
    }
    words.extend(changes.fields);
    words
}

/// Returns the person or process without its process id: `alice@laptop` of `alice@laptop (kubectl-addons, pid 4711)`.
pub fn holder_name(holder: &str) -> &str {
    holder.split_once(" (").map_or(holder, |(person, _)| person)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_short() {
        assert_eq!(holder_name("a@b (kubectl-addons, pid 1)"), "a@b");
        assert_eq!(holder_name("a@b"), "a@b");
    }
}
