//! The add-ons of kops indexes: installs every add-on on offer, and finds installed ones that no index has any more.

use std::collections::BTreeSet;

use addons_engine::kops as annotations;
use addons_plan::prune::limit::PruneLimit;
use addons_versions::tolerant;
use common::catalogue::channel::ChannelVersion;
use common::catalogue::select::find_misfit;
use common::catalogue::{Catalogue, CatalogueEntry};

use crate::context::{Context, Offer};
use crate::error::{IndexesError, OperationError};
use crate::event::Finding;
use crate::intent::{NewInstallation, VersionedName};
use crate::kops;
use crate::resolve::choose::ChooseError;
use crate::resolve::{Answers, Resolution, Resolver};

/// The name that kops gives the index of its own add-ons, which its control planes apply repeatedly.
const BOOTSTRAP: &str = "bootstrap-channel.yaml";

/// An add-on that the records of kops name and the indexes do not have any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedAddon {
    /// The namespace of its annotation.
    pub namespace: String,
    /// The add-on.
    pub addon: String,
    /// The installation, if kubectl addons has one; otherwise only kops' own tool has installed the add-on.
    pub installation: Option<String>,
}

impl Resolver<'_> {
    /// Resolves every add-on on offer: installs or upgrades it. Like kops, it passes over add-ons that do not fit.
    ///
    /// # Errors
    /// An index cannot be read. Errors of one add-on are part of the result.
    pub async fn resolve_indexes(&self) -> Result<Resolution, OperationError> {
        let mut resolution = Resolution::default();
        let catalogue = self.ctx.catalogue(&self.offer).await?;
        self.warn_of_kops().await;
        for name in catalogue.names() {
            let new = NewInstallation {
                addon: VersionedName {
                    name: name.to_owned(),
                    version: None,
                },
                ..NewInstallation::default()
            };
            let wanted = async {
                self.check_hashes(&catalogue, name)?;
                let mut resolved = self.resolve_install(&new, &Answers::default()).await?;
                if resolved.shared.is_none() {
                    kops::attach(self.ctx, &mut resolved).await?;
                }
                Ok(resolved)
            };
            match wanted.await {
                Err(OperationError::Choose(ChooseError::DoesNotFit { .. })) => {
                    let addon = name.to_owned();
                    self.ctx.report_finding(Finding::DoesNotFit { addon });
                }
                Err(OperationError::Suspended(name)) => {
                    self.ctx.report_finding(Finding::Suspended(name))
                }
                resolved => resolution.add(name, resolved),
            }
        }
        Ok(resolution)
    }

    /// Warns that the control planes of kops apply its own index as well.
    async fn warn_of_kops(&self) {
        let Offer::Indexes(indexes) = &self.offer else {
            return;
        };
        let mut locations = indexes.iter().map(|index| &index.location);
        let is_of_kops = |location: &&String| location.rsplit('/').next() == Some(BOOTSTRAP);
        if let Some(channel) = locations.find(is_of_kops)
            && let Ok(cluster) = self.ctx.cluster().await
            && let Some(controller) = annotations::controller(cluster).await
        {
            let channel = channel.clone();
            self.ctx.report_finding(Finding::KopsRuns {
                controller,
                channel,
            });
        }
    }

    /// Refuses an entry that two indexes have with different contents: their order would decide which of them is installed.
    fn check_hashes(&self, catalogue: &Catalogue, name: &str) -> Result<(), IndexesError> {
        let fits = |entry: &&CatalogueEntry| {
            entry.addon == name
                && find_misfit(&entry.version.constraints, &self.facts.cluster).is_none()
        };
        let fitting: Vec<&CatalogueEntry> = catalogue.entries.iter().filter(fits).collect();
        for (i, one) in fitting.iter().enumerate() {
            let clash = fitting.iter().skip(i + 1).find(|other| {
                let (a, b) = (&one.version, &other.version);
                one.origin != other.origin
                    && a.id == b.id
                    && (a.version == b.version || tolerant::is_same(&a.version, &b.version))
                    && a.manifest_hash != b.manifest_hash
            });
            if let Some(other) = clash {
                return Err(IndexesError::TwoHashes {
                    addon: name.to_owned(),
                    first: one.origin.to_string(),
                    second: other.origin.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Lists the add-ons that, according to the records of kops, were installed from these indexes and are in none of them any more,
    /// sorted.
    ///
    /// # Errors
    /// An index or the namespaces cannot be read.
    pub async fn find_removed_addons(&self) -> Result<Vec<RemovedAddon>, OperationError> {
        let Offer::Indexes(indexes) = &self.offer else {
            return Ok(Vec::new());
        };
        let locations = indexes.iter();
        let locations = locations.map(|index| Context::absolute_location(&index.location));
        let locations: BTreeSet<String> = locations.collect::<Result<_, _>>()?;
        let catalogue = self.ctx.catalogue(&self.offer).await?;
        let names = catalogue.names();
        let all = annotations::of_cluster(self.ctx.cluster().await?).await?;
        let gone = all.into_iter().filter(|one| {
            let found = ChannelVersion::parse(&one.addon, &one.text).unwrap_or_default();
            let is_of_these = found
                .channel
                .is_some_and(|channel| locations.contains(&channel));
            is_of_these && !names.contains(&one.addon.as_str())
        });
        let removed = gone.map(|one| RemovedAddon {
            installation: self.find_installation(&one.namespace, &one.addon),
            namespace: one.namespace,
            addon: one.addon,
        });
        Ok(removed.collect())
    }

    /// Refuses to uninstall most of what was installed from these indexes: an index that was truncated or replaced looks like that.
    ///
    /// # Errors
    /// [`IndexesError::MostlyRemoved`].
    pub fn check_removal(&self, names: &[String], allowed: PruneLimit) -> Result<(), IndexesError> {
        let of_channel = self
            .records
            .in_namespace(self.ctx.settings().namespace.as_deref());
        let of_channel = of_channel.filter(|record| kops::has_record(record)).count();
        if allowed.admits(names.len(), of_channel) {
            return Ok(());
        }
        Err(IndexesError::MostlyRemoved {
            removed: names.len(),
            installed: of_channel,
        })
    }

    fn find_installation(&self, namespace: &str, addon: &str) -> Option<String> {
        let place = format!("{namespace}/{addon}");
        let mut records = self
            .records
            .in_namespace(self.ctx.settings().namespace.as_deref());
        let record = records.find(|record| kops::record_place(record) == Some(&place))?;
        record.metadata.name.clone()
    }
}
