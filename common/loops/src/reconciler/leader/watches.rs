//! The tasks that run beside reconciling, as long as this process leads.

use std::sync::Arc;

use addons_distribution::compatible;
use addons_engine::changes;
use addons_operation::Context;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::Instant;

use super::signals::{ObjectGroupKind, Signal, watch_signal};
use super::{LeaderState, send_signal};
use crate::distribution::{self, Distribution};
use crate::installation::ReconcileOptions;
use crate::metrics::OBJECTS;
use crate::{core_set, duplicates, sync};

impl LeaderState {
    /// Begins all tasks, or begins them again. Each watch lists first, so everything that changed meanwhile is checked.
    pub(in crate::reconciler) fn watch_all(
        &mut self,
        how: &ReconcileOptions,
        distribution: &Distribution,
    ) {
        self.unwatch();
        self.refresh_context(Instant::now());
        self.catalogue_contexts.send_replace(Arc::clone(&self.ctx));
        let catalogues = self.catalogue_contexts.subscribe();
        self.watches.push(Box::pin(duplicates::run(catalogues)));
        let catalogues = self.catalogue_contexts.subscribe();
        let sync = sync::run(catalogues, self.interval);
        self.watches.push(Box::pin(sync));
        let (reporter, reports) = unbounded_channel();
        self.core_reports = reports;
        let core = core_set::run(self.core_contexts.subscribe(), how.clone(), reporter);
        self.watches.push(Box::pin(core));
        let (ctx, outbox) = self.future_handles();
        self.watches.push(Box::pin(async move {
            if let Ok(home) = ctx.home().await {
                let system = &ctx.settings().system_namespace;
                changes::watch_core_lists(home, system, |report| {
                    let what = "ConfigMaps of core sets";
                    let signal = watch_signal("configmaps", what, report, |_| Signal::Core);
                    send_signal(&outbox, signal);
                })
                .await;
            }
        }));
        let (ctx, outbox) = self.future_handles();
        self.watches.push(Box::pin(async move {
            if let Ok(home) = ctx.home().await {
                changes::watch_installations(home, None, |report| {
                    let resource = "addoninstallations";
                    let signal = watch_signal(resource, resource, report, Signal::Records);
                    send_signal(&outbox, signal);
                })
                .await;
            }
        }));
        let (ctx, outbox) = self.future_handles();
        self.watches.push(Box::pin(async move {
            if let Ok(home) = ctx.home().await {
                let system = &ctx.settings().system_namespace;
                changes::watch_catalogues(home, system, |report| {
                    let resource = "addoncatalogues";
                    let signal = watch_signal(resource, resource, report, Signal::Catalogues);
                    send_signal(&outbox, signal);
                })
                .await;
            }
        }));
        for kind in &self.watched {
            self.watch_kind(kind.clone());
        }
        if self.remotes.has_begun() {
            self.watch_secrets();
        }
        self.distribute(distribution);
    }

    /// Ends all tasks. Tasks that are no longer polled would keep permits for requests, and locks of what was read, for which
    /// installations that are still being reconciled wait.
    pub(in crate::reconciler) fn unwatch(&mut self) {
        self.watches = FuturesUnordered::new();
    }

    /// Watches the objects of a kind.
    pub(super) fn watch_kind(&self, kind: ObjectGroupKind) {
        let (ctx, outbox) = self.future_handles();
        let (watcher, account) = (Arc::clone(&self.watcher), self.account.clone());
        self.watches.push(Box::pin(async move {
            let connect = || async {
                let system = &ctx.settings().system_namespace;
                match &account {
                    Some(account) => ctx.acting_as(system, account).await,
                    None => Ok(ctx.fresh()),
                }
            };
            // If this fails, every installation fails for the same reason and reports it.
            if let Ok(watcher) = watcher.get_or_try_init(connect).await
                && let Ok(cluster) = watcher.cluster().await
            {
                let what = format!("objects of kind {}", kind.1);
                let see = |report| {
                    let to_signal = |change| Signal::Objects(kind.clone(), change);
                    send_signal(&outbox, watch_signal(OBJECTS, &what, report, to_signal));
                };
                changes::watch_owned(cluster, &kind.0, &kind.1, see).await;
            }
        }));
    }

    /// Watches Secrets, which may be kubeconfigs of other clusters.
    pub(super) fn watch_secrets(&self) {
        let (ctx, outbox) = self.future_handles();
        self.watches.push(Box::pin(async move {
            if let Ok(home) = ctx.home().await {
                let namespace = ctx.settings().namespace.as_deref();
                let see = |report| {
                    let signal = watch_signal("secrets", "Secrets", report, Signal::Secrets);
                    send_signal(&outbox, signal);
                };
                changes::watch_secrets(home, namespace, see).await;
            }
        }));
    }

    /// Begins the distribution of catalogues that was asked for. Reconciling does not wait for it.
    fn distribute(&mut self, asked: &Distribution) {
        let (outbox, news) = unbounded_channel();
        self.distributed = news;
        if let Some(selector) = asked.push_to.clone() {
            let push = async move |ctx: &Context| distribution::push(ctx, &selector).await;
            let push = distribution::run(self.catalogue_contexts.subscribe(), outbox.clone(), push);
            self.watches.push(Box::pin(push));
        }
        if asked.store_compatible {
            let contexts = self.catalogue_contexts.subscribe();
            let store = distribution::run(contexts, outbox, compatible::store);
            self.watches.push(Box::pin(store));
        }
    }
}
