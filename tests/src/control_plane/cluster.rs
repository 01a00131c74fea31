//! Starting a cluster, asking it for clients, ending it.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{Namespace, Node, ServiceAccount};
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

use super::audit::Audit;
use super::binaries::{self, Binaries};
use super::components::{Component, Layout, Ports, user};
use super::pki::{Authority, Pair, User};
use crate::guard::Folder;
use crate::kubelet::PRETENDED;
use crate::kubelet::pretended::Pretended;
use crate::times;

/// How long a start may take; it takes 4 s on 2 idle cores.
const DEADLINE: Duration = Duration::from_secs(120);
/// How often other ports are tried where somebody took one in between.
const ATTEMPTS: usize = 3;

/// What a test can ask for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// More flags of the API server, as `--emulated-version=1.34`; of two equal flags the last one counts.
    pub apiserver_flags: Vec<String>,
    /// Start etcd and the API server alone: no controller acts, and no Pod runs.
    pub api_only: bool,
}

impl Options {
    /// A cluster for tests in which no controller matters. It starts in half the time.
    #[must_use]
    pub fn api_only() -> Self {
        Self {
            api_only: true,
            ..Self::default()
        }
    }
}

/// A running cluster. Dropped, it is gone with its folder; so it is when this process ends in any way.
pub struct ControlPlane {
    // Ended in this order.
    nodes: Mutex<Vec<Pretended>>,
    components: Mutex<Vec<Component>>,
    authority: Authority,
    admin: User,
    server: String,
    audit: Audit,
    binaries: Binaries,
    folder: Folder,
}

/// A name that no other caller in this process gets: `main-job-1`.
#[must_use]
pub fn unique(what: &str) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("{what}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl ControlPlane {
    /// The cluster of this test binary: started by the first test that asks, ended with the process.
    ///
    /// # Errors
    /// Of [`ControlPlane::start`]; the same one for every test, for a second attempt would fail as slowly.
    pub async fn shared() -> Result<Arc<Self>> {
        static SHARED: OnceCell<Result<Arc<ControlPlane>, String>> = OnceCell::const_new();
        SHARED
            .get_or_init(|| async {
                let started = Self::start(Options::default()).await;
                started.map(Arc::new).map_err(|error| format!("{error:#}"))
            })
            .await
            .clone()
            .map_err(|error| anyhow!("{error}"))
    }

    /// Starts a cluster with one node; returns when Pods can run in it.
    ///
    /// # Errors
    /// Where a program is missing, ends, or is not ready in time: with the end of its log.
    pub async fn start(options: Options) -> Result<Self> {
        let binaries = tokio::task::spawn_blocking(binaries::locate).await??;
        let began = std::time::Instant::now();
        let mut attempt = 1;
        loop {
            match Self::attempt(&options, &binaries).await {
                Err(error)
                    if attempt < ATTEMPTS
                        && format!("{error:#}").contains("address already in use") =>
                {
                    attempt += 1;
                }
                result => {
                    times::cluster_started(began.elapsed());
                    return result;
                }
            }
        }
    }

    async fn attempt(options: &Options, binaries: &Binaries) -> Result<Self> {
        // The API server's clients and the proxy need one, whatever else is linked in.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let folder = Folder::new("kubectl-addons-cluster-")?;
        let authority = Authority::new("kubectl-addons-tests")?;
        let layout = Layout {
            binaries,
            folder: folder.path(),
            ports: Ports::free()?,
        };
        layout.write(&authority)?;
        let admin = layout.user(&authority, "admin", &["system:masters"])?;
        let server = layout.server();
        let audit = Audit::new(layout.audit_log());
        let deadline = Instant::now() + DEADLINE;

        let mut components = vec![layout.etcd()?, layout.apiserver(&options.apiserver_flags)?];
        ready(&server, &authority, &admin.pair, &mut components, deadline).await?;
        if !options.api_only {
            components.push(layout.controller_manager(&authority)?);
            components.push(layout.scheduler(&authority)?);
        }
        components.reverse();
        let cluster = Self {
            nodes: Mutex::default(),
            components: Mutex::new(components),
            authority,
            admin,
            server,
            audit,
            binaries: binaries.clone(),
            folder,
        };
        if !options.api_only {
            timeout_at(deadline, cluster.populate())
                .await
                .map_err(anyhow::Error::from)
                .and_then(|result| result)
                .with_context(|| cluster.logs())?;
        }
        Ok(cluster)
    }

    /// One node, and proof that the controllers work: Pods may be scheduled to it, and the default ServiceAccount is there.
    async fn populate(&self) -> Result<()> {
        self.add_node(PRETENDED).await?;
        let client = self.client().await?;
        let nodes = Api::<Node>::all(client.clone());
        seen(&nodes, |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
            taints.is_none_or(Vec::is_empty)
        })
        .await
        .context("waiting for the node to take Pods")?;
        seen(
            &Api::<ServiceAccount>::namespaced(client, "default"),
            |account: &ServiceAccount| account.metadata.name.as_deref() == Some("default"),
        )
        .await
        .context("waiting for the default ServiceAccount")
    }

    /// Adds a node like the one that every cluster with controllers has: its Pods become ready at once, and serve nothing.
    ///
    /// # Errors
    /// Of the API server.
    pub async fn add_node(&self, name: &str) -> Result<()> {
        let kubelet = self.user("kubelet", &["system:masters"])?;
        let node = Pretended::start(&kubelet.kubeconfig, self.folder(), name).await?;
        let nodes = self.nodes.lock();
        nodes.unwrap_or_else(PoisonError::into_inner).push(node);
        Ok(())
    }

    /// Ends the nodes that [`ControlPlane::add_node`] added after the first.
    pub(super) fn end_added_nodes(&self) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.truncate(1);
    }

    /// URL of the API server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The certificate authority of the cluster.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The administrator (system:masters).
    #[must_use]
    pub fn admin(&self) -> &User {
        &self.admin
    }

    /// The administrator's kubeconfig.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.admin.kubeconfig
    }

    /// Somebody with a client certificate of the cluster's authority; what they may do is up to RBAC.
    ///
    /// # Errors
    /// Of [`Authority::client`].
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<User> {
        user(
            &self.authority,
            self.folder.path(),
            &self.server,
            name,
            groups,
        )
    }

    /// A client of the administrator, bound to the caller's runtime.
    ///
    /// # Errors
    /// Of the kubeconfig.
    pub async fn client(&self) -> Result<Client> {
        client(self.kubeconfig()).await
    }

    /// The requests that the API server saw.
    #[must_use]
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The programs.
    #[must_use]
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Where logs, certificates and kubeconfigs lie.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a namespace with a unique name.
    ///
    /// # Errors
    /// Of the API server.
    pub async fn namespace(&self, what: &str) -> Result<String> {
        let name = unique(what);
        let namespace: Namespace = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        }))?;
        Api::<Namespace>::all(self.client().await?)
            .create(&PostParams::default(), &namespace)
            .await?;
        Ok(name)
    }

    /// The end of every component's log, and the last error of every node.
    #[must_use]
    pub fn logs(&self) -> String {
        let components = self
            .components
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let tails = components.iter().map(Component::tail);
        let tails: Vec<_> = tails.chain(nodes.iter().map(Pretended::tail)).collect();
        tails.join("\n")
    }
}

