//! Our CustomResourceDefinitions, as `deploy/crds` has them; `init` and the first writing command install them.

use std::time::Duration;

use addons_engine::{EngineError, crds, namespace};
use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::output;
use crate::session::Session;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The files that `kubectl apply -k deploy/base` applies as well.
const FILES: [&str; 2] = [
    include_str!("../../deploy/crds/addoncatalogues.kubectl-addons.dev.yaml"),
    include_str!("../../deploy/crds/addoninstallations.kubectl-addons.dev.yaml"),
];

/// How a writing command meets a cluster without our definitions.
#[derive(Clone, Copy, Debug)]
pub struct Init {
    /// `--no-init`.
    pub forbidden: bool,
}

/// Installs the definitions because a writing command needs them, and says so (semantics 17).
///
/// # Errors
/// `--no-init`; what the server refuses.
pub async fn initialise(session: &Session, init: Init) -> Result<()> {
    if init.forbidden {
        return Err(EngineError::NotInitialised.into());
    }
    for line in install(session).await? {
        output::note(&line);
    }
    Ok(())
}

/// Installs or updates the definitions and the system namespace, never over newer ones. Returns a line for each.
///
/// # Errors
/// What the server refuses; a definition that is not served in time.
pub async fn install(session: &Session) -> Result<Vec<String>> {
    let definitions: Result<Vec<Value>, _> = FILES
        .iter()
        .map(|text| serde_saphyr::from_str(text))
        .collect();
    let definitions = definitions.context("the built-in definitions cannot be read")?;
    let cluster = session.cluster().await?;
    let mut lines = Vec::new();
    for (key, done) in crds::install(cluster, &definitions, TIMEOUT).await? {
        lines.push(match done {
            crds::Installed::Created => format!("{key} created"),
            crds::Installed::Updated => format!("{key} updated"),
            crds::Installed::Unchanged => format!("{key} unchanged"),
            crds::Installed::Newer { version } => {
                format!("{key} is of the newer version {version} and stays")
            }
        });
    }
    namespace::ensure(cluster, &session.global().system_namespace).await?;
    Ok(lines)
}
