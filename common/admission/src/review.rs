//! The AdmissionReview (admission.k8s.io/v1) as the API server sends and wants it.
//!
//! Our own types: kube's serialise the patch as an array of numbers (kube-rs/kube#1781), where the API requires base64,
//! and decode objects that a verdict does not need.

mod response;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::response::Response;
use super::Requester;
use common::entrance::{self, category};

/// The only version of AdmissionReview that we register for.
pub const API_VERSION: &str = "admission.k8s.io/v1";
/// The kind.
pub const KIND: &str = "AdmissionReview";

/// A review that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// The bytes are not an AdmissionReview with a uid: no answer is possible.
    #[error("the request is not an AdmissionReview ({category} at line {line}, column {column})")]
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
    /// Group and kind of the object.
    #[serde(borrow)]
    pub kind: GroupKind<'a>,
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
    /// An object is deleted.
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

/// Group and kind. The version is the one that we registered for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct GroupKind<'a> {
    /// API group, empty for core.
    #[serde(default, borrow)]
    pub group: Cow<'a, str>,
    /// Kind.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

/// The requester, as the API server authenticated (or impersonated) them.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct UserInfo {
    /// User name.
    #[serde(default)]
    pub username: Option<String>,
    /// Groups.
    #[serde(default)]
    pub groups: Option<Vec<String>>,
    /// What the authenticator calls the user.
    #[serde(default)]
    pub uid: Option<String>,
    /// More of the authenticator, which authorizers may look at.
    #[serde(default)]
    pub extra: Option<BTreeMap<String, Vec<String>>>,
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
        let review = entrance::outline::<Review<'a>>(body);
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
        let (category, line, column) = (category(&error), error.line(), error.column());
        // A response without the uid counts as a failed call, one with it as a denial.
        match entrance::outline::<Lenient<'_>>(body) {
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

    /// Whether the request is for a part of an object, such as its status.
    #[must_use]
    pub fn is_of_subresource(&self) -> bool {
        let sub = self.sub_resource.as_deref();
        sub.is_some_and(|sub| !sub.is_empty())
    }

    /// The requester.
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
