//! Resolves records as they are written, without input of a user.

use std::collections::BTreeSet;

use common::api::installation::AddonInstallation;
use common::catalogue::select::{RejectionReason, find_misfit};
use common::catalogue::{self, installed};

use super::origin::catalogue_of;
use super::resolved::Resolved;
use super::verdict;
use super::{Answers, Resolver};
use crate::context::{Context, Offer};
use crate::error::OperationError;
use crate::intent::Edits;
use crate::records::Records;
use common::catalogue::orphan::{self, MissingOrigin, UnlistedVersion};

impl<'a> Resolver<'a> {
    /// Creates a resolver for [`Resolver::resolve_record`] alone: each record says whose rights are used.
    ///
    /// # Errors
    /// Those of [`Resolver::new`].
    pub async fn for_records(ctx: &'a Context) -> Result<Self, OperationError> {
        Self::read(ctx, Offer::Catalogues).await
    }

    /// As [`Resolver::for_records`], for records of the namespace of the command that were already read.
    ///
    /// # Errors
    /// As [`Resolver::for_records`].
    pub async fn for_known_records(
        ctx: &'a Context,
        all: Vec<AddonInstallation>,
    ) -> Result<Self, OperationError> {
        let records = Records {
            all,
            system: ctx.settings().system_namespace.clone(),
            local: BTreeSet::from([ctx.settings().records_namespace().to_owned()]),
            is_remote: ctx.is_remote().await?,
            ..Records::default()
        };
        let has_catalogues = ctx.readable_catalogues().await?.is_some();
        Self::with_records(ctx, Offer::Catalogues, records, has_catalogues).await
    }

    /// Creates a resolver with records that were read. `has_catalogues` says whether there are catalogues that the caller may read.
    pub(crate) async fn with_records(
        ctx: &'a Context,
        offer: Offer,
        records: Records,
        has_catalogues: bool,
    ) -> Result<Self, OperationError> {
        let known = match has_catalogues {
            true => ctx.contents().await?.objects,
            false => &[],
        };
        let cluster = ctx.cluster_facts_for(catalogue::versions(known)).await?;
        let facts = verdict::collect_facts(ctx, &records, cluster, has_catalogues).await?;
        Ok(Self {
            ctx,
            offer,
            records,
            facts,
        })
    }

    /// Returns the resolver with the same records for another context.
    #[must_use]
    pub fn with_context<'b>(&self, ctx: &'b Context) -> Resolver<'b> {
        Resolver {
            ctx,
            offer: self.offer.clone(),
            records: self.records.clone(),
            facts: self.facts.clone(),
        }
    }

    /// Resolves a record as it is written: to the entry that a rollback restored, else the version that it names, else the newest one that
    /// fits.
    ///
    /// # Errors
    /// Its origin cannot be read, or no entry fits; the verdict is a denial.
    pub async fn resolve_record(
        &self,
        record: &AddonInstallation,
    ) -> Result<Resolved, OperationError> {
        let (edits, answers) = (Edits::default(), Answers::new());
        let mut resolved = self.choose_recorded(record).await?;
        resolved.keeps_spec = true;
        self.complete(resolved, &edits, &answers).await
    }

    /// As [`Resolver::resolve_record`], before defaults and the verdict.
    pub(crate) async fn choose_recorded(
        &self,
        record: &AddonInstallation,
    ) -> Result<Resolved, OperationError> {
        match self.resolve_held(record).await? {
            Some(held) => Ok(held),
            None => {
                let version = record.spec.addon_ref.version.as_deref();
                self.resolve_version(record, version).await
            }
        }
    }

    /// Returns whether the installed version is listed, and fits the cluster. It stays installed in any case.
    ///
    /// # Errors
    /// The versions of the cluster cannot be read.
    pub async fn compatibility(
        &self,
        record: &AddonInstallation,
    ) -> Result<Compatibility, OperationError> {
        if record.installed().is_none() {
            return Ok(Compatibility::Unknown);
        }
        let catalogue = match catalogue_of(self.ctx, record).await {
            Ok(catalogue) => catalogue,
            Err(OperationError::Orphaned { lost, .. }) => return Ok(Compatibility::Orphaned(lost)),
            // Other conditions of the installation report an origin that cannot be read.
            Err(_) => return Ok(Compatibility::Unknown),
        };
        if let Some(unlisted) = orphan::find_unlisted(record, &catalogue) {
            return Ok(Compatibility::Unlisted(unlisted));
        }
        let Some(entry) = installed::find_installed(record, &catalogue) else {
            return Ok(Compatibility::Unknown);
        };
        let cluster = self.ctx.cluster_facts_for([&entry.version]).await?;
        Ok(match find_misfit(&entry.version.constraints, &cluster) {
            None => Compatibility::Fits,
            Some(reason) => Compatibility::Misfit(reason),
        })
    }
}

/// Whether an installed version is listed, and fits its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// Nothing is installed, or its origin cannot be read.
    Unknown,
    /// Its catalogue, or its add-on there, was deleted.
    Orphaned(MissingOrigin),
    /// It was removed from its catalogue.
    Unlisted(UnlistedVersion),
    /// It fits.
    Fits,
    /// It does not fit, for this reason.
    Misfit(RejectionReason),
}
