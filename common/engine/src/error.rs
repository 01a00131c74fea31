//! Errors of requests and operations, as far as the exit codes distinguish them.

pub(super) mod classify;

use addons_plan::changes::RefusalRemedy;
use addons_plan::refusal::FailureCause;
use common::api::installation::format::RecordError;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::values::mask::SecretMask;

/// An error of the engine. Display names the object or request; the source stays in the error chain.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The server could not be reached or did not answer in time.
    #[error("the server at {server} cannot be reached")]
    Unreachable {
        /// URL of the server.
        server: String,
        /// The underlying error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// 401: the credentials are missing, wrong or expired.
    #[error(
        "the server at {server} does not accept the credentials: they are missing, wrong or expired"
    )]
    Unauthorized {
        /// URL of the server.
        server: String,
    },
    /// The server serves neither its groups nor its version as an API server does.
    #[error("the server at {server} does not answer as a Kubernetes API server does; {answer}")]
    NotKubernetes {
        /// URL of the server.
        server: String,
        /// What it answers: `GET /version says: HTTP 404`.
        answer: String,
    },
    /// 403 by RBAC.
    #[error("not allowed: {verb} {resource}; the server says: {message}")]
    Forbidden {
        /// `create`, `patch`, …
        verb: &'static str,
        /// `deployments.apps in namespace shop`.
        resource: String,
        /// The server's message.
        message: String,
    },
    /// Denied at admission (webhook or policy): exit 6.
    #[error("{object}: {message}")]
    Denied {
        /// The object that was denied.
        object: String,
        /// The server's message.
        message: String,
    },
    /// A newer release wrote the record, or it cannot be read: exit 4.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Another client holds the lock: exit 4.
    #[error("{installation} is being changed by {holder} since {since}")]
    Locked {
        /// The installation.
        installation: InstallationName,
        /// The client that holds it.
        holder: String,
        /// When the operation began, RFC 3339.
        since: String,
    },
    /// A wanted object exists and is not ours, or another manager owns a field: exit 4.
    #[error("{key}: {message}")]
    Conflict {
        /// The object.
        key: Box<ObjectKey>,
        /// The owner, with the values of the fields, for the terminal of the caller.
        message: String,
        /// The message for the record, without values, which may come from Secrets; `None` if `message` contains none.
        recorded: Option<String>,
        /// What the user can do about it.
        remedy: Option<RefusalRemedy>,
    },
    /// An object cannot be changed in place, and may not be recreated: exit 1.
    #[error("{key}: {message}")]
    Unchangeable {
        /// The object.
        key: Box<ObjectKey>,
        /// The fields, and the server's rules for them.
        message: String,
        /// What the user can do about it.
        remedy: RefusalRemedy,
    },
    /// A webhook of the installation itself does not answer, and so blocks its own repair: exit 1.
    #[error("{object}: {message}")]
    OwnWebhook {
        /// The object that is refused.
        object: String,
        /// The webhook and the server's message.
        message: String,
        /// The configuration that contains the webhook.
        configuration: Box<ObjectKey>,
    },
    /// Other managers own fields of an apply. It is not yet decided whether they are taken: exit 4.
    #[error("{object}: {}", fields(.causes))]
    FieldConflict {
        /// The object.
        object: String,
        /// All such fields; each message names the manager.
        causes: Vec<FieldCause>,
    },
    /// The server refuses a change only because of immutable fields: exit 1.
    #[error("{object}: {}", fields(.causes))]
    Immutable {
        /// The object.
        object: String,
        /// All such fields; each message is the rule, without values.
        causes: Vec<FieldCause>,
    },
    /// The server refuses fields of an object, at least one of which is mutable: exit 1.
    #[error("{object}: {}", fields(.causes))]
    Invalid {
        /// The object.
        object: String,
        /// All such fields; each message is the server's.
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
    /// Our CRDs are not installed.
    #[error(
        "the definitions of {0} are not installed in this cluster",
        common::api::names::GROUP
    )]
    NotInitialised,
    /// The client already impersonates a user (`--as`), so it cannot act as a ServiceAccount.
    #[error(
        "it takes the rights of a ServiceAccount, which someone who is impersonated cannot take"
    )]
    Impersonating,
    /// 404 that names no object: the version, the kind or its group is not served. It is not known whether the object exists.
    #[error("{what}: {message}")]
    Unserved {
        /// Object or request.
        what: String,
        /// The server's message.
        message: String,
    },
    /// Any other answer of the server for an object or a request.
    #[error("{what}: {message}")]
    Api {
        /// Object or request.
        what: String,
        /// The server's message.
        message: String,
        /// HTTP status.
        code: u16,
    },
    /// The inventory does not fit into the record (semantics 13.4).
    #[error(
        "{objects} objects need {bytes} bytes of record, {limit} are allowed: split the add-on"
    )]
    TooLarge {
        /// The number of objects.
        objects: usize,
        /// Bytes needed.
        bytes: usize,
        /// Bytes allowed.
        limit: usize,
    },
}

