//! Takes over what other tools installed of an add-on: owners change, and nothing else (semantics 12). And finds what they installed.

use std::collections::BTreeSet;

use addons_engine::marks;
use common::api::names::InstallationName;
use common::plan::InstallationPlan;
use common::plan::choices::Choices;
use common::plan::found::{FoundBy, Install, installs};

use crate::context::{Context, Offer};
use crate::error::OperationError;
use crate::plan::{Plan, Planned};
use crate::records::Records;
use crate::resolve::{Resolution, Resolver};
use crate::resolved::Resolved;

/// Why nothing is adopted. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    /// It is installed by us.
    #[error("{0} is already installed")]
    Installed(InstallationName),
    /// Its objects are ours, and nothing was applied yet.
    #[error("{0} has already been taken over")]
    Adopted(InstallationName),
    /// Its objects are ours, and no one has agreed to what would change in them.
    #[error("{0} was taken over, but the changes to its objects were not confirmed yet")]
    Unconfirmed(InstallationName),
    /// Its record says that it is of this cluster.
    #[error("{0} is recorded as an installation of this cluster")]
    SameCluster(InstallationName),
    /// None of its objects exists.
    #[error("there is nothing to adopt: none of the objects of {addon} exists")]
    Nothing {
        /// The add-on.
        addon: String,
    },
    /// Helm itself is to install it (`template.helm.mode: release`).
    #[error("{0} is installed by helm as a release of its own, which is not adopted")]
    Release(InstallationName),
}

impl Resolver<'_> {
    /// Plans to own what exists of these installations. `force`: also what a live Argo CD or Flux object applies, and records in Git.
    ///
    /// # Errors
    /// [`AdoptError`]; those of a plan.
    pub async fn adopt(&self, resolution: Resolution, force: bool) -> Result<Plan, OperationError> {
        if let Some(there) = resolution
            .installations
            .iter()
            .find(|one| is_installed(one))
        {
            return Err(AdoptError::Installed(there.name.clone()).into());
        }
        let choices = Choices {
            adopt: true,
            force_adopt: force,
            force,
            only_owners: true,
            ..Choices::default()
        };
        let mut plan = self.plan(resolution, &choices).await?.whole()?;
        for Planned { plan, release, .. } in &plan.installations {
            if release.is_some() {
                return Err(AdoptError::Release(plan.installation.clone()).into());
            }
            if plan.is_empty() {
                return Err(nothing(plan).into());
            }
        }
        // Everything exists: nothing has to wait for anything.
        plan.graph.edges.clear();
        Ok(plan)
    }
}

/// Why a plan adopts nothing.
fn nothing(plan: &InstallationPlan) -> AdoptError {
    if plan.unchanged.is_empty() {
        let addon = plan.addon.clone();
        AdoptError::Nothing { addon }
    } else {
        AdoptError::Adopted(plan.installation.clone())
    }
}

/// Whether an operation of ours has applied it, or is about to.
fn is_installed(resolved: &Resolved) -> bool {
    let installed = resolved.installed();
    installed.is_some_and(|installed| !installed.adopted)
}

/// What other tools installed.
#[derive(Debug)]
pub struct Found {
    /// By the marks of live objects.
    pub installs: Vec<Install>,
    /// Names of the add-ons on offer.
    pub offered: BTreeSet<String>,
    /// Collections that could not be listed, and why.
    pub unreadable: Vec<(String, String)>,
}

/// Looks for what other tools installed: one metadata-only LIST a kind.
///
/// # Errors
/// The server cannot be reached; the index cannot be read.
pub async fn found(ctx: &Context, offer: &Offer) -> Result<Found, OperationError> {
    let records = Records::read(ctx).await?;
    let marks = marks::read(ctx.cluster().await?).await?;
    let mut installs = installs(&marks.objects, &records.claims(&[]).owners);
    if records.is_partial {
        // Their installations may be among those that the caller may not read.
        installs.retain(|install| install.found_by != FoundBy::Orphan);
    }
    let may_read =
        !matches!(offer, Offer::Catalogues) || ctx.readable_catalogues().await?.is_some();
    let offered = if may_read {
        let catalogue = ctx.catalogue(offer).await?;
        catalogue.names().into_iter().map(str::to_owned).collect()
    } else {
        BTreeSet::new()
    };
    Ok(Found {
        installs,
        offered,
        unreadable: marks.unreadable,
    })
}
