//! Checks that the Secrets in which Helm keeps a release are those that the record lists (semantics 13.8). Anyone who may write Secrets in
//! the namespace could change them, and Helm applies and deletes what they say.

use serde::{Deserialize, Serialize};

use common::api::installation::HelmRecord;

/// The Secrets of a release that a plan was made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReleaseRecords {
    /// Secrets that Helm continues from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<HelmRecord>,
    /// Secrets that an interrupted operation left, or that another client wrote meanwhile. They are deleted before Helm runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<HelmRecord>,
    /// Whether the state of the release is known to be true, so that a pending release may be recovered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recovers: bool,
}

impl ReleaseRecords {
    /// Accepts the Secrets as they are, because the user does.
    #[must_use]
    pub fn accepted(found: Vec<HelmRecord>) -> Self {
        Self {
            known: found,
            left: Vec::new(),
            recovers: true,
        }
    }

    /// Compares the Secrets in the cluster with the recorded ones. After an interruption, revisions may have been added or deleted, and the
    /// state of one may have changed, but not its content.
    ///
    /// # Errors
    /// The names of the Secrets that differ.
    pub fn compare(
        recorded: &[HelmRecord],
        found: Vec<HelmRecord>,
        is_interrupted: bool,
    ) -> Result<Self, Vec<String>> {
        let missing = recorded.iter().filter(|record| {
            let mut found = found.iter();
            !found.any(|one| one.name == record.name)
        });
        let missing: Vec<String> = missing.map(|record| record.name.clone()).collect();
        // If there are no Secrets, Helm cannot act on their content.
        let mut changed = match is_interrupted || found.is_empty() {
            true => Vec::new(),
            false => missing,
        };
        let mut judged = Self {
            recovers: true,
            ..Self::default()
        };
        for one in found {
            let mut recorded = recorded.iter();
            match recorded.find(|record| record.name == one.name) {
                Some(record) if record.is_untouched(&one) => judged.known.push(one),
                Some(record) if record.is_same_release(&one) => {
                    judged.recovers = false;
                    judged.known.push(one);
                }
                None if is_interrupted => judged.left.push(one),
                Some(_) | None => changed.push(one.name),
            }
        }
        changed.sort();
        match changed.is_empty() {
            true => Ok(judged),
            false => Err(changed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, version: &str, digest: &str) -> HelmRecord {
        HelmRecord {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            resource_version: version.to_owned(),
            digest: digest.to_owned(),
        }
    }

    /// (found, after an interruption, what is known, left, recovered; or what changed) for `v1` and `v2`.
    #[test]
    fn what_helm_may_go_on_from() {
        let (v1, v2, v3) = (
            secret("v1", "10", "a"),
            secret("v2", "11", "b"),
            secret("v3", "12", "c"),
        );
        let labelled = secret("v2", "20", "b");
        let forged = secret("v2", "20", "x");
        let unread = HelmRecord {
            digest: String::new(),
            ..forged.clone()
        };
        let again = HelmRecord {
            uid: "other".to_owned(),
            ..v2.clone()
        };
        let recorded = [v1.clone(), v2.clone()];
        let both = vec![v1.clone(), v2.clone()];
        let with = |last: &HelmRecord| vec![v1.clone(), last.clone()];
        let three = vec![v1.clone(), v2.clone(), v3.clone()];
        for (found, is_interrupted, expected) in [
            (both.clone(), false, Ok((2, 0, true))),
            (with(&labelled), false, Ok((2, 0, false))),
            (Vec::new(), false, Ok((0, 0, true))),
            (with(&forged), false, Err("v2")),
            (with(&forged), true, Err("v2")),
            (with(&unread), true, Err("v2")),
            (with(&again), true, Err("v2")),
            (three.clone(), false, Err("v3")),
            (three, true, Ok((2, 1, true))),
            (vec![v1.clone()], false, Err("v2")),
            (vec![v1.clone()], true, Ok((1, 0, true))),
        ] {
            let judged = ReleaseRecords::compare(&recorded, found.clone(), is_interrupted);
            let judged = judged.map(|it| (it.known.len(), it.left.len(), it.recovers));
            let expected = expected.map_err(|name| vec![name.to_owned()]);
            assert_eq!(judged, expected, "{found:?} {is_interrupted}");
        }
    }
}