/// What happened to a record, or to our lock on it, after the plan was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StaleReason {
    /// The record was deleted.
    #[error("it was uninstalled")]
    Uninstalled,
    /// Another version is installed, or the inventory changed.
    #[error("another client installed or upgraded it")]
    Installed,
    /// The spec changed.
    #[error("its spec was changed")]
    SpecChanged,
    /// The record was created meanwhile, with another spec than the plan's.
    #[error("another client created it with another spec")]
    Created,
    /// The lock expired before a renewal was answered.
    #[error("our lock could not be renewed in time")]
    LockExpired,
    /// Our operation is no longer in the record, and no other one is.
    #[error("our lock was removed")]
    LockRemoved,
}

/// Why the server refuses one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCause {
    /// `spec.selector`; empty if the server names none.
    pub field: String,
    /// The server's message.
    pub message: String,
}

fn fields(causes: &[FieldCause]) -> String {
    let lines: Vec<String> = causes
        .iter()
        .map(|cause| match cause.field.as_str() {
            "" => cause.message.clone(),
            field => format!("{field}: {}", cause.message),
        })
        .collect();
    lines.join("; ")
}

impl EngineError {
    /// Returns the error with values of Secrets masked in the server's messages.
    pub(super) fn masked(mut self, mask: &SecretMask) -> Self {
        match &mut self {
            Self::Forbidden { message, .. }
            | Self::Denied { message, .. }
            | Self::Unchangeable { message, .. }
            | Self::OwnWebhook { message, .. }
            | Self::Unserved { message, .. }
            | Self::Api { message, .. } => *message = mask.mask_text(message),
            Self::Conflict {
                message, recorded, ..
            } => {
                *message = mask.mask_text(message);
                *recorded = recorded.take().map(|text| mask.mask_text(&text));
            }
            Self::FieldConflict { causes, .. }
            | Self::Immutable { causes, .. }
            | Self::Invalid { causes, .. } => {
                for cause in causes {
                    cause.message = mask.mask_text(&cause.message);
                }
            }
            Self::Unreachable { .. }
            | Self::Unauthorized { .. }
            | Self::NotKubernetes { .. }
            | Self::Record(_)
            | Self::Locked { .. }
            | Self::Stale { .. }
            | Self::NotInitialised
            | Self::Impersonating
            | Self::TooLarge { .. } => {}
        }
        self
    }

