//! Catalogues that are brought up to date from where they came, and brought to other clusters (semantics 1).

mod looped;
mod mirrored;
mod private;
mod pushed;
mod referred;
mod synced;

use std::sync::Arc;

use addons_tests::control_plane::{ControlPlane, Own};
use anyhow::Result;

/// A cluster of its own, which knows nothing of our definitions at first.
async fn other() -> Result<Arc<ControlPlane>> {
    static OTHER: Own = Own::api_only();
    OTHER.get().await
}
