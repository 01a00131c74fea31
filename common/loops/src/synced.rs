//! Catalogues that say where they come from are brought up to date from there (semantics 1).

use std::sync::Arc;
use std::time::Duration;

use addons_operation::Context;
use addons_operation::distribution::sync::sync;
use tokio::sync::watch;
use tokio::time::sleep;

/// Brings all up to date, one after the other, at the interval, as the newest context that was sent knows them. What fails is a
/// condition of its catalogue, and is tried again at the next interval.
pub async fn keep(contexts: watch::Receiver<Arc<Context>>, interval: Duration) {
    loop {
        let ctx = contexts.borrow().clone();
        // Where the caller may not read catalogues, no record depends on them.
        if let Ok(Some(all)) = ctx.readable_catalogues().await {
            for catalogue in all.iter().filter(|it| it.spec.from.is_some()) {
                let _ = sync(&ctx, catalogue).await;
            }
        }
        sleep(interval).await;
    }
}
