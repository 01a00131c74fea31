//! Problems of the webhook: its objects, its configurations and its certificate.

use jiff::Timestamp;
use serde_json::Value;

use super::problem::DoctorProblem;
use super::{FactResult, ObjectPair, find_difference, object_name, text};

/// Facts about the webhook.
#[derive(Clone, Debug)]
pub struct WebhookFacts {
    /// Its objects.
    pub parts: Vec<ObjectPair>,
    /// The answer to a request that it must deny.
    pub reply: WebhookReply,
    /// The number of its ready pods.
    pub ready: usize,
    /// Its certificate.
    pub certificate: FactResult<CertificateFacts>,
}

/// The answer to a request that the webhook must deny.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookReply {
    /// The request was denied.
    Denied,
    /// The request was accepted.
    Accepted,
    /// The webhook did not answer, with the reason.
    Unanswered(String),
    /// The webhook refuses every request because it cannot decide, with the reason.
    Refused(String),
}

/// Facts about the certificate of the webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Name of its Secret.
    pub secret: String,
    /// Why it cannot be used, if it cannot.
    pub unusable: Option<String>,
    /// When it expires.
    pub end: Option<Timestamp>,
    /// The configurations whose caBundle does not contain its authority.
    pub untrusted_by: Vec<String>,
}

/// Returns the problems of the webhook. `is_defined`: whether our CRDs exist; without them it has nothing to deny. `is_wanted`: whether it
/// is recorded as installed, even if none of its objects exists.
pub(super) fn find_webhook_problems(
    webhook: &WebhookFacts,
    now: Timestamp,
    is_defined: bool,
    is_wanted: bool,
) -> Vec<DoctorProblem> {
    let mut serving = webhook.parts.iter().filter(|part| shows_webhook(part));
    if serving.all(|part| part.live.is_none()) && !is_wanted {
        return vec![DoctorProblem::NoWebhook];
    }
    let url = external_url(webhook);
    // A webhook outside the cluster has no objects and no certificate in it.
    let parts = webhook
        .parts
        .iter()
        .filter(|part| url.is_none() || is_configuration(part));
    let mut found: Vec<DoctorProblem> = parts
        .flat_map(|pair| object_problems(pair, url.is_some()))
        .collect();
    if url.is_none() {
        if webhook.ready == 0 {
            found.push(DoctorProblem::NoEndpoints);
        }
        match &webhook.certificate {
            Err(unread) => found.push(DoctorProblem::Unchecked {
                what: "the certificate of the webhook",
                unread: unread.clone(),
            }),
            Ok(certificate) => found.extend(certificate_problems(certificate, now)),
        }
    }
    match (&webhook.reply, url) {
        (WebhookReply::Unanswered(why), Some(url)) => {
            found.push(DoctorProblem::UnansweredOutside {
                url: url.to_owned(),
                why: why.clone(),
            })
        }
        (asked, _) => found.extend(answer_problem(asked, is_defined)),
    }
    found
}

/// Returns the URL of a webhook that runs outside the cluster; `None` if a configuration names a Service.
fn external_url(webhook: &WebhookFacts) -> Option<&str> {
    let configurations = webhook.parts.iter().filter(|part| is_configuration(part));
    let live = configurations.filter_map(|part| part.live.as_ref());
    let webhooks = live
        .filter_map(|live| live["webhooks"].as_array())
        .flatten();
    let mut urls = webhooks.map(|webhook| webhook["clientConfig"]["url"].as_str());
    let first = urls.next()??;
    urls.all(|url| url.is_some()).then_some(first)
}

/// Returns whether an object shows that a webhook is installed; accounts and roles may be leftovers.
fn shows_webhook(pair: &ObjectPair) -> bool {
    ["Deployment", "Service"].contains(&text(&pair.wanted["kind"]).as_str())
        || is_configuration(pair)
}

fn is_configuration(pair: &ObjectPair) -> bool {
    text(&pair.wanted["kind"]).ends_with("WebhookConfiguration")
}

fn answer_problem(asked: &WebhookReply, is_defined: bool) -> Option<DoctorProblem> {
    match asked {
        WebhookReply::Denied => None,
        WebhookReply::Unanswered(why) => Some(DoctorProblem::Unanswered { why: why.clone() }),
        WebhookReply::Refused(why) => Some(DoctorProblem::RefusesAll { why: why.clone() }),
        // Without our CRDs, the request proves nothing.
        WebhookReply::Accepted => is_defined.then_some(DoctorProblem::NotJudged),
    }
}

/// Returns the problems of one object: it is missing, or the fields that matter differ (those of configurations, roles and Services). The
/// Deployment may have other values; its record shows whether it was edited. `is_outside`: where the configurations find the webhook is not
/// compared.
fn object_problems(pair: &ObjectPair, is_outside: bool) -> Vec<DoctorProblem> {
    let kind = text(&pair.wanted["kind"]);
    let object = format!("{kind} {}", object_name(&pair.wanted));
    let Some(live) = &pair.live else {
        return vec![DoctorProblem::PartMissing { object }];
    };
    let fields = match kind.as_str() {
        "Role" | "ClusterRole" => &["rules"][..],
        "RoleBinding" | "ClusterRoleBinding" => &["roleRef", "subjects"],
        "Service" => &["spec"],
        _ if is_configuration(pair) => &["webhooks"],
        _ => &[],
    };
    let mut found = Vec::new();
    let webhooks = live["webhooks"].as_array();
    let ignores = |webhook: &Value| webhook["failurePolicy"] == "Ignore";
    if kind.starts_with("Validating") && webhooks.is_some_and(|all| all.iter().any(ignores)) {
        found.push(DoctorProblem::FailuresIgnored);
    }
    let mut wanted = pair.wanted.clone();
    // This field was just checked, or is the same.
    for webhook in wanted["webhooks"].as_array_mut().into_iter().flatten() {
        if let Some(fields) = webhook.as_object_mut() {
            fields.remove("failurePolicy");
            if is_outside {
                fields.remove("clientConfig");
            }
        }
    }
    let differs = fields.iter().find_map(|field| {
        let found = find_difference(&wanted[field], &live[field])?;
        Some(format!("{field}.{found}").trim_end_matches('.').to_owned())
    });
    found.extend(differs.map(|field| DoctorProblem::PartDiffers { object, field }));
    found
}

fn certificate_problems(certificate: &CertificateFacts, now: Timestamp) -> Vec<DoctorProblem> {
    let secret = certificate.secret.clone();
    let mut found = Vec::new();
    if let Some(why) = &certificate.unusable {
        found.push(DoctorProblem::Certificate {
            secret,
            why: why.clone(),
        });
    } else if let Some(end) = certificate.end.filter(|end| *end <= now) {
        found.push(DoctorProblem::Certificate {
            secret,
            why: format!("its certificate has expired at {end}"),
        });
    }
    let untrusted = certificate.untrusted_by.iter();
    found.extend(untrusted.map(|object| DoctorProblem::StaleBundle {
        object: object.clone(),
    }));
    found
}
