//! Random names for operations and temporary files. Not for secrets.

use std::hash::{BuildHasher as _, RandomState};

/// Returns 32 hex digits. Every `RandomState` has keys that are seeded by the operating system.
pub(super) fn hex_id() -> String {
    let half = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_differ() {
        let ids: std::collections::BTreeSet<String> = (0..1000).map(|_| super::hex_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 32));
    }
}
