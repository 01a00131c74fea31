//! A run of the program: its flags, and the context of operations.

use std::sync::Arc;
use std::time::Duration;

use addons_engine::Cluster;
use addons_operation::adopt::records::FormerOwners;
use addons_operation::kops::Kops;
use addons_operation::tools::OtherTool;
use addons_operation::{Context, ContextSettings, Finding, OperationEvent};
use addons_sources::platform;
use addons_sources::reach::{OpenedPlaces, UsedAccount};
use addons_versions::tolerant;
use anyhow::{Context as _, Result};
use common::api::names;
use common::catalogue::Catalogue;
use common::catalogue::select::{self, ClusterVersions};
use futures::FutureExt as _;

use crate::cli::{GlobalArgs, RuleChoice};
use crate::display::Display;
use crate::settings;
use crate::turn::Turn;

/// A run of the program.
pub struct Session {
    global: Arc<GlobalArgs>,
    ctx: Context,
    /// Shows events.
    pub display: Display,
    /// Decides when this cluster may be changed, if it is one of several.
    turn: Option<Turn>,
}

impl Session {
    /// Creates a session that has read nothing yet.
    pub fn new(global: GlobalArgs) -> Self {
        Self::with_timeout(global, None)
    }

    /// Creates a session for a command with a timeout.
    pub fn with_timeout(global: GlobalArgs, timeout: Option<Duration>) -> Self {
        let global = Arc::new(global);
        let display = Display::default();
        let shown = display.clone();
        let told = display.clone();
        let tell = move |used: &UsedAccount| {
            told.show(&OperationEvent::Finding(Finding::Uses(used.clone())))
        };
        let places = [global.own_access.as_slice(), &global.named].concat();
        let settings = ContextSettings {
            opened: Arc::new(OpenedPlaces::new(&places, &global.sets, tell)),
            ..parse_settings(&global, timeout)
        };
        let ctx = Context::connecting(connect_from_flags(&global), settings)
            .on_event(move |event| shown.show(&event));
        Self {
            global,
            ctx,
            display,
            turn: None,
        }
    }

    /// Creates a session with the same flags for another namespace.
    pub fn for_namespace(&self, namespace: &str) -> Self {
        let mut global = GlobalArgs::clone(&self.global);
        global.namespace = Some(namespace.to_owned());
        Self::new(global)
    }

    /// Returns a session with the same connection and flags that reads everything again. It has no turn.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self {
            global: Arc::clone(&self.global),
            ctx: self.ctx.fresh(),
            display: self.display.clone(),
            turn: None,
        }
    }

    /// Configures the session for a command without a user: it builds no kustomizations, reads Secrets of others with the permissions of an
    /// account, and renders packages in separate processes.
    ///
    /// # Errors
    /// The path of this program is unknown.
    pub fn unattended(self) -> Result<Self> {
        let program = std::env::current_exe().context("this program is not found")?;
        Ok(Self {
            ctx: self.ctx.unattended(program),
            ..self
        })
    }

    /// Sets the turn of a command that runs beside others.
    #[must_use]
    pub fn with_turn(self, turn: Turn) -> Self {
        Self {
            turn: Some(turn),
            ..self
        }
    }

    /// The turn, if the command runs beside others.
    pub fn turn(&self) -> Option<&Turn> {
        self.turn.as_ref()
    }

    /// The flags that every command takes.
    pub fn global(&self) -> &GlobalArgs {
        &self.global
    }

    /// The context of operations.
    pub fn ctx(&self) -> &Context {
        &self.ctx
    }

    /// Returns the cluster of the kubeconfig. The first call reads the kubeconfig; no call sends a request.
    ///
    /// # Errors
    /// See [`settings::client_config`].
    pub async fn cluster(&self) -> Result<&Cluster> {
        Ok(self.ctx.cluster().await?)
    }

    /// The rules by which versions are chosen.
    pub fn rules(&self) -> select::SelectionRules {
        self.ctx.settings().rules
    }

    /// Returns the facts that the entries of a catalogue must fit: the typed versions, and others from the cluster. With a typed version of
    /// Kubernetes, the cluster is not asked.
    ///
    /// A typed version is not valid, or the server cannot be reached.
    pub async fn fit_for(
        &self,
        catalogue: &Catalogue,
        k8s: Option<&str>,
        kkp: Option<&str>,
    ) -> Result<ClusterVersions> {
        let mut facts = match k8s {
            Some(typed) => ClusterVersions {
                kubernetes: Some(
                    tolerant::parse_kubernetes(typed).with_context(|| format!("--k8s {typed}"))?,
                ),
                kkp: None,
                profile: None,
            },
            None if kkp.is_some() => self.ctx.cluster_facts().await?,
            None => self.ctx.cluster_facts_for(catalogue.versions()).await?,
        };
        if let Some(typed) = kkp {
            facts.kkp = Some(tolerant::parse(typed).with_context(|| format!("--kkp {typed}"))?);
        }
        Ok(facts)
    }
}

/// Returns a function that connects by kubeconfig and flags.
fn connect_from_flags(global: &Arc<GlobalArgs>) -> addons_operation::context::Connect {
    let global = Arc::clone(global);
    Box::new(move || {
        let global = Arc::clone(&global);
        async move {
            let config = settings::client_config(&global).await?;
            Ok(Cluster::new(config, settings::cluster_options(&global)).await?)
        }
        .boxed()
    })
}

/// The other tools with which add-ons are shared.
const TOOLS: &[&dyn OtherTool] = &[&Kops, &FormerOwners];

/// Converts flags and environment for operations.
fn parse_settings(global: &GlobalArgs, timeout: Option<Duration>) -> ContextSettings {
    ContextSettings {
        system_namespace: global.system_namespace.clone(),
        namespace: global.namespace.clone(),
        rules: match global.rules {
            RuleChoice::Auto => select::SelectionRules::Auto,
            RuleChoice::Documented => select::SelectionRules::Documented,
            RuleChoice::Channels => select::SelectionRules::Channels,
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
        holder: lock_holder(),
        tools: TOOLS,
    }
}

/// Returns the name of this process as the holder of locks, as other clients see it.
fn lock_holder() -> String {
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
