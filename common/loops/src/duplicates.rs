//! Catalogues that were created at the same time: the one that has to give way says so in its status (semantics 2).

use std::sync::Arc;
use std::time::Duration;

use addons_admission::rules::catalogue::lost_to_others;
use addons_admission::{Facts, Settings};
use addons_engine::catalogues;
use addons_operation::{Context, OperationError};
use common::api::catalogue::AddonCatalogue;
use common::api::conditions::bounded;
use common::catalogue::unread::Unread;
use tokio::sync::watch;
use tokio::time::sleep;

/// Entries that a condition names; the rest is counted.
const MAX_NAMED: usize = 5;

/// Until it is tried again where that failed.
const AGAIN: Duration = Duration::from_secs(5);

/// Marks whenever the catalogues may have changed, from the newest that is sent, one time after the other.
pub async fn keep(mut contexts: watch::Receiver<Arc<Context>>) {
    while contexts.changed().await.is_ok() {
        loop {
            let ctx = contexts.borrow_and_update().clone();
            if mark(&ctx).await.is_ok() {
                break;
            }
            sleep(AGAIN).await;
        }
    }
}

/// Marks each source catalogue of which others hold entries, and takes the mark from those of which they no longer do; where a file that
/// decides it cannot be read, a mark stays. Where the caller may not read catalogues or write their status, none is marked: no record
/// depends on it.
///
/// # Errors
/// The server cannot be reached, or refuses for another reason.
pub async fn mark(ctx: &Context) -> Result<(), OperationError> {
    let Some(all) = ctx.readable_catalogues().await? else {
        return Ok(());
    };
    // Those by reference with the content of their files: the objects list names alone.
    let contents = ctx.contents().await?;
    let facts = Facts {
        catalogues: contents
            .objects
            .iter()
            .map(|catalogue| Arc::new(catalogue.clone().into()))
            .collect(),
        settings: Settings {
            system_namespace: ctx.settings().system_namespace.clone(),
            ..Settings::default()
        },
        ..Facts::default()
    };
    let cluster = ctx.home().await?;
    for (catalogue, content) in all.iter().zip(contents.objects) {
        let lost = lost_to_others(content, &facts);
        if lost.is_empty() && is_open(content, contents.unread) {
            continue;
        }
        let more = match lost.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let named = lost.iter().take(MAX_NAMED).map(ToString::to_string);
        let named = named.collect::<Vec<_>>().join("; ");
        let message = (!lost.is_empty()).then(|| bounded(format!("{named}{more}")));
        let marked = catalogues::mark(cluster, catalogue, message.as_deref()).await;
        match marked.map_err(OperationError::from) {
            Err(error) if error.is_forbidden() => return Ok(()),
            other => other?,
        };
    }
    Ok(())
}

/// Whether it is not known what a catalogue lost: its file, or that of one that keeps what both list, cannot be read now.
fn is_open(catalogue: &AddonCatalogue, unread: &[Unread]) -> bool {
    let name = catalogue.metadata.name.as_deref().unwrap_or_default();
    unread.iter().any(|unread| {
        let mut addons = catalogue.spec.addons.iter();
        let is_shared = addons.any(|addon| unread.addons.contains(&addon.name));
        unread.catalogue == name || (unread.takes_from(name) && is_shared)
    })
}
