//! A validated review: its response, and what is counted and logged once it is final.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use actix_web::http::StatusCode;
use addons_admission::AdmissionFacts;
use addons_admission::answer::{self, ReviewTask};
use addons_admission::marks::GuardMarks;
use addons_admission::policy::Breach;
use addons_admission::review::{AdmissionOperation, Response, ReviewRequest};
use addons_admission::rules::reference::UnseenDependency;
use addons_admission::verdict::{AdmissionProblem, Verdict};
use common::api::policy::PolicyAction;
use jiff::Timestamp;
use serde_json::json;
use tracing::{error, info};

use crate::telemetry::{PathLabel, ReviewLabels, RuleLabel, WebhookMetrics};

/// Bytes that suffice for nearly every response, so that the buffer does not grow while it is written.
const TYPICAL: usize = 1024;

/// Status and body of the HTTP response, and what is recorded about it.
pub struct ValidatedReview {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body.
    pub body: Vec<u8>,
    /// A dependency of the verdict that the facts may not contain yet. If set, the verdict is not final.
    pub unseen: Option<UnseenDependency>,
    note: ReviewNote,
}

/// What is recorded: names and rules, never values.
enum ReviewNote {
    Verdict {
        labels: ReviewLabels,
        problems: Vec<&'static str>,
        lifted: Vec<&'static str>,
        warned: Vec<&'static str>,
        line: Option<Box<ReviewLogLine>>,
    },
    Refused(&'static str),
    Nothing,
}

/// A log line, for denials, for what break-glass lifts, for violations of policies, and for allowed deletions and changes of core sets.
struct ReviewLogLine {
    uid: String,
    is_dry_run: bool,
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
    policies: Vec<String>,
}

/// Returns the path of a task.
fn task_path(task: ReviewTask) -> &'static str {
    match task {
        ReviewTask::Mutate => "/mutate",
        ReviewTask::Validate => "/validate",
        ReviewTask::Clusters { .. } => "/clusters",
        ReviewTask::CoreSets => "/core-sets",
    }
}

impl From<ReviewTask> for PathLabel {
    fn from(task: ReviewTask) -> Self {
        Self {
            path: task_path(task),
        }
    }
}

impl ValidatedReview {
    /// Parses and validates a review, and writes the response.
    pub fn from_body(task: ReviewTask, facts: &AdmissionFacts, body: &[u8]) -> Self {
        match ReviewRequest::from_slice(body) {
            Ok(request) => {
                Self::from_validation(task, &request, || answer::answer(task, &request, facts))
            }
            Err(error) => {
                let note = ReviewNote::Refused("unreadable");
                match Response::unreadable(&error) {
                    Some(response) => Self::from_response(&response, note),
                    None => Self {
                        status: StatusCode::BAD_REQUEST,
                        body: json!({ "error": error.to_string() })
                            .to_string()
                            .into_bytes(),
                        unseen: None,
                        note,
                    },
                }
            }
        }
    }

    /// Returns whether a rule denies the request.
    pub fn is_denied(&self) -> bool {
        matches!(&self.note, ReviewNote::Verdict { problems, .. } if !problems.is_empty())
    }

    /// Returns the denial for an internal error, whatever the failurePolicy is.
    pub fn failed(uid: &str) -> Self {
        let message = "the webhook failed; its log says why";
        let response = Response::failed(uid, 500, "InternalError", message);
        let failed = Self::from_response(&response, ReviewNote::Nothing);
        // Without the uid, the API server takes this as a failed call, and the failurePolicy decides.
        match uid {
            "" => Self {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                ..failed
            },
            _ => failed,
        }
    }

    /// Writes the result of `judge` as a response. After a panic or any other error, the response denies the request, and the server
    /// keeps running.
    pub fn from_validation(
        task: ReviewTask,
        request: &ReviewRequest<'_>,
        judge: impl FnOnce() -> Result<(Response, Verdict), serde_json::Error>,
    ) -> Self {
        match catch_unwind(AssertUnwindSafe(judge)) {
            Ok(Ok((response, verdict))) => {
                let note = ReviewNote::from_verdict(task, request, &response, &verdict);
                Self {
                    unseen: verdict.unseen,
                    ..Self::from_response(&response, note)
                }
            }
            Ok(Err(error)) => {
                error!(uid = %request.uid, %error, "the patch cannot be written");
                Self::failed(&request.uid)
            }
            Err(_) => {
                error!(uid = %request.uid, kind = %request.kind.kind, "a review panicked");
                Self {
                    note: ReviewNote::Refused("panic"),
                    ..Self::failed(&request.uid)
                }
            }
        }
    }

