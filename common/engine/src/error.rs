//! What can go wrong between us and a cluster, as far as the exit codes distinguish it.

pub(super) mod classify;

use addons_plan::changes::Remedy;
use addons_plan::refusal::Cause;
use common::api::installation::format::RecordError;
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::values::mask::Mask;

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
    /// A newer release recorded the installation, or its record cannot be read: exit 4.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Another client holds the lock: exit 4.
    #[error("{installation} is being changed by {holder} since {since}")]
    Locked {
        /// The installation.
        installation: InstallationName,
        /// Who holds it.
        holder: String,
        /// RFC 3339.
        since: String,
    },
    /// An object is wanted that exists and is not ours, or a field is owned by another manager: exit 4.
    #[error("{key}: {message}")]
    Conflict {
        /// The object.
        key: Box<ObjectKey>,
        /// Who owns it, with the values of the fields, for the terminal of the caller.
        message: String,
        /// The same without values, which may come from Secrets; `None` where the message has none.
        recorded: Option<String>,
        /// What the user can do about it.
        remedy: Option<Remedy>,
    },
    /// An object cannot be changed in place, and was not allowed to be recreated: exit 1.
    #[error("{key}: {message}")]
    Unchangeable {
        /// The object.
        key: Box<ObjectKey>,
        /// The fields, and the server's rules for them.
        message: String,
        /// What the user can do about it.
        remedy: Remedy,
    },
    /// A webhook of the installation itself does not answer, and refuses what would repair it: exit 1.
    #[error("{object}: {message}")]
    OwnWebhook {
        /// The object that is refused.
        object: String,
        /// Which webhook, and the server's message.
        message: String,
        /// The configuration that it is in.
        configuration: Box<ObjectKey>,
    },
    /// Other managers own fields of an apply, before it is decided whether they are taken: exit 4.
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
    /// The server refuses fields of an object, among them at least one that could be changed: exit 1.
    #[error("{object}: {}", fields(.causes))]
    Invalid {
        /// The object.
        object: String,
        /// Every field; the message is the server's.
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
        "the definitions of {0} are not installed in this cluster",
        common::api::names::GROUP
    )]
    NotInitialised,
    /// We act as someone else (`--as`), and cannot act as a ServiceAccount beside that.
    #[error(
        "it takes the rights of a ServiceAccount, which someone who is impersonated cannot take"
    )]
    Impersonating,
    /// 404 that names no object: the version, the kind or its group is not served. Whether the object exists is not known.
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
    /// Another version is installed, or the inventory changed.
    #[error("another client installed or upgraded it")]
    Installed,
    /// The spec changed.
    #[error("its spec was changed")]
    SpecChanged,
    /// Created meanwhile, with another spec than the plan's.
    #[error("another client created it with another spec")]
    Created,
    /// The lease ran out before a renewal was answered.
    #[error("our lock could not be renewed in time")]
    LockExpired,
    /// Our operation is no longer in the record, and there is no other one.
    #[error("our lock was removed")]
    LockRemoved,
}

/// Why the server refuses one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldCause {
    /// `spec.selector`; empty where the server names none.
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
    /// The same without what comes from Secrets in the words of the server.
    pub(super) fn masked(mut self, mask: &Mask) -> Self {
        match &mut self {
            Self::Forbidden { message, .. }
            | Self::Denied { message, .. }
            | Self::Unchangeable { message, .. }
            | Self::OwnWebhook { message, .. }
            | Self::Unserved { message, .. }
            | Self::Api { message, .. } => *message = mask.text(message),
            Self::Conflict {
                message, recorded, ..
            } => {
                *message = mask.text(message);
                *recorded = recorded.take().map(|text| mask.text(&text));
            }
            Self::FieldConflict { causes, .. }
            | Self::Immutable { causes, .. }
            | Self::Invalid { causes, .. } => {
                for cause in causes {
                    cause.message = mask.text(&cause.message);
                }
            }
            Self::Unreachable { .. }
            | Self::Unauthorized { .. }
            | Self::Record(_)
            | Self::Locked { .. }
            | Self::Stale { .. }
            | Self::NotInitialised
            | Self::Impersonating
            | Self::TooLarge { .. } => {}
        }
        self
    }

    /// HTTP status of the answer, where there was one.
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

    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Conflict { remedy, .. } => remedy.clone(),
            Self::Unchangeable { remedy, .. } => Some(remedy.clone()),
            Self::OwnWebhook { configuration, .. } => {
                Some(Remedy::DeleteWebhooks(configuration.clone()))
            }
            _ => None,
        }
    }

    /// The category of a refusal.
    pub(super) fn cause(&self) -> Cause {
        match self {
            Self::Denied { .. } => Cause::Denied,
            Self::Conflict { .. } => Cause::Conflict,
            _ => Cause::Other,
        }
    }

    /// A conflict over an object, of which only the message tells.
    pub(super) fn conflict(key: ObjectKey, message: impl Into<String>) -> Self {
        Self::Conflict {
            key: Box::new(key),
            message: message.into(),
            recorded: None,
            remedy: None,
        }
    }

    /// Whether the object, or the namespace that it would be created in, does not exist. A version that is not served says nothing
    /// of its objects: see [`EngineError::is_unserved`].
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api { code: 404, .. })
    }

    /// Whether the kind is not served in the version that was asked for.
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        matches!(self, Self::Unserved { .. })
    }

    /// Whether the webhook of a definition does not convert an object (HTTP 500), or the objects of the whole kind, of which the
    /// server then keeps nothing (HTTP 429).
    pub(super) fn is_of_conversion(&self) -> bool {
        matches!(self, Self::Api { code: 429 | 500, message, .. } if message.contains("conversion webhook for "))
    }

    /// Whether the server cannot read an object by the schema that it has of the kind (HTTP 500 for an apply).
    pub(super) fn is_of_schema(&self) -> bool {
        matches!(self, Self::Api { message, .. } if message.contains("failed to create typed patch object"))
    }

    /// Whether the server answers, but does not give what was asked for: other objects may be readable, or the same one by
    /// itself.
    pub(super) fn is_of_reading(&self) -> bool {
        matches!(
            self,
            Self::Forbidden { .. }
                | Self::Api {
                    code: 429 | 500..=599,
                    ..
                }
        )
    }

    /// Whether another client was faster: resourceVersion, uid or name clash.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// The error for a list that names the object already, with its cause.
    pub(super) fn words(&self) -> String {
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

    /// The error for the record of the installation, which others read: no value of a field is in it.
    pub(super) fn recorded(&self) -> String {
        match self {
            Self::Conflict {
                recorded: Some(recorded),
                ..
            } => recorded.clone(),
            other => other.words(),
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
