//! One run of the program: its flags, and the context that operations run against.

use std::sync::Arc;
use std::time::Duration;

use addons_engine::Cluster;
use addons_operation::{Context, Event, Finding, Settings};
use addons_sources::platform;
use addons_sources::reach::{OpenedPlaces, UsedAccount};
use addons_versions::{kubernetes, tolerant};
use anyhow::{Context as _, Result};
use common::api::names;
use common::catalogue::Catalogue;
use common::catalogue::select::{self, ClusterFacts};
use futures::FutureExt as _;

use crate::cli::{Global, Rules};
use crate::display::Display;
use crate::fleet::turn::Turn;
use crate::settings;

/// One run of the program.
pub struct Session {
    global: Arc<Global>,
    ctx: Context,
    /// Shows what happens.
    pub display: Display,
    /// When this cluster of several may be changed.
    turn: Option<Turn>,
}

impl Session {
    /// Nothing is read yet.
    pub fn new(global: Global) -> Self {
        Self::within(global, None)
    }

    /// As [`Session::new`], for a command that is to end in time.
    pub fn within(global: Global, timeout: Option<Duration>) -> Self {
        let global = Arc::new(global);
        let display = Display::default();
        let shown = display.clone();
        let told = display.clone();
        let tell = move |used: &UsedAccount| told.show(&Event::Found(Finding::Uses(used.clone())));
        let places = [global.own_access.as_slice(), &global.named].concat();
        let settings = Settings {
            opened: Arc::new(OpenedPlaces::new(&places, &global.sets, tell)),
            ..given(&global, timeout)
        };
        let ctx = Context::connecting(connect(&global), settings)
            .on_event(move |event| shown.show(&event));
        Self {
            global,
            ctx,
            display,
            turn: None,
        }
    }

    /// The same in this namespace.
    pub fn of_namespace(&self, namespace: &str) -> Self {
        let mut global = Global::clone(&self.global);
        global.namespace = Some(namespace.to_owned());
        Self::new(global)
    }

    /// The same connection and flags, and nothing read yet: what changed in the cluster meanwhile is seen. It has no turn.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self {
            global: Arc::clone(&self.global),
            ctx: self.ctx.fresh(),
            display: self.display.clone(),
            turn: None,
        }
    }

    /// For a command that no one watches: kustomizations are not built, Secrets of others are read with the rights of an account, and
    /// packages are rendered in processes of their own.
    ///
    /// # Errors
    /// This program is not found.
    pub fn unattended(self) -> Result<Self> {
        let program = std::env::current_exe().context("this program is not found")?;
        Ok(Self {
            ctx: self.ctx.unattended(program),
            ..self
        })
    }

    /// The same as one cluster of several.
    #[must_use]
    pub fn taking(self, turn: Turn) -> Self {
        Self {
            turn: Some(turn),
            ..self
        }
    }

    /// Its turn, where this is one cluster of several that are changed.
    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// The flags that every command takes.
    pub fn global(&self) -> &Global {
        &self.global
    }

    /// What operations run against.
    pub fn ctx(&self) -> &Context {
        &self.ctx
    }

    /// The cluster of the kubeconfig; the first call reads that, no call asks the server.
    ///
    /// # Errors
    /// See [`settings::config`].
    pub async fn cluster(&self) -> Result<&Cluster> {
        Ok(self.ctx.cluster().await?)
    }

    /// The rules that choose between versions.
    pub fn rules(&self) -> select::Rules {
        self.ctx.settings().rules
    }

    /// What the entries of a catalogue must fit: the versions that were typed, and of the cluster those that were not. With a
    /// typed version of Kubernetes the cluster is not asked.
    ///
    /// # Errors
    /// An unreadable version; without a typed one, an unreachable server.
    pub async fn fit_for(
        &self,
        catalogue: &Catalogue,
        k8s: Option<&str>,
        kkp: Option<&str>,
    ) -> Result<ClusterFacts> {
        let mut facts = match k8s {
            Some(typed) => ClusterFacts {
                kubernetes: Some(
                    kubernetes::parse(typed).with_context(|| format!("--k8s {typed}"))?,
                ),
                kkp: None,
            },
            None if kkp.is_some() => self.ctx.version().await?,
            None => self.ctx.fit_for(catalogue.versions()).await?,
        };
        if let Some(typed) = kkp {
            facts.kkp = Some(tolerant::parse(typed).with_context(|| format!("--kkp {typed}"))?);
        }
        Ok(facts)
    }
}

/// Connects by kubeconfig and flags.
fn connect(global: &Arc<Global>) -> addons_operation::context::Connect {
    let global = Arc::clone(global);
    Box::new(move || {
        let global = Arc::clone(&global);
        async move {
            let config = settings::config(&global).await?;
            Ok(Cluster::new(config, settings::cluster_options(&global)).await?)
        }
        .boxed()
    })
}

/// Flags and environment, as operations take them.
fn given(global: &Global, timeout: Option<Duration>) -> Settings {
    Settings {
        system_namespace: global.system_namespace.clone(),
        namespace: global.namespace.clone(),
        rules: match global.rules {
            Rules::Auto => select::Rules::Auto,
            Rules::Documented => select::Rules::Documented,
            Rules::Channels => select::Rules::Channels,
        },
        strict: global.strict,
        offline: global.offline,
        cache: settings::cache_dir(global),
        helm: global.helm_bin.clone(),
        path: std::env::var_os("PATH"),
        kustomize: true,
        secret_data: true,
        jail: None,
        opened: Arc::default(),
        timeout,
        holder: holder(),
    }
}

/// Who holds a lock of ours, as other clients will read it.
fn holder() -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER")
        .or_else(|| variable("LOGNAME"))
        .or_else(|| variable("USERNAME"))
        .unwrap_or_else(|| "unknown-user".to_owned());
    let host = variable("HOSTNAME")
        .or_else(platform::host_name)
        .unwrap_or_else(|| "unknown-host".to_owned());
    format!(
        "{user}@{host} ({}, pid {})",
        names::CLIENT,
        std::process::id()
    )
}
