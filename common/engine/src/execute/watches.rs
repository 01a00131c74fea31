//! Watches of objects that others wait for until they are served or ready.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use addons_plan::graph::NodeId;
use addons_plan::readiness::Readiness;
use common::manifest::key::ObjectKey;

use super::super::cluster::Cluster;
use super::super::event::Event;
use super::super::served::{self, Definition};
use super::super::wait::{self, WaitTarget};

/// How long an applied object waits for others to share a watch with. The limit keeps thousands of requests of another add-on, or a webhook
/// that does not answer, from delaying it.
const LONGEST_DELAY: Duration = Duration::from_millis(200);

/// Objects that were not ready when a watch ended.
pub(super) type Pending = Vec<(ObjectKey, Readiness)>;

/// What a watch waits for.
pub(super) enum WatchResult {
    /// Until discovery lists every served version of this CRD.
    Definition(Definition),
    /// Until this object is ready.
    Object(WaitTarget),
}

pub(super) struct Watches<'a> {
    cluster: &'a Cluster,
    deadline: Instant,
    /// Applied objects that the next watch will contain.
    waiting: Vec<(NodeId, WatchResult)>,
    /// When to open the next watch although more objects may follow.
    begin_at: Option<Instant>,
    nodes: BTreeMap<ObjectKey, NodeId>,
    seen: UnboundedSender<(ObjectKey, Readiness)>,
    /// What the watches report.
    pub(super) seeing: UnboundedReceiver<(ObjectKey, Readiness)>,
    /// The open watches. Each ends when all its objects are ready or failed, or at the deadline.
    pub(super) open: FuturesUnordered<BoxFuture<'a, Pending>>,
}

impl<'a> Watches<'a> {
    pub(super) fn new(cluster: &'a Cluster, deadline: Instant) -> Self {
        let (seen, seeing) = mpsc::unbounded_channel();
        Self {
            cluster,
            deadline,
            waiting: Vec::new(),
            begin_at: None,
            nodes: BTreeMap::new(),
            seen,
            seeing,
            open: FuturesUnordered::new(),
        }
    }

    /// Adds an object to the watch that the next [`Watches::begin`] opens.
    pub(super) fn add(&mut self, node: NodeId, watched: WatchResult) {
        self.begin_at
            .get_or_insert_with(|| Instant::now() + LONGEST_DELAY);
        self.waiting.push((node, watched));
    }

    /// Returns when to open a watch although requests are in flight; `None` if no object waits for one.
    pub(super) fn begin_at(&self) -> Option<Instant> {
        self.begin_at
    }

    /// Opens watches for the objects that were added since the last call.
    pub(super) fn begin(&mut self) {
        self.begin_at = None;
        let (mut definitions, mut targets) = (Vec::new(), Vec::new());
        for (node, watched) in std::mem::take(&mut self.waiting) {
            let key = match watched {
                WatchResult::Definition(definition) => {
                    definitions.push(definition.clone());
                    definition.key
                }
                WatchResult::Object(waited) => {
                    targets.push(waited.clone());
                    waited.target.key
                }
            };
            self.nodes.insert(key, node);
        }
        let (cluster, deadline) = (self.cluster, self.deadline);
        if !definitions.is_empty() {
            let seen = self.seen.clone();
            self.open.push(Box::pin(async move {
                // The cached kinds are out of date now.
                cluster.forget_kinds().await;
                let report = move |key: &ObjectKey, readiness: &Readiness| {
                    let _ = seen.send((key.clone(), readiness.clone()));
                };
                served::wait(cluster, definitions, deadline, &report).await
            }));
        }
        if !targets.is_empty() {
            let seen = self.seen.clone();
            self.open.push(Box::pin(async move {
                let report = move |event| {
                    if let Event::Waiting { key, readiness } = event {
                        let _ = seen.send((key, readiness));
                    }
                };
                wait::wait(cluster, &targets, deadline, &report).await
            }));
        }
    }

    /// Returns the node of an object while it is watched.
    pub(super) fn node(&self, key: &ObjectKey) -> Option<NodeId> {
        self.nodes.get(key).copied()
    }

    /// Stops watching an object. Returns its node if it was watched.
    pub(super) fn end(&mut self, key: &ObjectKey) -> Option<NodeId> {
        self.nodes.remove(key)
    }

    /// Stops watching a node, also if its watch has not begun.
    pub(super) fn give_up(&mut self, node: NodeId) {
        self.nodes.retain(|_, watched| *watched != node);
        self.waiting.retain(|(waiting, _)| *waiting != node);
    }

    /// Returns the nodes of objects that are being watched.
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.values().copied()
    }
}
