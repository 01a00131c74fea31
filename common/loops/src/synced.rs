//! Catalogues that say where they come from are brought up to date from there (semantics 1).

use std::sync::Arc;
use std::time::Duration;

use addons_operation::distribution::sync::sync;
use addons_operation::{Context, OperationError};
use common::api::catalogue::AddonCatalogue;
use common::catalogue::is_copy;
use tokio::sync::watch;
use tokio::time::sleep;

/// What became of the catalogues that say where they come from.
#[derive(Debug, Default)]
pub struct Synced {
    /// Whether the add-ons of one changed.
    pub is_changed: bool,
    /// Why others could not be brought up to date.
    pub failed: Vec<OperationError>,
}

/// Brings all up to date at the interval, as the newest context that was sent knows them.
pub async fn keep(contexts: watch::Receiver<Arc<Context>>, interval: Duration) {
    loop {
        let ctx = contexts.borrow().clone();
        // What failed is a condition of its catalogue.
        once(&ctx, true).await;
        sleep(interval).await;
    }
}

/// Brings all up to date, one after the other. Where the caller may not read or write catalogues, others do that. `is_loop`: again
/// and again, not for a person.
pub async fn once(ctx: &Context, is_loop: bool) -> Synced {
    let mut synced = Synced::default();
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
