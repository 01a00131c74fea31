//! What can go wrong between us and a cluster, as the exit codes tell it apart.

pub(super) mod classify;

use common::manifest::key::ObjectKey;

/// An error of the engine. Display names the object or request; the source stays in the chain.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The server could not be reached or did not answer in time.
    #[error("the server at {server} cannot be reached")]
    Unreachable {
        /// URL of the server.
        server: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// 401: the credentials are missing, wrong or expired.
    #[error("the server at {server} does not accept the credentials")]
    Unauthorized {
        /// URL of the server.
        server: String,
    },
    /// 403 by RBAC: names verb and resource.
    #[error("not allowed: {verb} {resource}; the server says: {message}")]
    Forbidden {
        /// `create`, `patch`, …
        verb: &'static str,
        /// `deployments.apps in namespace shop`.
        resource: String,
        /// The server's words.
        message: String,
    },
    /// Denied at admission (webhook or policy): exit 6.
    #[error("{object}: {message}")]
    Denied {
        /// The object that was denied.
        object: String,
        /// The server's words.
        message: String,
    },
    /// Another client holds the lock: exit 4.
    #[error(
        "{installation} is being changed by {holder} since {since}; wait for it, or take over with --steal-lock"
    )]
    Locked {
        /// `namespace/name`.
        installation: String,
        /// Who holds it.
        holder: String,
        /// RFC 3339.
        since: String,
    },
    /// An object is wanted that exists and is not ours, or a field is owned by another manager: exit 4.
    #[error("{key}: {message}")]
    Conflict {
        /// The object.
        key: ObjectKey,
        /// Who owns it, and the way out.
        message: String,
    },
    /// Other managers own fields of an apply, before it is decided what becomes of them: exit 4.
    #[error("{object}: {}", fields(.causes))]
    FieldConflict {
        /// The object.
        object: String,
        /// Every field; the message names the manager.
        causes: Vec<FieldCause>,
    },
    /// The server refuses a change only because of fields that never change: exit 1.
    #[error("{object}: {}", fields(.causes))]
    Immutable {
        /// The object.
        object: String,
        /// Every field; the message is the rule, without values.
        causes: Vec<FieldCause>,
    },
    /// The record changed between the plan and the first write: exit 4.
    #[error("{installation} was changed after the plan was made ({what}); run the command again")]
    Stale {
        /// `namespace/name`.
        installation: String,
        /// What changed.
        what: StaleReason,
    },
    /// Our CustomResourceDefinitions are not installed.
    #[error(
        "the definitions of {0} are not installed in this cluster; run: kubectl addons init",
        common::api::names::GROUP
    )]
    NotInitialised,
    /// Any other answer of the server for an object or a request.
    #[error("{what}: {message}")]
    Api {
        /// Object or request.
        what: String,
        /// The server's words.
        message: String,
        /// HTTP status.
        code: u16,
    },
    /// The inventory does not fit into the record (semantics 13).
    #[error(
        "{objects} objects need {bytes} bytes of record, {limit} are allowed: split the add-on"
    )]
    TooLarge {
        /// Objects.
        objects: usize,
        /// Bytes needed.
        bytes: usize,
        /// Bytes allowed.
        limit: usize,
    },
}

/// What happened to a record after the plan was made, or to our lock on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StaleReason {
    /// The record is gone.
    #[error("it was uninstalled")]
    Uninstalled,
    /// Another version is installed, or the inventory is another one.
    #[error("another client installed or upgraded it")]
    Installed,
    /// Another spec.
    #[error("its spec was changed")]
    SpecChanged,
    /// Created meanwhile, with another spec than the plan's.
    #[error("another client created it with another spec")]
    Created,
    /// The lease ran out before a renewal was answered.
    #[error("our lock could not be renewed in time")]
    LockExpired,
    /// Our operation is no longer in the record, and no other is.
    #[error("our lock was taken away")]
    LockRemoved,
}

/// Why the server refuses one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCause {
    /// `spec.selector`.
    pub field: String,
    /// The server's words.
    pub message: String,
}

fn fields(causes: &[FieldCause]) -> String {
    let lines: Vec<String> = causes
        .iter()
        .map(|cause| format!("{}: {}", cause.field, cause.message))
        .collect();
    lines.join("; ")
}

impl EngineError {
    /// HTTP status of the answer, where there was one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api { code, .. } => Some(*code),
            Self::Unauthorized { .. } => Some(401),
            Self::Forbidden { .. } | Self::Denied { .. } => Some(403),
            Self::NotInitialised => Some(404),
            Self::Conflict { .. } | Self::FieldConflict { .. } => Some(409),
            Self::Immutable { .. } => Some(422),
            _ => None,
        }
    }

    /// Whether the object is not there, or its kind is not served.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { code: 404, .. })
    }

    /// Whether the kind is not served: then no object is named.
    pub(super) fn is_unserved(&self) -> bool {
        // Of a group version that is not known, and of a kind in one that is (apimachinery, errors.go).
        const WORDS: [&str; 2] = [
            "404 page not found",
            "the server could not find the requested resource",
        ];
        matches!(self, Self::Api { code: 404, message, .. } if WORDS.iter().any(|words| message.starts_with(words)))
    }

    /// Whether another client was faster: resourceVersion, uid or name clash.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// The words of the error for a list that names the object already, with what caused it.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Api { message, .. }
            | Self::Conflict { message, .. }
            | Self::Denied { message, .. } => message.clone(),
            Self::FieldConflict { causes, .. } | Self::Immutable { causes, .. } => fields(causes),
            Self::Unreachable { source, .. } => format!("{self}: {source}"),
            other => other.to_string(),
        }
    }

    /// Whether it is not known what the server did with the request.
    pub(super) fn is_uncertain(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Api {
                    code: 500..=599,
                    ..
                }
        )
    }
}
