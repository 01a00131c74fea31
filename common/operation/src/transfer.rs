//! Records of indexes and directories where older versions kept them: found, judged, and moved to the system namespace where the
//! user agreed to it (semantics 5).

use std::time::Duration;

use addons_engine::transfer::{self as engine, Transfer, TransferError, Transferred};
use addons_engine::{ExecuteOptions, leave, local, record};
use common::api::installation::AddonInstallation;
use common::api::names::{InstallationName, owner_hash};
use common::plan::inventory::Inventory;
use common::plan::transfer::{
    self, Objects, Obstacle, OldPlace, is_of_old_place, is_rendered, moved,
};

use crate::context::Context;
use crate::error::OperationError;
use crate::interruption::Interruption;
use crate::records::{Records, name_of};

/// How long the lock of a record is waited for: longer than the lease of a client that was killed.
const LOCK: Duration = Duration::from_secs(60);

/// A record in an old place, with what would become of it.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The record.
    pub record: AddonInstallation,
    /// The record in its new place: as it would be created, or as an earlier run left it.
    pub to: AddonInstallation,
    /// Whether the user agreed before, and the move was cut off.
    pub is_begun: bool,
    /// What would become of its objects.
    pub objects: Objects,
}

impl Candidate {
    /// Where it is.
    #[must_use]
    pub fn from(&self) -> InstallationName {
        name_of(&self.record)
    }
}

/// The records in old places: of an index or a directory, in a namespace that stands for no cluster.
///
/// # Errors
/// The server cannot be reached, or refuses.
pub async fn find<'a>(
    ctx: &Context,
    records: &'a Records,
) -> Result<Vec<&'a AddonInstallation>, OperationError> {
    let is_elsewhere = |record: &&AddonInstallation| {
        let namespace = name_of(record).namespace;
        is_of_old_place(record)
            && !records.local.contains(&namespace)
            && record.metadata.deletion_timestamp.is_none()
    };
    let mut found: Vec<&AddonInstallation> = records.all.iter().filter(is_elsewhere).collect();
    if !found.is_empty() {
        let namespaces = local::of_no_cluster(ctx.home().await?).await?;
        found.retain(|record| namespaces.contains(&name_of(record).namespace));
    }
    Ok(found)
}

/// Whether the user agreed to the move of a record before, and it was cut off.
#[must_use]
pub fn is_begun(record: &AddonInstallation, records: &Records) -> bool {
    let place = Some(OldPlace::of(record));
    let mut system = records.within(Some(&records.system));
    system.any(|other| OldPlace::named_by(other) == place)
}

/// Judges a record by what the cluster holds now.
///
/// # Errors
/// [`OperationError::Stays`]; what the server refuses.
pub async fn judge(ctx: &Context, record: &AddonInstallation) -> Result<Candidate, OperationError> {
    let installation = name_of(record);
    let system = &ctx.settings().system_namespace;
    let stays = |obstacle| OperationError::Stays(installation.clone(), Box::new(obstacle));
    let cluster = ctx.cluster().await?;
    let others = record::list(cluster, Some(system)).await?;
    let place = OldPlace::of(record);
    let mut others_of_it = others.iter();
    let begun = others_of_it.find(|other| OldPlace::named_by(other).as_ref() == Some(&place));
    let to = match begun {
        Some(begun) => {
            transfer::check(record).map_err(stays)?;
            begun.clone()
        }
        None => moved(record, system, &others).map_err(stays)?,
    };
    if is_rendered(record)
        && ctx.overlays(&installation.namespace).await? != ctx.overlays(system).await?
    {
        return Err(stays(Obstacle::TemplateData(system.clone())));
    }
    let mut owners = vec![hash(&installation)];
    let recorded = begun.and_then(|begun| begun.status.as_ref());
    if recorded.is_some() {
        owners.push(hash(&name_of(&to)));
    }
    let recorded = recorded.or(record.status.as_ref());
    let objects = engine::judge(cluster, &Inventory::of(recorded), &owners).await;
    Ok(Candidate {
        record: record.clone(),
        is_begun: begun.is_some(),
        to,
        objects: objects.map_err(|error| of(&installation, error))?,
    })
}

/// Moves a record. Nothing of its objects is applied again.
///
/// # Errors
/// The record changed since it was judged; what the server refuses; it was interrupted: then the locks are free, and the next run
/// continues.
pub async fn run(
    ctx: &Context,
    candidate: &Candidate,
    interruption: &Interruption,
) -> Result<Transferred, OperationError> {
    let cluster = ctx.cluster().await?;
    let options = ExecuteOptions {
        holder: ctx.settings().holder.clone(),
        wait: false,
        timeout: LOCK,
        wait_for_lock: true,
        steal_lock: false,
    };
    let transfer = Transfer {
        from: &candidate.record,
        to: &candidate.to,
    };
    let work = engine::run(cluster, transfer, &options, &|_| {});
    match interruption.ends(work, cluster.quiet()).await {
        Ok(done) => done.map_err(|error| of(&candidate.from(), error)),
        Err(interrupted) => {
            for name in [candidate.from(), name_of(&candidate.to)] {
                // A lock that cannot be given back expires.
                let _ = leave(cluster, &name, &options.holder, None).await;
            }
            Err(interrupted.into())
        }
    }
}

fn hash(installation: &InstallationName) -> String {
    owner_hash(&installation.namespace, &installation.name)
}

fn of(installation: &InstallationName, error: TransferError) -> OperationError {
    match error {
        TransferError::Engine(error) => error.into(),
        TransferError::Obstacle(obstacle) => {
            OperationError::Stays(installation.clone(), Box::new(obstacle))
        }
    }
}
