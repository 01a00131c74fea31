//! The versions of Kubernetes and KKP that entries must fit.

use addons_engine::local;
use addons_versions::tolerant;
use common::api::catalogue::AddonVersion;
use common::catalogue::select::ClusterVersions;
use common::target::kkp;
use semver::Version;

use super::Context;
use crate::error::{OperationError, within};

impl Context {
    /// Returns the version of Kubernetes that entries must fit. It is unknown if a person may not use the kubeconfig of the cluster: then the
    /// reconciler chooses.
    ///
    /// # Errors
    /// The server cannot be reached, or its version cannot be read.
    pub async fn cluster_facts(&self) -> Result<ClusterVersions, OperationError> {
        let read = || async {
            // A loop is the one that chooses, so it reports the error.
            if self.is_run_by_person() && self.why_out_of_reach().await?.is_some() {
                return Ok(ClusterVersions::default());
            }
            let version = self.cluster().await?.kubernetes_version().await?;
            let parsed = within(tolerant::parse_kubernetes(&version), || {
                format!("the server's version {version}")
            })?;
            Ok::<_, OperationError>(ClusterVersions {
                kubernetes: Some(parsed),
                kkp: None,
            })
        };
        Ok(self.version.get_or_try_init(read).await?.clone())
    }

    /// Returns the facts that these versions must fit. The version of KKP is read only if one of them has a constraint on it.
    ///
    /// # Errors
    /// Those of `Context::version`; the annotation is not a version.
    pub async fn cluster_facts_for<'v>(
        &self,
        versions: impl IntoIterator<Item = &'v AddonVersion>,
    ) -> Result<ClusterVersions, OperationError> {
        let mut facts = self.cluster_facts().await?;
        let constraints = versions.into_iter().map(|version| &version.constraints);
        let mut of_kkp = constraints.filter_map(|constraints| constraints.kkp_version.as_deref());
        if of_kkp.any(|text| !text.trim().is_empty()) {
            facts.kkp = self.kkp().await?;
        }
        Ok(facts)
    }

    /// Returns the version of KKP from the annotation of the namespace that stands for the cluster, or `None` if the caller may not read it
    /// (semantics 3).
    async fn kkp(&self) -> Result<Option<Version>, OperationError> {
        let read = || async {
            let namespace = self.settings.records_namespace();
            let annotations = local::read_annotations(self.home().await?, namespace).await?;
            Ok::<_, OperationError>(kkp::read_kkp_version(namespace, &annotations)?)
        };
        Ok(self.kkp.get_or_try_init(read).await?.clone())
    }
}
