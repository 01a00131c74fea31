//! Reads all records independently of the rest, so that the locks of operations in progress are renewed however long that takes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use addons_operation::{OperationError, Records, name_of};
use tokio::time::Instant;

use super::LeaderState;
use crate::cause::ReconcileCause;
use crate::tracked::{TrackedInstallation, is_due};

/// The pause after a failed read.
const AGAIN: Duration = Duration::from_secs(5);

/// The result of a read of all records.
pub(in crate::reconciler) struct Reading {
    begun: Instant,
    /// Whether changes may have been missed before.
    is_missed: bool,
    records: Result<Records, OperationError>,
}

impl LeaderState {
    /// Begins to read all records, if that is due.
    pub(in crate::reconciler) fn begin_reading(&mut self) {
        let begun = Instant::now();
        if self.is_reading() || self.stale.is_none_or(|at| at > begun) {
            return;
        }
        self.stale = None;
        let is_missed = std::mem::take(&mut self.is_missed);
        self.catalogue_contexts.send_replace(Arc::clone(&self.ctx));
        self.trigger_core_set();
        let ctx = self.apart.fresh();
        self.reading.push(Box::pin(async move {
            Reading {
                begun,
                is_missed,
                records: Records::read(&ctx).await,
            }
        }));
    }

    /// Returns whether records are being read. Signals of watches are taken in afterwards.
    pub(in crate::reconciler) fn is_reading(&self) -> bool {
        !self.reading.is_empty()
    }

    /// Takes in the result of a read.
    ///
    /// # Errors
    /// The records could not be read, and are soon read again.
    pub(in crate::reconciler) fn end_reading(
        &mut self,
        reading: Reading,
    ) -> Result<(), Box<OperationError>> {
        let Reading {
            begun,
            is_missed,
            records,
        } = reading;
        let now = Instant::now();
        let records = match records {
            Ok(records) => records,
            Err(error) => {
                self.is_missed |= is_missed;
                self.stale = Some(now + AGAIN);
                return Err(Box::new(error));
            }
        };
        self.stale = Some(begun + self.interval);
        self.unbound_records.clear();
        self.local_namespaces = match records.is_remote {
            true => BTreeSet::new(),
            false => records.local.clone(),
        };
        let names: BTreeSet<_> = records.all.iter().map(name_of).collect();
        self.tracked.retain(|name, _| names.contains(name));
        self.is_uncounted = true;
        for namespace in self.remotes.forget_others(&names) {
            self.ctx.forget_cluster(&namespace, None);
        }
        let selected = self.ctx.settings().namespace.clone();
        for record in &records.all {
            let name = name_of(record);
            if selected
                .as_ref()
                .is_some_and(|selected| *selected != name.namespace)
            {
                continue;
            }
            if !is_missed && self.tracked.contains_key(&name) {
                continue;
            }
            // Most of the many records that a new leader reads are only checked.
            let is_due = is_due(record);
            self.queue
                .schedule(&name, now, ReconcileCause::Start { is_due });
            if !self.queue.is_running(&name) {
                self.track(name, TrackedInstallation::from_record(record));
            }
        }
        Ok(())
    }
}
