//! One run of the program: its flags, and what it has read so far.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addons_engine::{Cluster, EngineError, catalogues, secret, template_facts};
use addons_versions::{kubernetes, tolerant};
use anyhow::{Context as _, Result};
use common::api::catalogue::AddonCatalogue;
use common::api::names;
use common::catalogue::Catalogue;
use common::catalogue::select::{self, ClusterFacts};
use common::manifest::yaml::DuplicateKeys;
use common::render::facts::{Facts, Overlays};
use tokio::sync::{Mutex, OnceCell};

use crate::cli::operation::Source;
use crate::cli::{Global, Rules};
use crate::{output, settings};
use addons_helm::Helm;
use addons_sources::Access;
use addons_sources::cache::Cache;
use addons_sources::credentials::Credentials;

/// One run of the program. Everything is read at most once, and only when it is needed.
pub struct Session {
    global: Global,
    cluster: OnceCell<Cluster>,
    catalogues: OnceCell<Vec<AddonCatalogue>>,
    indexes: Mutex<BTreeMap<String, Catalogue>>,
    credentials: Mutex<BTreeMap<(String, String), Arc<Credentials>>>,
    template_facts: OnceCell<Facts>,
    overlays: Mutex<BTreeMap<String, Overlays>>,
    helm: OnceCell<Helm>,
    api_versions: OnceCell<Vec<String>>,
    fetched: Cache,
}

impl Session {
    /// Nothing is read yet.
    pub fn new(global: Global) -> Self {
        let folder = settings::cache_dir(&global);
        Self {
            fetched: Cache::new(folder.map(|folder| folder.join("sources"))),
            global,
            credentials: Mutex::new(BTreeMap::new()),
            template_facts: OnceCell::new(),
            overlays: Mutex::new(BTreeMap::new()),
            helm: OnceCell::new(),
            api_versions: OnceCell::new(),
            cluster: OnceCell::new(),
            catalogues: OnceCell::new(),
            indexes: Mutex::new(BTreeMap::new()),
        }
    }

    /// The flags that every command takes.
    pub fn global(&self) -> &Global {
        &self.global
    }

