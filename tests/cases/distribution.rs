//! Catalogues that are brought up to date from where they came, and brought to other clusters (semantics 1).

mod looped;
mod mirrored;
mod private;
mod pushed;
mod referred;
mod synced;

use std::sync::Arc;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::own::Own;
use anyhow::Result;

/// A cluster of its own, which knows nothing of our definitions at first.
async fn other() -> Result<Arc<ControlPlane>> {
    static OTHER: Own = Own::new();
    OTHER
        .get(async || ControlPlane::start(Options::api_only()).await)
        .await
}
