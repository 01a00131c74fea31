//! The AdmissionReview (admission.k8s.io/v1) as the API server sends and wants it.
//!
//! Our own types, for kube's write the patch as an array of numbers (kube-rs/kube#1781), where the API wants base64,
//! and decode objects that a verdict need not look at.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Requester;
use super::verdict::{Cause, Denial, Problem, Verdict};

/// The only version of AdmissionReview that we register for.
pub const API_VERSION: &str = "admission.k8s.io/v1";
/// The kind.
pub const KIND: &str = "AdmissionReview";

/// The API server cuts a warning at 256 characters, and all of them at 4096.
const MAX_WARNING: usize = 256;
const MAX_WARNINGS: usize = 4096;
/// Problems that are listed as causes of a 422.
const MAX_CAUSES: usize = 20;

/// What cannot be answered with a review of its own.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The bytes are no AdmissionReview with a uid: there is nothing to answer to.
    #[error("the request is no AdmissionReview ({category} at line {line}, column {column})")]
    NoReview {
        /// `syntax error`, `wrong type`, `cut off`.
        category: &'static str,
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// A uid, but the rest cannot be read: answered as a denial with that uid.
    #[error("the AdmissionReview cannot be read ({category} at line {line}, column {column})")]
    Unreadable {
        /// The uid to echo.
        uid: String,
        /// As above.
        category: &'static str,
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
}

/// The request of a review. Objects stay text until a verdict looks at them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// Echoed in the response.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Group, version and kind of the object, in the version that we registered for.
    pub kind: GroupVersionKind,
    /// Group, version and resource.
    pub resource: GroupVersionResource,
    /// `status`, `scale`, …; absent for the object itself.
    #[serde(default)]
    pub sub_resource: Option<String>,
    /// Empty for generateName and for each object of a deletecollection: identity is in the objects.
    #[serde(default)]
    pub name: Option<String>,
    /// Namespace of the object.
    #[serde(default)]
    pub namespace: Option<String>,
    /// What is asked for.
    pub operation: Operation,
    /// Who asks.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The new object; null on DELETE.
    #[serde(default, borrow)]
    pub object: Option<&'a RawValue>,
    /// The old object; null on CREATE.
    #[serde(default, borrow)]
    pub old_object: Option<&'a RawValue>,
}

/// Operations that admission knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
    /// An object goes.
    Delete,
    /// A connection (exec, proxy); we register for none.
    Connect,
}

impl Operation {
    /// As the API server writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// Group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GroupVersionKind {
    /// API group, empty for core.
    #[serde(default)]
    pub group: String,
    /// API version.
    #[serde(default)]
    pub version: String,
    /// Kind.
    pub kind: String,
}

/// Group, version and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GroupVersionResource {
    /// API group, empty for core.
    #[serde(default)]
    pub group: String,
    /// API version.
    #[serde(default)]
    pub version: String,
    /// Resource, plural.
    pub resource: String,
}

/// Who asks, as the API server authenticated (or impersonated) them.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct UserInfo {
    /// User name.
    #[serde(default)]
    pub username: Option<String>,
    /// Groups.
    #[serde(default)]
    pub groups: Option<Vec<String>>,
}

impl<'a> Request<'a> {
    /// Reads a review. `body` may be anything.
    ///
    /// # Errors
    /// [`ReviewError`]; it quotes nothing of `body`, which may hold secrets.
    pub fn from_slice(body: &'a [u8]) -> Result<Self, ReviewError> {
        #[derive(Deserialize)]
        struct Review<'a> {
            #[serde(borrow)]
            request: Request<'a>,
        }
        #[derive(Deserialize)]
        struct Lenient<'a> {
            #[serde(borrow)]
            request: Uid<'a>,
        }
        #[derive(Deserialize)]
        struct Uid<'a> {
            #[serde(borrow)]
            uid: Cow<'a, str>,
        }
        let error = match serde_json::from_slice::<Review<'a>>(body) {
            Ok(review) if !review.request.uid.is_empty() => return Ok(review.request),
            Ok(_) => {
                return Err(ReviewError::NoReview {
                    category: "empty uid",
                    line: 0,
                    column: 0,
                });
            }
            Err(error) => error,
        };
        let (category, line, column) = (category(&error), error.line(), error.column());
        // An answer without the uid counts as a failed call, one with it as a denial.
        match serde_json::from_slice::<Lenient<'_>>(body) {
            Ok(lenient) if !lenient.request.uid.is_empty() => Err(ReviewError::Unreadable {
                uid: lenient.request.uid.into_owned(),
                category,
                line,
                column,
            }),
            _ => Err(ReviewError::NoReview {
                category,
                line,
                column,
            }),
        }
    }

    /// Who asks.
    #[must_use]
    pub fn requester(&self) -> Requester {
        Requester {
            user: self.user_info.username.clone().unwrap_or_default(),
            groups: self.user_info.groups.clone().unwrap_or_default(),
        }
    }
}

