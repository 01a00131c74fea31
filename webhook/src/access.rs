//! Asks the API server what a requester may do. Only the few reviews whose verdict depends on it need this: all others are answered from
//! watches.

use std::fmt;
use std::time::Duration;

use addons_admission::review::UserInfo;
use anyhow::Context as _;
use common::api::names::{ENROL, GROUP, INSTALLATIONS};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// Shorter than the 5 s that the API server waits for the webhook.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Asks the API server by SubjectAccessReview.
#[derive(Clone)]
pub struct RequesterAccess(Client);

impl fmt::Debug for RequesterAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

impl RequesterAccess {
    /// Uses the account of the webhook, which may create SubjectAccessReviews.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// Returns whether a requester may enrol namespaces in the whole cluster. A role in one namespace does not suffice, because it often
    /// has all verbs.
    ///
    /// # Errors
    /// The API server does not answer within 3 s, or refuses to.
    pub async fn may_enrol(&self, user: &UserInfo) -> anyhow::Result<bool> {
        let attributes = ResourceAttributes {
            group: Some(GROUP.to_owned()),
            resource: Some(INSTALLATIONS.to_owned()),
            verb: Some(ENROL.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username.clone(),
                groups: user.groups.clone(),
                uid: user.uid.clone(),
                extra: user.extra.clone(),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let api = Api::<SubjectAccessReview>::all(self.0.clone());
        let params = PostParams::default();
        let answered = tokio::time::timeout(TIMEOUT, api.create(&params, &review)).await;
        let review = answered
            .context("the SubjectAccessReview timed out after 3 s")?
            .context("the SubjectAccessReview failed")?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The review then fails, and failurePolicy decides: never a yes.
    #[tokio::test]
    async fn an_api_server_that_does_not_answer_is_an_error() {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let access = RequesterAccess::new(Client::try_from(nowhere).unwrap());
        assert!(access.may_enrol(&UserInfo::default()).await.is_err());
    }
}
