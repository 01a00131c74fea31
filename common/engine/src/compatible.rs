//! The condition that says whether an installed version fits its cluster.

use jiff::Timestamp;

use common::api::conditions::{self, COMPATIBLE};
use common::api::installation::{AddonInstallation, AddonInstallationStatus};

use super::cluster::Cluster;
use super::error::EngineError;
use super::{lock, record, status};

/// Writes that an installed version does not fit its cluster, and why, or that it fits again. Returns the record as it is then; `None`
/// where nothing is new, and where an operation is under way or another client was faster: the next look is in time.
///
/// # Errors
/// Those of the request.
pub async fn note(
    cluster: &Cluster,
    known: &AddonInstallation,
    misfit: Option<&str>,
) -> Result<Option<AddonInstallation>, EngineError> {
    let generation = known.metadata.generation;
    let now = cluster.home().now();
    let Some(status) = judged(known.status.as_ref(), misfit, generation, now) else {
        return Ok(None);
    };
    let mut stored = known.clone();
    stored.status = Some(status);
    match record::put_status(cluster, &mut stored).await {
        Ok(()) => Ok(Some(stored)),
        Err(error) if error.is_conflict() || error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The status with the condition; `None` where nothing would change. What always fitted has none.
fn judged(
    stored: Option<&AddonInstallationStatus>,
    misfit: Option<&str>,
    generation: Option<i64>,
    now: Timestamp,
) -> Option<AddonInstallationStatus> {
    let stored = stored?;
    if lock::availability(Some(stored), now, false) != lock::Availability::Free {
        return None;
    }
    let mut all = stored.conditions.iter();
    let before = all.find(|condition| condition.r#type == COMPATIBLE);
    let is_raised = before.is_some_and(|before| before.status == "False");
    let mut condition = match misfit {
        Some(why) if before.is_some_and(|before| is_raised && before.message == why) => {
            return None;
        }
        Some(why) => status::condition(COMPATIBLE, "False", "DoesNotFit", why.to_owned(), now),
        None if is_raised => status::condition(COMPATIBLE, "True", "Fits", String::new(), now),
        None => return None,
    };
    condition.observed_generation = generation;
    let mut status = stored.clone();
    conditions::set(&mut status.conditions, condition);
    Some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misfit_is_written_once_and_taken_back() {
        let mut status = AddonInstallationStatus::default();
        let look =
            |status: &_, misfit| judged(Some(status), misfit, Some(1), Timestamp::UNIX_EPOCH);
        assert_eq!(look(&status, None), None, "it always fitted");
        for (misfit, expected) in [
            (Some("k8sVersion <1.36 does not match 1.36.3"), "False"),
            (Some("k8sVersion <1.36 does not match 1.37.0"), "False"),
            (None, "True"),
        ] {
            status = look(&status, misfit).unwrap();
            let found = &status.conditions[0];
            assert_eq!(
                (found.r#type.as_str(), found.status.as_str()),
                (COMPATIBLE, expected)
            );
            assert_eq!(found.message, misfit.unwrap_or_default());
            assert_eq!(look(&status, misfit), None, "nothing is new");
        }
        assert_eq!(judged(None, Some("why"), None, Timestamp::UNIX_EPOCH), None);
    }
}