    fn from_response(response: &Response, note: ReviewNote) -> Self {
        let mut body = Vec::with_capacity(TYPICAL);
        let status = match serde_json::to_writer(&mut body, response) {
            Ok(()) => StatusCode::OK,
            Err(_) => {
                body.clear();
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Self {
            status,
            body,
            unseen: None,
            note,
        }
    }

    /// Counts and logs the review.
    pub fn record(&self, metrics: &WebhookMetrics) {
        let (labels, problems, lifted, warned, line) = match &self.note {
            ReviewNote::Verdict {
                labels,
                problems,
                lifted,
                warned,
                line,
            } => (labels, problems, lifted, warned, line),
            ReviewNote::Refused(reason) => return metrics.count_refusal(reason),
            ReviewNote::Nothing => return,
        };
        metrics.reviews.get_or_create(labels).inc();
        for rule in problems {
            metrics.denials.get_or_create(&RuleLabel { rule }).inc();
        }
        for rule in lifted {
            metrics.lifted.get_or_create(&RuleLabel { rule }).inc();
            metrics.last_lifted.set(Timestamp::now().as_second());
        }
        for rule in warned {
            metrics
                .policy_warnings
                .get_or_create(&RuleLabel { rule })
                .inc();
        }
        let Some(line) = line else {
            return;
        };
        info!(
            uid = line.uid,
            operation = labels.operation,
            kind = line.kind,
            namespace = line.namespace,
            name = line.name,
            user = line.user,
            dry_run = line.is_dry_run,
            allowed = labels.allowed == "true",
            rules = join_rules(problems),
            break_glass = join_rules(lifted),
            policies = line.policies.join(", "),
            "judged"
        );
    }
}

/// Joins the names of rules, each once.
fn join_rules(rules: &[&'static str]) -> String {
    let rules: BTreeSet<&str> = rules.iter().copied().collect();
    rules.into_iter().collect::<Vec<_>>().join(",")
}

/// Returns the name of the object of a request. Each deletion of a collection names it in the object alone.
fn object_name(request: &ReviewRequest<'_>) -> Option<String> {
    let named = request.name.clone().filter(|name| !name.is_empty());
    let of_object = || {
        let marks = GuardMarks::read(request.old_object?).ok()?;
        marks.metadata.name
    };
    named.or_else(of_object)
}

impl ReviewNote {
    fn from_verdict(
        task: ReviewTask,
        request: &ReviewRequest<'_>,
        response: &Response,
        verdict: &Verdict,
    ) -> Self {
        let rules =
            |problems: &[AdmissionProblem]| problems.iter().map(|problem| problem.rule).collect();
        // The reconciler acts on both, and knows no more than that they happened.
        let is_cause =
            request.operation == AdmissionOperation::Delete || task == ReviewTask::CoreSets;
        let is_plain = response.is_allowed()
            && !is_cause
            && verdict.lifted.is_empty()
            && verdict.breaches.is_empty();
        let warned = verdict.breaches.iter();
        let warned = warned.filter(|breach| breach.action == PolicyAction::Warn);
        Self::Verdict {
            labels: ReviewLabels {
                path: task_path(task),
                operation: request.operation.name(),
                allowed: match response.is_allowed() {
                    true => "true",
                    false => "false",
                },
            },
            problems: rules(&verdict.problems),
            lifted: rules(&verdict.lifted),
            warned: warned.map(|breach| breach.problem.rule).collect(),
            line: (!is_plain).then(|| {
                Box::new(ReviewLogLine {
                    uid: request.uid.clone().into_owned(),
                    is_dry_run: request.dry_run == Some(true),
                    kind: request.kind.kind.clone().into_owned(),
                    namespace: request.namespace.clone(),
                    name: object_name(request),
                    user: request.user_info.username.clone(),
                    policies: verdict.breaches.iter().map(Breach::to_audit_line).collect(),
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests;
