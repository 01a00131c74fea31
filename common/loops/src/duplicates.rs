//! Marks catalogues that were created at the same time as another one and have to give way to it (semantics 2.4).

use std::sync::Arc;
use std::time::Duration;

use addons_admission::rules::catalogue::lost_to_others;
use addons_admission::{AdmissionFacts, AdmissionSettings};
use addons_engine::catalogues;
use addons_operation::{Context, OperationError};
use common::api::catalogue::AddonCatalogue;
use common::api::conditions::shorten_message;
use common::catalogue::precedence::UnreadCatalogue;
use tokio::sync::watch;
use tokio::time::sleep;

/// The most entries that a condition names. The rest is counted.
const MAX_NAMED: usize = 5;

/// The pause after a failure.
const AGAIN: Duration = Duration::from_secs(5);

/// Marks catalogues whenever they may have changed, with the newest context, one run after the other.
pub async fn run(mut contexts: watch::Receiver<Arc<Context>>) {
    while contexts.changed().await.is_ok() {
        loop {
            let ctx = contexts.borrow_and_update().clone();
            if update_conditions(&ctx).await.is_ok() {
                break;
            }
            sleep(AGAIN).await;
        }
    }
}

/// Sets the condition `Duplicate` on each source catalogue that lost entries to others, and clears it on those that did not. While a file
/// that decides this cannot be read, the condition stays unchanged. If the caller may not read catalogues or write their status, none is
/// marked, because no record depends on it.
///
/// # Errors
/// The server cannot be reached, or refuses for another reason.
pub async fn update_conditions(ctx: &Context) -> Result<(), OperationError> {
    let Some(all) = ctx.readable_catalogues().await? else {
        return Ok(());
    };
    // Catalogues by reference get the content of their files, because their objects list only names.
    let contents = ctx.contents().await?;
    let facts = AdmissionFacts {
        catalogues: contents
            .objects
            .iter()
            .map(|catalogue| Arc::new(catalogue.clone().into()))
            .collect(),
        settings: AdmissionSettings {
            system_namespace: ctx.settings().system_namespace.clone(),
            ..AdmissionSettings::default()
        },
        ..AdmissionFacts::default()
    };
    let cluster = ctx.home().await?;
    for (catalogue, content) in all.iter().zip(contents.objects) {
        let lost = lost_to_others(content, &facts);
        if lost.is_empty() && is_undecided(content, contents.unread) {
            continue;
        }
        let more = match lost.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let named = lost.iter().take(MAX_NAMED).map(ToString::to_string);
        let named = named.collect::<Vec<_>>().join("; ");
        let message = (!lost.is_empty()).then(|| shorten_message(format!("{named}{more}")));
        let marked = catalogues::record_duplicates(cluster, catalogue, message.as_deref()).await;
        match marked.map_err(OperationError::from) {
            Err(error) if error.is_forbidden() => return Ok(()),
            other => other?,
        };
    }
    Ok(())
}

/// Returns whether it is unknown what a catalogue lost: its file, or that of a catalogue that would keep the shared entries, cannot be
/// read now.
fn is_undecided(catalogue: &AddonCatalogue, unread: &[UnreadCatalogue]) -> bool {
    let name = catalogue.metadata.name.as_deref().unwrap_or_default();
    unread.iter().any(|unread| {
        let mut addons = catalogue.spec.addons.iter();
        let is_shared = addons.any(|addon| unread.addons.contains(&addon.name));
        unread.catalogue == name || (unread.takes_from(name) && is_shared)
    })
}
