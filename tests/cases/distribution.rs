//! Catalogues that are brought up to date from where they came, and brought to other clusters (semantics 1).

mod looped;
mod mirrored;
mod private;
mod pushed;
mod referred;
mod synced;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::stage::Own;
use anyhow::{Result, anyhow};

/// A cluster of its own, which knows nothing of our definitions at first.
async fn other() -> Result<&'static ControlPlane> {
    static OTHER: Own = Own::const_new();
    let start = async || {
        let started = ControlPlane::start(Options::default()).await;
        started.map_err(|error| format!("{error:#}"))
    };
    let other = OTHER.get_or_init(start).await;
    other.as_ref().map_err(|error| anyhow!("{error}"))
}
