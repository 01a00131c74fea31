//! The versions of Kubernetes and KKP that entries must fit.

use std::collections::BTreeSet;
use std::sync::Arc;

use addons_engine::local;
use addons_versions::tolerant;
use common::api::catalogue::AddonVersion;
use common::catalogue::select::ClusterVersions;
use common::expression::profile::{self, Profile};
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
                profile: None,
            })
        };
        Ok(self.version.get_or_try_init(read).await?.clone())
    }

    /// Returns the facts that these versions must fit. The version of KKP, and what expressions read, is read only if one of them has such a
    /// constraint.
    ///
    /// # Errors
    /// Those of `Context::version`; the annotation is not a version; a fact cannot be read.
    pub async fn cluster_facts_for<'v>(
        &self,
        versions: impl IntoIterator<Item = &'v AddonVersion>,
    ) -> Result<ClusterVersions, OperationError> {
        let mut facts = self.cluster_facts().await?;
        let constraints = versions.into_iter().map(|version| &version.constraints);
        let (mut reads_kkp, mut expressions) = (false, BTreeSet::new());
        for constraints in constraints {
            let is_set = |text: &&str| !text.trim().is_empty();
            reads_kkp |= constraints
                .kkp_version
                .as_deref()
                .is_some_and(|it| is_set(&it));
            expressions.extend(constraints.expression.as_deref().filter(is_set));
        }
        if reads_kkp {
            facts.kkp = self.kkp().await?;
        }
        // Where a person may not use the kubeconfig, the reconciler chooses.
        if !expressions.is_empty() && facts.kubernetes.is_some() {
            facts.profile = Some(self.profile(&expressions).await?);
        }
        Ok(facts)
    }

    /// Returns the facts that these expressions read. An expression that is not valid reads none, and is reported when it is evaluated.
    async fn profile(&self, expressions: &BTreeSet<&str>) -> Result<Arc<Profile>, OperationError> {
        let mut variables = BTreeSet::new();
        for expression in expressions {
            let compiled = profile::compile(expression).ok();
            variables.extend(compiled.into_iter().flat_map(|it| it.variables().clone()));
        }
        let mut known = self.profile.lock().await;
        if let Some(profile) = known.as_ref()
            && variables.iter().all(|name| profile.knows(name))
        {
            return Ok(Arc::clone(profile));
        }
        let mut profile = match known.as_deref() {
            Some(profile) => profile.clone(),
            None => self.stated_profile().await?,
        };
        self.complete_profile(&mut profile, &variables).await?;
        Ok(Arc::clone(known.insert(Arc::new(profile))))
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
