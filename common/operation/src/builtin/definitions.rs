//! The CustomResourceDefinitions of kubectl addons, from `deploy/base`. The first operation that writes installs them.

use std::time::Duration;

use addons_engine::crds::{self, CrdResult};
use addons_engine::{EngineError, local};
use common::manifest::key::ObjectKey;

use crate::builtin;
use crate::context::Context;
use crate::error::OperationError;
use crate::event::OperationEvent;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Installs the definitions for an operation that writes, and emits an event for every change.
///
/// # Errors
/// [`EngineError::NotInitialised`] if this is not `allowed`; those of [`install`].
pub async fn ensure(ctx: &Context, allowed: bool) -> Result<(), OperationError> {
    if !allowed {
        return Err(EngineError::NotInitialised.into());
    }
    for (definition, done) in install(ctx).await? {
        ctx.emit(OperationEvent::Defined { definition, done });
    }
    Ok(())
}

/// Installs or updates the definitions and the system namespace, but never replaces newer ones. Returns the result for each definition.
///
/// # Errors
/// The server refuses, or a definition is not served in time.
pub async fn install(ctx: &Context) -> Result<Vec<(ObjectKey, CrdResult)>, OperationError> {
    let cluster = ctx.home().await?;
    let installed = crds::install(cluster, &builtin::definitions()?, TIMEOUT).await?;
    local::ensure(cluster, &ctx.settings().system_namespace).await?;
    Ok(installed)
}