    /// Returns the HTTP status of the answer, if there was one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api { code, .. } => Some(*code),
            Self::Unauthorized { .. } => Some(401),
            Self::Forbidden { .. } | Self::Denied { .. } => Some(403),
            Self::NotInitialised | Self::Unserved { .. } => Some(404),
            Self::Conflict { .. } | Self::FieldConflict { .. } => Some(409),
            Self::Immutable { .. } | Self::Unchangeable { .. } | Self::Invalid { .. } => Some(422),
            Self::OwnWebhook { .. } => Some(500),
            _ => None,
        }
    }

    /// Returns what the user can do about the error.
    #[must_use]
    pub fn remedy(&self) -> Option<RefusalRemedy> {
        match self {
            Self::Conflict { remedy, .. } => remedy.clone(),
            Self::Unchangeable { remedy, .. } => Some(remedy.clone()),
            Self::OwnWebhook { configuration, .. } => {
                Some(RefusalRemedy::DeleteWebhooks(configuration.clone()))
            }
            _ => None,
        }
    }

    /// Returns the category, which decides the exit code: of this error, and of an object that failed because of it.
    #[must_use]
    pub fn cause(&self) -> FailureCause {
        match self {
            Self::Denied { .. } => FailureCause::Denied,
            Self::Forbidden { .. } => FailureCause::Forbidden,
            Self::Locked { .. }
            | Self::Stale { .. }
            | Self::Record(_)
            | Self::Conflict { .. }
            | Self::FieldConflict { .. }
            | Self::Api { code: 409, .. } => FailureCause::Conflict,
            Self::Unreachable { .. }
            | Self::Unauthorized { .. }
            | Self::NotKubernetes { .. }
            | Self::NotInitialised
            | Self::Impersonating
            | Self::Immutable { .. }
            | Self::Unchangeable { .. }
            | Self::OwnWebhook { .. }
            | Self::Invalid { .. }
            | Self::Unserved { .. }
            | Self::Api { .. }
            | Self::TooLarge { .. } => FailureCause::Other,
        }
    }

    /// Returns a conflict over an object that only has a message.
    pub(super) fn conflict(key: ObjectKey, message: impl Into<String>) -> Self {
        Self::Conflict {
            key: Box::new(key),
            message: message.into(),
            recorded: None,
            remedy: None,
        }
    }

    /// Returns whether the object, or the namespace to create it in, does not exist. A version that is not served says nothing about its
    /// objects: see [`EngineError::is_unserved`].
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { code: 404, .. })
    }

    /// Returns whether the kind is not served in the requested version.
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        matches!(self, Self::Unserved { .. })
    }

    /// Returns whether a conversion webhook fails: for one object (HTTP 500), or for all objects of the kind, none of which the server then
    /// caches (HTTP 429).
    pub(super) fn is_conversion_failure(&self) -> bool {
        matches!(self, Self::Api { code: 429 | 500, message, .. } if message.contains("conversion webhook for "))
    }

    /// Returns whether the object does not fit the server's schema of its kind (HTTP 500 for an apply).
    pub(super) fn is_schema_mismatch(&self) -> bool {
        matches!(self, Self::Api { message, .. } if message.contains("failed to create typed patch object"))
    }

    /// Returns whether the server answers but does not return the requested objects: others, or a single one of them, may be readable.
    pub(super) fn is_read_refusal(&self) -> bool {
        matches!(
            self,
            Self::Forbidden { .. }
                | Self::Api {
                    code: 429 | 500..=599,
                    ..
                }
        )
    }

    /// Returns whether another client was faster: resourceVersion, uid or name clash.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Returns the error with its cause, for lists that already name the object.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Api { message, .. }
            | Self::Unserved { message, .. }
            | Self::Conflict { message, .. }
            | Self::Unchangeable { message, .. }
            | Self::OwnWebhook { message, .. }
            | Self::Denied { message, .. } => message.clone(),
            Self::FieldConflict { causes, .. }
            | Self::Immutable { causes, .. }
            | Self::Invalid { causes, .. } => fields(causes),
            Self::Unreachable { source, .. } => format!("{self}: {source}"),
            other => other.to_string(),
        }
    }

    /// Returns the error for the record of the installation, which others read: without values of fields.
    pub(super) fn describe_for_record(&self) -> String {
        match self {
            Self::Conflict {
                recorded: Some(recorded),
                ..
            } => recorded.clone(),
            other => other.describe(),
        }
    }

    /// Returns whether it is not known if the server executed the request.
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
