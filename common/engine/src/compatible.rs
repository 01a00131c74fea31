//! The conditions that say whether an installed version fits its cluster, and whether its catalogue still lists it.

use jiff::Timestamp;

use common::api::conditions::{self, COMPATIBLE, UNLISTED};
use common::api::installation::{AddonInstallation, AddonInstallationStatus};

use super::cluster::Cluster;
use super::error::EngineError;
use super::{lock, record, status};

/// Whether an installed version is listed and fits its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fitness {
    /// It is listed, and fits its cluster.
    Fits,
    /// It is listed but does not fit, with the reason.
    Misfit(String),
    /// Its catalogue no longer lists it, as this sentence says, so its constraints are not known.
    Unlisted(String),
}

/// Updates the conditions `Compatible` and `Unlisted`. Returns the new record; `None` if nothing changed, an operation is in progress or
/// another client was faster: the next check is soon enough.
///
/// # Errors
/// Those of the request.
pub async fn update_conditions(
    cluster: &Cluster,
    known: &AddonInstallation,
    fitness: &Fitness,
) -> Result<Option<AddonInstallation>, EngineError> {
    let generation = known.metadata.generation;
    let now = cluster.home().now();
    let Some(status) = updated_status(known.status.as_ref(), fitness, generation, now) else {
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

/// Returns the status with the conditions; `None` if nothing would change. A version that was always listed and fitting has no conditions.
fn updated_status(
    stored: Option<&AddonInstallationStatus>,
    fitness: &Fitness,
    generation: Option<i64>,
    now: Timestamp,
) -> Option<AddonInstallationStatus> {
    let stored = stored?;
    if lock::availability(Some(stored), now, false) != lock::Availability::Free {
        return None;
    }
    let (fits, listed) = (("True", "Fits", ""), ("False", "Listed", ""));
    let (compatible, unlisted) = match fitness {
        Fitness::Fits => (fits, listed),
        Fitness::Misfit(why) => (("False", "DoesNotFit", why.as_str()), listed),
        Fitness::Unlisted(why) => (
            ("Unknown", "Unlisted", ""),
            ("True", "Removed", why.as_str()),
        ),
    };
    let mut status = stored.clone();
    let mut is_news = false;
    for (r#type, (value, reason, why)) in [(COMPATIBLE, compatible), (UNLISTED, unlisted)] {
        let mut all = stored.conditions.iter();
        let is_known = match all.find(|condition| condition.r#type == r#type) {
            Some(before) => before.status == value && before.message == why,
            None => why.is_empty(),
        };
        if !is_known {
            let mut condition = status::new_condition(r#type, value, reason, why.to_owned(), now);
            condition.observed_generation = generation;
            conditions::set(&mut status.conditions, condition);
            is_news = true;
        }
    }
    is_news.then_some(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fitness_is_written_once_and_taken_back() {
        let mut status = AddonInstallationStatus::default();
        let look = |status: &_, fitness: &Fitness| {
            updated_status(Some(status), fitness, Some(1), Timestamp::UNIX_EPOCH)
        };
        assert_eq!(look(&status, &Fitness::Fits), None, "it always fitted");
        let misfit = |why: &str| Fitness::Misfit(why.to_owned());
        let unlisted = Fitness::Unlisted("catalogue team no longer has web 1.0.0".to_owned());
        for (fitness, expected) in [
            (
                misfit("<1.36 does not match 1.36.3"),
                &["Compatible=False"][..],
            ),
            (misfit("<1.36 does not match 1.37.0"), &["Compatible=False"]),
            (unlisted.clone(), &["Compatible=Unknown", "Unlisted=True"]),
            (Fitness::Fits, &["Compatible=True", "Unlisted=False"]),
            (unlisted, &["Compatible=Unknown", "Unlisted=True"]),
            (
                misfit("<1.36 does not match 1.37.0"),
                &["Compatible=False", "Unlisted=False"],
            ),
        ] {
            status = look(&status, &fitness).unwrap();
            let found = status.conditions.iter();
            let found: Vec<_> = found
                .map(|one| format!("{}={}", one.r#type, one.status))
                .collect();
            assert_eq!(found, expected, "{fitness:?}");
            let mut all = status.conditions.iter();
            let why = match &fitness {
                Fitness::Fits => "",
                Fitness::Misfit(why) | Fitness::Unlisted(why) => why,
            };
            assert!(all.any(|one| one.message == *why));
            assert_eq!(look(&status, &fitness), None, "nothing is new");
        }
        assert_eq!(
            updated_status(None, &Fitness::Fits, None, Timestamp::UNIX_EPOCH),
            None
        );
    }

    #[test]
    fn what_is_not_listed_says_that_alone() {
        let unlisted = Fitness::Unlisted("why".to_owned());
        let status = AddonInstallationStatus::default();
        let status = updated_status(Some(&status), &unlisted, None, Timestamp::UNIX_EPOCH).unwrap();
        let types = status.conditions.iter().map(|one| one.r#type.as_str());
        assert_eq!(types.collect::<Vec<_>>(), [UNLISTED]);
    }
}
