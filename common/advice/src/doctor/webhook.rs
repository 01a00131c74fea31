//! Problems of the webhook: its objects, its configurations and its certificate.

use jiff::Timestamp;
use serde_json::Value;

use super::problem::Problem;
use super::{Checked, Pair, difference, name, text};

/// Facts about the webhook.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Its objects.
    pub parts: Vec<Pair>,
    /// The answer to a request that it must deny.
    pub asked: Asked,
    /// The number of its ready pods.
    pub ready: usize,
    /// Its certificate.
    pub certificate: Checked<Certificate>,
}

/// The answer to a request that the webhook must deny.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
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
pub struct Certificate {
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
pub(super) fn judge(
    webhook: &Webhook,
    now: Timestamp,
    is_defined: bool,
    is_wanted: bool,
) -> Vec<Problem> {
    let mut serving = webhook.parts.iter().filter(|part| serves(part));
    if serving.all(|part| part.live.is_none()) && !is_wanted {
        return vec![Problem::NoWebhook];
    }
    let url = outside(webhook);
    // A webhook outside the cluster has no objects and no certificate in it.
    let parts = webhook
        .parts
        .iter()
        .filter(|part| url.is_none() || is_configuration(part));
    let mut found: Vec<Problem> = parts.flat_map(|pair| part(pair, url.is_some())).collect();
    if url.is_none() {
        if webhook.ready == 0 {
            found.push(Problem::NoEndpoints);
        }
        match &webhook.certificate {
            Err(unread) => found.push(Problem::Unchecked {
                what: "the certificate of the webhook",
                unread: unread.clone(),
            }),
            Ok(certificate) => found.extend(of_certificate(certificate, now)),
        }
    }
    match (&webhook.asked, url) {
        (Asked::Unanswered(why), Some(url)) => found.push(Problem::UnansweredOutside {
            url: url.to_owned(),
            why: why.clone(),
        }),
        (asked, _) => found.extend(of_answer(asked, is_defined)),
    }
    found
}

/// Returns the URL of a webhook that runs outside the cluster; `None` if a configuration names a Service.
fn outside(webhook: &Webhook) -> Option<&str> {
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
fn serves(pair: &Pair) -> bool {
    ["Deployment", "Service"].contains(&text(&pair.wanted["kind"]).as_str())
        || is_configuration(pair)
}

fn is_configuration(pair: &Pair) -> bool {
    text(&pair.wanted["kind"]).ends_with("WebhookConfiguration")
}

fn of_answer(asked: &Asked, is_defined: bool) -> Option<Problem> {
    match asked {
        Asked::Denied => None,
        Asked::Unanswered(why) => Some(Problem::Unanswered { why: why.clone() }),
        Asked::Refused(why) => Some(Problem::RefusesAll { why: why.clone() }),
        // Without our CRDs, the request is no test.
        Asked::Accepted => is_defined.then_some(Problem::NotJudged),
    }
}

/// Returns the problems of one object: it is missing, or the fields that matter differ (those of configurations, roles and Services). The
/// Deployment may have other values; its record shows whether it was edited. `is_outside`: where the configurations find the webhook is not
/// compared.
fn part(pair: &Pair, is_outside: bool) -> Vec<Problem> {
    let kind = text(&pair.wanted["kind"]);
    let object = format!("{kind} {}", name(&pair.wanted));
    let Some(live) = &pair.live else {
        return vec![Problem::PartMissing { object }];
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
        found.push(Problem::FailuresIgnored);
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
        let found = difference(&wanted[field], &live[field])?;
        Some(format!("{field}.{found}").trim_end_matches('.').to_owned())
    });
    found.extend(differs.map(|field| Problem::PartDiffers { object, field }));
    found
}

fn of_certificate(certificate: &Certificate, now: Timestamp) -> Vec<Problem> {
    let secret = certificate.secret.clone();
    let mut found = Vec::new();
    if let Some(why) = &certificate.unusable {
        found.push(Problem::Certificate {
            secret,
            why: why.clone(),
        });
    } else if let Some(end) = certificate.end.filter(|end| *end <= now) {
        found.push(Problem::Certificate {
            secret,
            why: format!("its certificate has expired at {end}"),
        });
    }
    let untrusted = certificate.untrusted_by.iter();
    found.extend(untrusted.map(|object| Problem::StaleBundle {
        object: object.clone(),
    }));
    found
}
