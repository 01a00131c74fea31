//! Who or what caused an installation to be reconciled, for log lines and Events.

use addons_admission::writer::parse_writer;
use common::api::installation::AddonInstallation;
use common::api::installation::core_guard::{is_guarded, is_released};
use jiff::Timestamp;

/// Who or what caused an installation to be reconciled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ReconcileCause {
    /// A person ran the command.
    Command,
    /// The process has begun to lead, or may have missed changes. `is_due`: whether the record shows that something has to be done.
    Start {
        /// Whether the record shows that something has to be done.
        is_due: bool,
    },
    /// The interval has passed.
    #[default]
    Interval,
    /// The last attempt failed, and its pause is over.
    Retry,
    /// The change waited for a maintenance window.
    Window,
    /// The record was created or released, its spec changed, or its deletion began.
    Record {
        /// The user who wrote the spec, if the webhook recorded that.
        writer: Option<String>,
    },
    /// The record is being deleted.
    Deletion {
        /// When the deletion was requested.
        since: Option<Timestamp>,
        /// Whether the record was released as a core add-on before.
        is_released: bool,
    },
    /// Another client wrote the status of the record.
    Status,
    /// A catalogue changed.
    Catalogue {
        /// Its name; `None` if several may have changed.
        name: Option<String>,
    },
    /// An object was edited or deleted.
    Object {
        /// Its kind.
        kind: String,
        /// Its namespace; empty if it is cluster-scoped.
        namespace: String,
        /// Its name.
        name: String,
        /// Whether it was deleted.
        is_deleted: bool,
    },
    /// Changes of the objects of a kind may have been missed.
    Objects {
        /// The kind.
        kind: String,
    },
    /// The Secrets that hold kubeconfigs changed.
    Kubeconfig {
        /// The Secret; `None` if several may have changed.
        secret: Option<String>,
    },
}

impl ReconcileCause {
    /// Returns whether the installation goes before those that are only checked again.
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(
            self,
            Self::Record { .. }
                | Self::Deletion { .. }
                | Self::Object { .. }
                | Self::Start { is_due: true }
        )
    }

    /// Returns whether a pause after a failure ends: something that the installation depends on may have changed.
    pub(crate) fn ends_pause(&self) -> bool {
        matches!(
            self,
            Self::Command
                | Self::Start { .. }
                | Self::Record { .. }
                | Self::Deletion { .. }
                | Self::Catalogue { .. }
                | Self::Kubeconfig { .. }
        )
    }

    /// Returns the cause with what the record tells about it. A deletion explains what is done, whatever led to the check.
    #[must_use]
    pub fn with_record(&self, record: &AddonInstallation) -> Self {
        let metadata = &record.metadata;
        // A listed core add-on is held, and reconciled as before (semantics 14.6).
        let is_held = is_guarded(record) && !is_released(record);
        if let Some(since) = metadata.deletion_timestamp.as_ref().filter(|_| !is_held) {
            return Self::Deletion {
                since: Some(since.0),
                is_released: is_released(record),
            };
        }
        match self {
            Self::Record { .. } => Self::Record {
                writer: Some(parse_writer(metadata).user).filter(|user| !user.is_empty()),
            },
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use common::api::installation::AddonInstallationSpec;
    use common::api::names::{ANNOTATION_RELEASED, ANNOTATION_WRITTEN_BY, MARKED};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    #[test]
    fn the_record_says_who_wrote_it_and_that_it_is_deleted() {
        let mut record = AddonInstallation::new("web", AddonInstallationSpec::default());
        let written = ReconcileCause::Record { writer: None };
        assert_eq!(written.with_record(&record), written);
        let annotations = record.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION_WRITTEN_BY.to_owned(), "anna\nops".to_owned());
        let writer = Some("anna".to_owned());
        assert_eq!(
            written.with_record(&record),
            ReconcileCause::Record { writer }
        );
        let interval = ReconcileCause::Interval;
        assert_eq!(interval.with_record(&record), interval);
        let annotations = record.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION_RELEASED.to_owned(), MARKED.to_owned());
        record.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let deleted = ReconcileCause::Deletion {
            since: Some(Timestamp::UNIX_EPOCH),
            is_released: true,
        };
        assert_eq!(interval.with_record(&record), deleted);
    }
}