    /// How the user of this machine reads sources, without credentials from a Secret.
    pub fn access(&self) -> Access<'_> {
        Access {
            cache: &self.fetched,
            offline: self.global.offline,
            ambient: true,
            credentials: None,
        }
    }

    /// The rules that choose between versions.
    pub fn rules(&self) -> select::Rules {
        match self.global.rules {
            Rules::Auto => select::Rules::Auto,
            Rules::Documented => select::Rules::Documented,
            Rules::Channels => select::Rules::Channels,
        }
    }

    /// The cluster of the kubeconfig; the first call reads that, no call asks the server.
    ///
    /// # Errors
    /// See [`settings::config`].
    pub async fn cluster(&self) -> Result<&Cluster> {
        let connect = || async {
            let config = settings::config(&self.global).await?;
            Ok(Cluster::new(config, settings::cluster_options(&self.global)).await?)
        };
        self.cluster.get_or_try_init(connect).await
    }

    /// The cluster that entries must fit: its own version, or the ones that were typed.
    ///
    /// # Errors
    /// An unreadable version; without a typed one, an unreachable server.
    pub async fn facts(&self, k8s: Option<&str>, kkp: Option<&str>) -> Result<ClusterFacts> {
        let kubernetes = match k8s {
            Some(typed) => kubernetes::parse(typed).with_context(|| format!("--k8s {typed}"))?,
            None => {
                let version = self.cluster().await?.kubernetes_version().await?;
                kubernetes::parse(&version)
                    .with_context(|| format!("the server's version {version}"))?
            }
        };
        let kkp = kkp
            .map(|typed| tolerant::parse(typed).with_context(|| format!("--kkp {typed}")))
            .transpose()?;
        Ok(ClusterFacts {
            kubernetes: Some(kubernetes),
            kkp,
        })
    }

    /// The AddonCatalogue objects of the system namespace; none where our definitions are missing.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn catalogues(&self) -> Result<&[AddonCatalogue]> {
        let list = || async {
            match catalogues::list(self.cluster().await?, &self.global.system_namespace).await {
                Err(EngineError::NotInitialised) => Ok(Vec::new()),
                other => other.context("cannot read the catalogues"),
            }
        };
        Ok(self.catalogues.get_or_try_init(list).await?)
    }

    /// What can be chosen from, as the flags say: an index, one catalogue or all of them.
    ///
    /// # Errors
    /// The source cannot be read; a catalogue of that name is not there.
    pub async fn catalogue(&self, from: &Source) -> Result<Catalogue> {
        if let Some(location) = &from.channel {
            return self.index(location).await;
        }
        let all = self.catalogues().await?;
        let Some(name) = &from.catalogue else {
            return Ok(Catalogue::of_objects(all));
        };
        let named: Vec<_> = all
            .iter()
            .filter(|object| object.metadata.name.as_ref() == Some(name))
            .cloned()
            .collect();
        anyhow::ensure!(
            !named.is_empty(),
            "no catalogue named {name}; see what there is: kubectl addons catalogue list --core"
        );
        Ok(Catalogue::of_objects(&named))
    }

    /// The entries of a kops index or of a catalogue file, fetched once.
    ///
    /// # Errors
    /// It cannot be fetched or read.
    pub async fn index(&self, location: &str) -> Result<Catalogue> {
        let location = addons_sources::url::absolute(location)?;
        let mut indexes = self.indexes.lock().await;
        if let Some(catalogue) = indexes.get(&location) {
            return Ok(catalogue.clone());
        }
        let (catalogue, warnings) =
            addons_sources::location::entries(&location, &self.access()).await?;
        for warning in warnings {
            output::note(&format!("careful: {warning}"));
        }
        indexes.insert(location, catalogue.clone());
        Ok(catalogue)
    }

    /// The credentials of a Secret, read once.
    ///
    /// # Errors
    /// The Secret is missing, or holds no credentials.
    pub async fn credentials(&self, namespace: &str, name: &str) -> Result<Arc<Credentials>> {
        let mut known = self.credentials.lock().await;
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(credentials) = known.get(&key) {
            return Ok(Arc::clone(credentials));
        }
        let cluster = self.cluster().await.with_context(|| {
            format!("the source needs Secret {namespace}/{name} of the cluster")
        })?;
        let secret = secret::get(cluster, namespace, name).await?;
        let secret = secret.with_context(|| {
            format!("Secret {namespace}/{name} with the credentials of the source is missing")
        })?;
        let credentials = Arc::new(Credentials::read(&secret)?);
        known.insert(key, Arc::clone(&credentials));
        Ok(credentials)
    }

    /// What templates are told of the cluster.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn template_facts(&self) -> Result<&Facts> {
        let read = || async { Ok(template_facts::read(self.cluster().await?).await?) };
        self.template_facts.get_or_try_init(read).await
    }

    /// What people say of the cluster beside that, in the namespace of an installation.
    ///
    /// # Errors
    /// A ConfigMap or Secret that cannot be read.
    pub async fn overlays(&self, namespace: &str) -> Result<Overlays> {
        let mut known = self.overlays.lock().await;
        if let Some(overlays) = known.get(namespace) {
            return Ok(overlays.clone());
        }
        let overlays = template_facts::overlays(self.cluster().await?, namespace).await?;
        known.insert(namespace.to_owned(), overlays.clone());
        Ok(overlays)
    }

    /// The helm that renders charts.
    ///
    /// # Errors
    /// There is none, or one that is too old.
    pub async fn helm(&self) -> Result<&Helm> {
        let find = || async {
            let path = std::env::var_os("PATH");
            Ok(Helm::find(self.global.helm_bin.as_deref(), path.as_deref()).await?)
        };
        self.helm.get_or_try_init(find).await
    }

    /// Everything that the cluster serves, as charts ask for it: asked anew, for a chart renders other objects where a kind is
    /// not served.
    ///
    /// # Errors
    /// Those of discovery.
    pub async fn api_versions(&self) -> Result<&[String]> {
        let read = || async {
            let cluster = self.cluster().await?;
            cluster.forget_kinds().await;
            let kinds = cluster.kinds(&BTreeSet::new()).await?;
            anyhow::Ok(kinds.api_versions())
        };
        Ok(self.api_versions.get_or_try_init(read).await?)
    }

    /// What a repeated key in a manifest means.
    pub fn duplicate_keys(&self) -> DuplicateKeys {
        if self.global.strict {
            DuplicateKeys::Error
        } else {
            DuplicateKeys::LastWins
        }
    }

    /// Who holds a lock of ours, as others will read it.
    pub fn holder(&self) -> String {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let user = variable("USER")
            .or_else(|| variable("LOGNAME"))
            .unwrap_or_else(|| "somebody".to_owned());
        let host = variable("HOSTNAME")
            .or_else(hostname)
            .unwrap_or_else(|| "unknown-host".to_owned());
        format!(
            "{user}@{host} ({}, pid {})",
            names::CLIENT,
            std::process::id()
        )
    }
}

fn hostname() -> Option<String> {
    let name = std::fs::read_to_string("/etc/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
