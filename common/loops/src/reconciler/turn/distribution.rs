//! What a leader distributes, beside everything else: nothing of it is awaited by what is reconciled.

use addons_operation::Context;
use addons_operation::distribution::compatible;
use tokio::sync::mpsc::unbounded_channel;

use super::Turn;
use crate::distributed::{self, Distribution};

impl Turn {
    /// Begins to distribute what is asked for.
    pub(super) fn distribute(&mut self, asked: &Distribution) {
        let (outbox, news) = unbounded_channel();
        self.distributed = news;
        if let Some(selector) = asked.push_to.clone() {
            let push = async move |ctx: &Context| distributed::push(ctx, &selector).await;
            let push = distributed::keep(self.judged.subscribe(), outbox.clone(), push);
            self.watches.push(Box::pin(push));
        }
        if asked.store_compatible {
            let contexts = self.judged.subscribe();
            let store = distributed::keep(contexts, outbox, compatible::store);
            self.watches.push(Box::pin(store));
        }
    }
}