/// A client of the kubeconfig's user, bound to the caller's runtime.
///
/// # Errors
/// Of the kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

/// How a client of the kubeconfig's user reaches the cluster.
///
/// # Errors
/// Of the kubeconfig.
pub async fn config(kubeconfig: &Path) -> Result<Config> {
    let text = fs::read_to_string(kubeconfig).with_context(|| kubeconfig.display().to_string())?;
    let kubeconfig = Kubeconfig::from_yaml(&text)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

/// Asks `/readyz` until it says ok.
async fn ready(
    server: &str,
    authority: &Authority,
    admin: &Pair,
    components: &mut [Component],
    deadline: Instant,
) -> Result<()> {
    let roots = reqwest::Certificate::from_pem(authority.certificate.as_bytes())?;
    let client = reqwest::Client::builder()
        .tls_certs_only([roots])
        .identity(reqwest::Identity::from_pem(
            format!("{}{}", admin.certificate, admin.key).as_bytes(),
        )?)
        .no_proxy()
        .timeout(Duration::from_secs(5))
        .build()?;
    let mut tick = interval(Duration::from_millis(50));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        for component in &mut *components {
            component.check()?;
        }
        let last = match client.get(format!("{server}/readyz")).send().await {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        if Instant::now() > deadline {
            let tails: Vec<_> = components
                .iter()
                .map(|component| component.tail())
                .collect();
            bail!(
                "the API server is not ready after {} s: {last}\n{}",
                DEADLINE.as_secs(),
                tails.join("\n")
            );
        }
    }
}

/// Waits until one object of the kind is as asked for.
async fn seen<K>(api: &Api<K>, wanted: impl Fn(&K) -> bool) -> Result<()>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    // From version 0 a watch begins with all that is there.
    let mut events = api.watch(&WatchParams::default(), "0").await?.boxed();
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
            && wanted(&object)
        {
            return Ok(());
        }
    }
    bail!("the watch ended")
}
