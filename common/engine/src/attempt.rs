//! Marks an attempt to plan an installation in its record (semantics 20.6). A mark that stays behind means that the process died during the
//! attempt.

use std::sync::OnceLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use common::api::installation::{AddonInstallation, AddonInstallationStatus, PlanningAttempt};

use super::cluster::Cluster;
use super::error::EngineError;
use super::{lock, random, record};

/// Maximum number of tries to remove the mark while others write the record.
const TRIES: usize = 3;

/// Returns the id of this process in marks.
fn process_id() -> &'static str {
    static PROCESS: OnceLock<String> = OnceLock::new();
    PROCESS.get_or_init(random::hex_id)
}

/// Returns how many attempts to plan the record in its present state ended with the death of their process.
#[must_use]
pub fn count_killed(record: &AddonInstallation) -> u32 {
    record.killed_attempts(process_id())
}

/// Marks the beginning of an attempt, after `killed` attempts that ended with their process. Returns the record as it is then. If another
/// client holds the lock, the record stays unchanged, because the attempt cannot lead to an operation.
///
/// # Errors
/// Those of the request; a conflict if the record was written meanwhile.
pub async fn begin(
    cluster: &Cluster,
    known: &AddonInstallation,
    killed: u32,
) -> Result<AddonInstallation, EngineError> {
    let mut marked = known.clone();
    let now = cluster.home().now();
    if lock::availability(known.status.as_ref(), now, false) != lock::Availability::Free {
        return Ok(marked);
    }
    marked.status.get_or_insert_default().attempt = Some(PlanningAttempt {
        generation: known.metadata.generation.unwrap_or_default(),
        number: killed.saturating_add(1),
        process: process_id().to_owned(),
        started_at: Time(now),
    });
    record::put_status(cluster, &mut marked).await?;
    Ok(marked)
}

/// Removes the mark of this process from a record, if it has one.
///
/// # Errors
/// Those of the requests.
pub async fn end(cluster: &Cluster, known: &AddonInstallation) -> Result<(), EngineError> {
    let mut stored = known.clone();
    for attempt in 1.. {
        if !stored.status.as_mut().is_some_and(remove_mark) {
            return Ok(());
        }
        match record::put_status(cluster, &mut stored).await {
            Ok(()) => return Ok(()),
            Err(error) if error.is_conflict() && attempt < TRIES => {}
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        }
        stored = match lock::reread(cluster, known).await {
            Ok(found) => found,
            Err(EngineError::Stale { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
    }
    Ok(())
}

/// Removes the mark of this process from a status. Returns whether it had one.
pub(super) fn remove_mark(status: &mut AddonInstallationStatus) -> bool {
    let ours = status
        .attempt
        .take_if(|attempt| attempt.process == process_id());
    ours.is_some()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::fake;
    use super::*;

    fn record() -> AddonInstallation {
        let mut record = AddonInstallation::new("web", Default::default());
        record.metadata.namespace = Some("shop".to_owned());
        record.metadata.generation = Some(3);
        record
    }

    #[tokio::test]
    async fn a_mark_counts_what_was_killed_and_only_its_process_removes_it() {
        let written = || Some((200, &[][..], json!({"metadata": {"resourceVersion": "8"}})));
        let (cluster, asked) = fake::cluster(vec![written(), written()]);
        let marked = begin(&cluster, &record(), 1).await.unwrap();
        let attempt = marked.status.as_ref().unwrap().attempt.as_ref().unwrap();
        assert_eq!((attempt.generation, attempt.number), (3, 2));
        assert_eq!(count_killed(&marked), 1, "this attempt has not ended");
        end(&cluster, &marked).await.unwrap();
        assert_eq!(asked.lines().len(), 2);
        // That of a dead process stays, and counts.
        let mut dead = marked.clone();
        let status = dead.status.as_mut().unwrap();
        status.attempt.as_mut().unwrap().process = "dead".to_owned();
        end(&cluster, &dead).await.unwrap();
        assert_eq!((count_killed(&dead), asked.lines().len()), (2, 2));
        assert!(!remove_mark(dead.status.as_mut().unwrap()));
    }

    #[tokio::test]
    async fn a_locked_record_is_not_marked() {
        let (cluster, asked) = fake::cluster(Vec::new());
        let mut locked = record();
        let now = Time(Timestamp::now());
        let operation = serde_json::from_value(json!({
            "id": "0", "verb": "upgrade", "holder": "ann@desk", "startedAt": now, "renewedAt": now, "leaseSeconds": 15,
        }));
        locked.status.get_or_insert_default().operation = Some(operation.unwrap());
        let found = begin(&cluster, &locked, 0).await.unwrap();
        assert_eq!(found.status.unwrap().attempt, None);
        assert!(asked.lines().is_empty());
    }
}
