//! Ends a loop: removes its finalizer from the records, so that their deletion does not wait for a process that no longer runs.

use addons_engine::{lease, local, record};
use addons_operation::{Context, OperationError, Records, name_of};
use common::api::names::InstallationName;
use common::pin;
use k8s_openapi::api::coordination::v1::LeaseSpec;

/// The reason why a loop cannot be retired.
#[derive(Debug, thiserror::Error)]
pub enum RetireError {
    /// A process leads, and would set the finalizers again.
    #[error("{holder} leads: end it first")]
    Leads {
        /// The identity of the leader.
        holder: String,
    },
    /// The records cannot be read or written.
    #[error(transparent)]
    Operation(#[from] OperationError),
}

/// Removes the finalizer from every record of this cluster and of others that is not being deleted, and returns their names. A record
/// that is being deleted keeps it until its objects are deleted (semantics 15).
///
/// # Errors
/// [`RetireError`].
pub async fn retire(ctx: &Context, lease_name: &str) -> Result<Vec<InstallationName>, RetireError> {
    let cluster = ctx.home().await?;
    let system = &ctx.settings().system_namespace;
    let found = lease::get(cluster, system, lease_name).await;
    let found = found.map_err(OperationError::from)?;
    if let Some(holder) =
        found.and_then(|lease| find_leader(&lease.spec.unwrap_or_default(), cluster.now()))
    {
        return Err(RetireError::Leads { holder });
    }
    let records = Records::read(ctx).await?;
    let mut freed = Vec::new();
    let selected = ctx.settings().namespace.as_ref();
    let nowhere = local::list_of_no_cluster(cluster).await;
    let nowhere = nowhere.map_err(OperationError::from)?;
    for record in &records.all {
        let namespace = name_of(record).namespace;
        let is_meant = match selected {
            Some(selected) => *selected == namespace,
            // Records that another loop, with another system namespace, reconciles are left to that loop.
            None => {
                records.local.contains(&namespace)
                    || pin::is_in_other_cluster(record)
                    || !nowhere.contains(&namespace)
            }
        };
        if is_meant
            && record.metadata.deletion_timestamp.is_none()
            && record::remove_finalizer(cluster, record)
                .await
                .map_err(OperationError::from)?
        {
            freed.push(name_of(record));
        }
    }
    Ok(freed)
}

/// Returns the holder of a Lease that has not expired, by the time of the API server.
fn find_leader(spec: &LeaseSpec, now: jiff::Timestamp) -> Option<String> {
    let holder = spec
        .holder_identity
        .clone()
        .filter(|holder| !holder.is_empty())?;
    let renewed = spec.renew_time.as_ref()?.0;
    let seconds = i64::from(spec.lease_duration_seconds.unwrap_or_default());
    (now.duration_since(renewed).as_secs() < seconds).then_some(holder)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    #[test]
    fn a_leader_leads_until_its_lease_has_expired() {
        let second = |second| Timestamp::from_second(second).unwrap();
        for (holder, now, leads) in [("a", 114, true), ("a", 115, false), ("", 101, false)] {
            let spec = LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(15),
                renew_time: Some(MicroTime(second(100))),
                ..LeaseSpec::default()
            };
            assert_eq!(
                find_leader(&spec, second(now)).is_some(),
                leads,
                "{holder} {now}"
            );
        }
    }
}
