//! Flags of the commands that work on many clusters.

use std::time::Duration;

use addons_clusters::fleet::{MaxUnavailable, RolloutSettings};
use clap::Args;

/// Which clusters, beside several contexts in `--context`.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArgs {
    /// Work on the clusters that namespaces with matching labels stand for
    #[arg(long, value_name = "SELECTOR")]
    pub clusters: Option<String>,
}

/// In which waves many clusters are changed.
#[derive(Args, Clone, Debug)]
pub struct WaveArgs {
    /// With several clusters: change this many first, and the others after these have stayed ready for --soak
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub canary: usize,
    /// With several clusters: change this many at a time, and wait until they are ready; default: all of them
    #[arg(long, value_name = "N|P%")]
    pub max_unavailable: Option<MaxUnavailable>,
    /// How long the clusters of --canary have to stay ready
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = super::bound, requires = "canary")]
    pub soak: Duration,
}

impl WaveArgs {
    /// Converts the flags for the rollout. `None` if neither flag is set.
    pub fn rollout(&self) -> Option<RolloutSettings> {
        let is_set = self.canary > 0 || self.max_unavailable.is_some();
        is_set.then_some(RolloutSettings {
            canaries: self.canary,
            max_unavailable: self.max_unavailable,
            soak: self.soak,
        })
    }
}
