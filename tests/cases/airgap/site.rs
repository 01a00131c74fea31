//! The site: a registry behind a front that counts, and a user whose cache is empty.

use addons_tests::servers::registry::front::{Fault, Front, Seen};
use addons_tests::servers::registry::{Door, Registry};
use addons_tests::stage::Stage;
use anyhow::Result;

/// The registry of the site.
pub struct Site {
    pub registry: Registry,
    pub front: Front,
}

impl Site {
    pub async fn start() -> Result<Self> {
        Self::with(Door::Open, |_| None).await
    }

    /// One with this door, whose front does wrong what `faults` says.
    pub async fn with(
        door: Door<'_>,
        faults: impl Fn(&Seen) -> Option<Fault> + Send + Sync + 'static,
    ) -> Result<Self> {
        let registry = Registry::start(door).await?;
        let front = Front::start(Some(&registry), faults).await?;
        Ok(Self { registry, front })
    }

    /// What `--registry` names.
    pub fn path(&self) -> String {
        format!("{}/addons", self.front.host)
    }
}

/// The command that `import` printed, for a user who has fetched nothing before.
pub fn offline(stage: &Stage, install: &str) -> String {
    let command = install.strip_prefix("kubectl addons ").unwrap_or(install);
    let cache = stage.plugin.home().join("another-cache");
    format!("{command} --yes --cache-dir {}", cache.display())
}
