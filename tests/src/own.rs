//! Clusters that the tests of one module share.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::{Result, anyhow};

use crate::control_plane::ControlPlane;

/// How many of them go on when no test uses them: two at most are asked for by turns.
const KEPT: usize = 2;

/// A cluster that the tests of one module share. The first that asks starts it. It ends when the tests of other modules have
/// asked for theirs: a control plane that does nothing still takes 4 % of a core, and a run starts dozens of them.
pub struct Own(tokio::sync::Mutex<Result<Weak<ControlPlane>, String>>);

impl Own {
    /// One that nobody asked for yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(tokio::sync::Mutex::const_new(Ok(Weak::new())))
    }

    /// The cluster, which `start` starts where it does not run.
    ///
    /// # Errors
    /// Of `start`; the same one from then on, for a second attempt would fail as slowly.
    pub async fn get(
        &self,
        start: impl AsyncFnOnce() -> Result<ControlPlane>,
    ) -> Result<Arc<ControlPlane>> {
        let mut known = self.0.lock().await;
        let running = known.as_ref().map_err(|error| anyhow!("{error}"))?;
        let cluster = match running.upgrade() {
            Some(cluster) => cluster,
            None => match start().await {
                Ok(started) => Arc::new(started),
                Err(error) => {
                    *known = Err(format!("{error:#}"));
                    return Err(error);
                }
            },
        };
        *known = Ok(Arc::downgrade(&cluster));
        keep(&cluster);
        Ok(cluster)
    }
}

impl Default for Own {
    fn default() -> Self {
        Self::new()
    }
}

/// Lets the cluster go on, and the one that was asked for the longest time ago end with its last test.
fn keep(cluster: &Arc<ControlPlane>) {
    static RECENT: Mutex<Vec<Arc<ControlPlane>>> = Mutex::new(Vec::new());
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let left = remember(&mut recent, cluster);
    // Ending takes a moment, in which others may ask.
    drop(recent);
    drop(left);
}

/// Puts it first, and returns those for which there is no place any more.
fn remember<T>(recent: &mut Vec<Arc<T>>, newest: &Arc<T>) -> Vec<Arc<T>> {
    recent.retain(|other| !Arc::ptr_eq(other, newest));
    recent.insert(0, Arc::clone(newest));
    let kept = recent.len().min(KEPT);
    recent.split_off(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_is_let_go() {
        let (one, two, three) = (Arc::new(1), Arc::new(2), Arc::new(3));
        let mut recent = Vec::new();
        assert_eq!(remember(&mut recent, &one), []);
        assert_eq!(remember(&mut recent, &two), []);
        assert_eq!(remember(&mut recent, &one), []);
        assert_eq!(remember(&mut recent, &three), [two]);
        assert_eq!(recent, [three, one]);
    }
}
