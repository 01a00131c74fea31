//! Distribution by a leader. Reconciling does not wait for it.

use addons_operation::Context;
use addons_operation::distribution::compatible;
use tokio::sync::mpsc::unbounded_channel;

use super::Turn;
use crate::distributed::{self, Distribution};

impl Turn {
    /// Begins the distribution that was asked for.
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
