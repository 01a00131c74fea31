//! Distribution by a leader. Reconciling does not wait for it.

use addons_distribution::compatible;
use addons_operation::Context;
use tokio::sync::mpsc::unbounded_channel;

use super::LeaderState;
use crate::distributed::{self, Distribution};

impl LeaderState {
    /// Begins the distribution that was asked for.
    pub(super) fn distribute(&mut self, asked: &Distribution) {
        let (outbox, news) = unbounded_channel();
        self.distributed = news;
        if let Some(selector) = asked.push_to.clone() {
            let push = async move |ctx: &Context| distributed::push(ctx, &selector).await;
            let push = distributed::run(self.catalogue_contexts.subscribe(), outbox.clone(), push);
            self.watches.push(Box::pin(push));
        }
        if asked.store_compatible {
            let contexts = self.catalogue_contexts.subscribe();
            let store = distributed::run(contexts, outbox, compatible::store);
            self.watches.push(Box::pin(store));
        }
    }
}