/// What kind of mistake it is, in words that quote nothing of the input.
pub(crate) fn category(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        serde_json::error::Category::Io => "unreadable",
        serde_json::error::Category::Syntax => "syntax error",
        serde_json::error::Category::Data => "wrong type or missing field",
        serde_json::error::Category::Eof => "cut off",
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    api_version: &'static str,
    kind: &'static str,
    response: Answer,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    /// Present together with `patch_type`, or both absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<&'static str, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Status {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Details {
    group: String,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    causes: Vec<FieldCause>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct FieldCause {
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    field: String,
}

impl Response {
    /// Allowed as it is.
    #[must_use]
    pub fn allowed(uid: &str) -> Self {
        Self {
            api_version: API_VERSION,
            kind: KIND,
            response: Answer {
                uid: uid.to_owned(),
                allowed: true,
                status: None,
                patch: None,
                patch_type: None,
                warnings: Vec::new(),
                audit_annotations: BTreeMap::new(),
            },
        }
    }

    /// Allowed with changes; without any, as it is.
    ///
    /// # Errors
    /// Where the patch cannot be written as JSON.
    pub fn patched(uid: &str, patch: &Patch) -> Result<Self, serde_json::Error> {
        let mut response = Self::allowed(uid);
        if !patch.0.is_empty() {
            response.response.patch = Some(STANDARD.encode(serde_json::to_vec(patch)?));
            response.response.patch_type = Some("JSONPatch");
        }
        Ok(response)
    }

    /// Denied because the answer could not be found; the message names no value.
    #[must_use]
    pub fn failed(uid: &str, code: u16, reason: &'static str, message: &str) -> Self {
        let mut response = Self::allowed(uid);
        response.response.allowed = false;
        response.response.status = Some(Status {
            status: "Failure",
            code,
            reason,
            message: printable(message),
            details: None,
        });
        response
    }

    /// The answer to `request` that `verdict` is.
    #[must_use]
    pub fn judged(request: &Request<'_>, verdict: &Verdict) -> Self {
        let mut response = Self::allowed(&request.uid);
        let answer = &mut response.response;
        answer.warnings = warnings(&verdict.warnings);
        if !verdict.lifted.is_empty() {
            let rules: Vec<&str> = verdict.lifted.iter().map(|lifted| lifted.rule).collect();
            answer
                .audit_annotations
                .insert("break-glass", rules.join(","));
        }
        if let Some(denial) = verdict.denial() {
            answer.allowed = false;
            answer.status = Some(status(request, verdict, denial));
        }
        response
    }

    /// Whether the request is allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.response.allowed
    }

    /// The uid that is echoed.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.response.uid
    }

    /// The message of a denial.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        let status = self.response.status.as_ref()?;
        Some(&status.message)
    }
}

/// The status of a denial. Only a 422 lists causes, as kubectl prints them in place of the message.
fn status(request: &Request<'_>, verdict: &Verdict, denial: Denial) -> Status {
    let details = (denial.code == 422).then(|| Details {
        group: request.kind.group.clone(),
        kind: request.kind.kind.clone(),
        name: request.name.clone().unwrap_or_default(),
        causes: verdict
            .problems
            .iter()
            .filter(|problem| problem.cause == Cause::Invalid)
            .take(MAX_CAUSES)
            .map(cause)
            .collect(),
    });
    Status {
        status: "Failure",
        code: denial.code,
        reason: denial.reason,
        message: printable(&denial.message),
        details,
    }
}

fn cause(problem: &Problem) -> FieldCause {
    FieldCause {
        reason: "FieldValueInvalid",
        message: printable(&problem.message),
        field: printable(&problem.field),
    }
}

/// Warnings as the API server lets them pass: no control characters, each and all together bounded.
fn warnings(all: &[String]) -> Vec<String> {
    let mut left = MAX_WARNINGS;
    let mut kept = Vec::new();
    for warning in all {
        let warning = printable(warning);
        let warning: String = warning.chars().take(MAX_WARNING).collect();
        let length = warning.chars().count();
        if length > left {
            break;
        }
        left -= length;
        kept.push(warning);
    }
    kept
}

/// Names in messages come from the request: no control characters reach a terminal or a log.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests;
