//! The AdmissionReview (admission.k8s.io/v1), as the API server sends it and expects its answer.
//!
//! The types of kube are not used: they serialise the patch as an array of numbers (kube-rs/kube#1781) where the API requires base64, and
//! they decode objects that a verdict does not need.

mod response;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::response::Response;
use super::Requester;
use common::entrance::{self, describe_category};

/// The only version of AdmissionReview that the webhook registers for.
pub const API_VERSION: &str = "admission.k8s.io/v1";
/// The kind of an AdmissionReview.
pub const KIND: &str = "AdmissionReview";

/// A review that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The bytes are not an AdmissionReview with a uid, so no answer is possible.
    #[error("the request is not an AdmissionReview ({category} at line {line}, column {column})")]
    NoReview {
        /// The kind of error: `syntax error`, `wrong type`, `cut off`.
        category: &'static str,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// The review has a uid, but the rest cannot be read. It is answered with a denial.
    #[error("the AdmissionReview cannot be read ({category} at line {line}, column {column})")]
    Unreadable {
        /// The uid to echo.
        uid: String,
        /// The kind of error, as above.
        category: &'static str,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
}

/// The request of a review. Objects stay text until a verdict reads them.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRequest<'a> {
    /// The uid, echoed in the response.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Group and kind of the object.
    #[serde(borrow)]
    pub kind: GroupKind<'a>,
    /// `status`, `scale`, …; `None` for the object itself.
    #[serde(default)]
    pub sub_resource: Option<String>,
    /// Empty for generateName and for each object of a deletecollection. The objects themselves hold the name.
    #[serde(default)]
    pub name: Option<String>,
    /// The namespace of the object.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The operation on the object.
    pub operation: AdmissionOperation,
    /// Whether nothing is stored.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// The requester.
    #[serde(default)]
    pub user_info: UserInfo,
    /// The new object; null on DELETE.
    #[serde(default, borrow)]
    pub object: Option<&'a RawValue>,
    /// The old object; null on CREATE.
    #[serde(default, borrow)]
    pub old_object: Option<&'a RawValue>,
}

/// An operation of an admission request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum AdmissionOperation {
    /// An object is created.
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// A connection is opened (exec, proxy). The webhook does not register for this.
    Connect,
}

impl AdmissionOperation {
    /// Returns the name that the API server uses.
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

/// Group and kind. The version is the one that the webhook registered for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GroupKind<'a> {
    /// The API group; empty for core.
    #[serde(default, borrow)]
    pub group: Cow<'a, str>,
    /// The kind.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

/// The requester, as the API server authenticated or impersonated them.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct UserInfo {
    /// The user name.
    #[serde(default)]
    pub username: Option<String>,
    /// The groups.
    #[serde(default)]
    pub groups: Option<Vec<String>>,
    /// The uid that the authenticator gives the user.
    #[serde(default)]
    pub uid: Option<String>,
    /// Further attributes from the authenticator, which authorizers may use.
    #[serde(default)]
    pub extra: Option<BTreeMap<String, Vec<String>>>,
}

impl<'a> ReviewRequest<'a> {
    /// Reads a review from arbitrary bytes.
    ///
    /// # Errors
    /// [`ReviewError`]. It quotes nothing of `body`, which may contain secrets.
    pub fn from_slice(body: &'a [u8]) -> Result<Self, ReviewError> {
        #[derive(Deserialize)]
        struct ReviewEnvelope<'a> {
            #[serde(borrow)]
            request: ReviewRequest<'a>,
        }
        #[derive(Deserialize)]
        struct Lenient<'a> {
            #[serde(borrow)]
            request: RequestUid<'a>,
        }
        #[derive(Deserialize)]
        struct RequestUid<'a> {
            #[serde(borrow)]
            uid: Cow<'a, str>,
        }
        let review = entrance::read_outline::<ReviewEnvelope<'a>>(body);
        let error = match review {
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
        let (category, line, column) = (describe_category(&error), error.line(), error.column());
        // With the uid, the response counts as a denial; without it, as a failed call.
        match entrance::read_outline::<Lenient<'_>>(body) {
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

    /// Returns whether the request is for a subresource, such as the status.
    #[must_use]
    pub fn is_of_subresource(&self) -> bool {
        let sub = self.sub_resource.as_deref();
        sub.is_some_and(|sub| !sub.is_empty())
    }

    /// Returns the requester.
    #[must_use]
    pub fn requester(&self) -> Requester {
        Requester {
            user: self.user_info.username.clone().unwrap_or_default(),
            groups: self.user_info.groups.clone().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
