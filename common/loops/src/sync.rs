//! Updates catalogues that say where they come from (semantics 1.4).

use std::sync::Arc;
use std::time::Duration;

use addons_distribution::sync::sync;
use addons_operation::{Context, OperationError};
use common::api::catalogue::AddonCatalogue;
use common::catalogue::is_copy;
use tokio::sync::watch;
use tokio::time::sleep;

/// The result of updating the catalogues.
#[derive(Debug, Default)]
pub struct SyncedCatalogues {
    /// Whether the add-ons of a catalogue changed.
    pub is_changed: bool,
    /// Why other catalogues could not be updated.
    pub failed: Vec<OperationError>,
}

/// Updates all catalogues at the interval, with the newest context.
pub async fn run(contexts: watch::Receiver<Arc<Context>>, interval: Duration) {
    loop {
        let ctx = contexts.borrow().clone();
        // Errors become conditions of the catalogues.
        sync_all(&ctx, true).await;
        sleep(interval).await;
    }
}

/// Updates all catalogues, one after the other. A caller that may not read or write catalogues leaves this to others. `is_loop`: whether
/// this happens repeatedly, and not for a person.
pub async fn sync_all(ctx: &Context, is_loop: bool) -> SyncedCatalogues {
    let mut synced = SyncedCatalogues::default();
    let Ok(Some(all)) = ctx.readable_catalogues().await else {
        return synced;
    };
    let sources = all.iter().filter(|it| !is_copy(&it.metadata));
    let is_followed = |it: &&AddonCatalogue| it.spec.from.is_some() || it.spec.unreadable.is_some();
    for catalogue in sources.filter(is_followed) {
        match sync(ctx, catalogue, is_loop).await {
            Ok(one) => synced.is_changed |= one.is_changed,
            Err(error) if error.is_forbidden() => {}
            Err(error) => synced.failed.push(error),
        }
    }
    synced
}
