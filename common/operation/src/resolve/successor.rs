//! The add-on that replaces a deprecated one: whether it can be installed, and whether it takes over the objects (semantics 1.9).

use addons_plan::inventory::Inventory;
use common::api::catalogue::Deprecation;
use common::api::installation::AddonInstallation;
use common::catalogue::select::EntryRequest;
use common::manifest::key::ObjectKey;

use super::Resolver;
use super::choose::choose;
use crate::error::OperationError;
use crate::event::{Finding, SuccessorPath};
use crate::records::name_of;
use crate::render;

impl Resolver<'_> {
    /// Reports how the successor of a deprecated add-on replaces an installation, if the deprecation names one.
    ///
    /// # Errors
    /// The catalogues cannot be read.
    pub(super) async fn report_successor(
        &self,
        record: &AddonInstallation,
        deprecation: &Deprecation,
    ) -> Result<(), OperationError> {
        if let Some(successor) = &deprecation.successor {
            self.ctx.report_finding(Finding::Successor {
                installation: name_of(record),
                successor: successor.clone(),
                path: self.find_path(record, successor).await?,
            });
        }
        Ok(())
    }

    async fn find_path(
        &self,
        record: &AddonInstallation,
        successor: &str,
    ) -> Result<SuccessorPath, OperationError> {
        let catalogue = self.ctx.catalogue(&self.offer).await?;
        let request = EntryRequest {
            addon: successor,
            ..EntryRequest::default()
        };
        let fit = self.ctx.cluster_facts_for(catalogue.versions()).await?;
        let entry = match choose(&catalogue, &request, &fit, self.ctx.settings().rules) {
            Ok((entry, _)) => entry,
            Err(error) => return Ok(SuccessorPath::Unavailable(error.to_string())),
        };
        let mut resolved = render::resolve_uninstalled(self.ctx, &entry);
        let target = record.spec.target_namespace.clone();
        let other = target.filter(|target| target != resolved.target_namespace());
        if let Some(target) = &other {
            resolved.wanted.spec.target_namespace = Some(target.clone());
        }
        let Ok(rendered) = render::render_uninstalled(self.ctx, &resolved, None).await else {
            return Ok(SuccessorPath::Beside);
        };
        let manifests = rendered.manifests.iter();
        let written = manifests.filter_map(|one| ObjectKey::from_object(&one.object));
        let written: Vec<ObjectKey> = written.collect();
        let inventory = Inventory::from_status(record.status.as_ref());
        let keys = || {
            inventory
                .objects
                .keys()
                .filter(|key| key.kind != "Namespace")
        };
        let is_shared = |key: &&ObjectKey| {
            let mut written = written.iter();
            written.any(|one| key.is_described_by(one, resolved.target_namespace()))
        };
        Ok(match keys().filter(is_shared).count() {
            0 => SuccessorPath::Beside,
            objects => SuccessorPath::TakesOver {
                objects,
                of: keys().count(),
                target_namespace: other,
            },
        })
    }
}
