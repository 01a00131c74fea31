//! A validated review: its response, and what is counted and logged once it is final.

use std::panic::{AssertUnwindSafe, catch_unwind};

use actix_web::http::StatusCode;
use addons_admission::Facts;
use addons_admission::answer::{self, Task};
use addons_admission::policy::Breach;
use addons_admission::review::{Request, Response};
use addons_admission::rules::reference::Unseen;
use addons_admission::verdict::{Problem, Verdict};
use common::api::policy::PolicyAction;
use serde_json::json;
use tracing::{error, info};

use crate::telemetry::{Metrics, Path, Review, Rule};

/// Bytes that suffice for nearly every response, so that the buffer does not grow while it is written.
const TYPICAL: usize = 1024;

/// Status and body of the HTTP response, and what is recorded about it.
pub struct Judged {
    /// The HTTP status.
    pub status: StatusCode,
    /// The body.
    pub body: Vec<u8>,
    /// A dependency of the verdict that the facts may not contain yet. If set, the verdict is not final.
    pub unseen: Option<Unseen>,
    note: Note,
}

/// What is recorded: names and rules, never values.
enum Note {
    Verdict {
        labels: Review,
        problems: Vec<&'static str>,
        lifted: Vec<&'static str>,
        warned: Vec<&'static str>,
        line: Option<Box<Line>>,
    },
    Refused(&'static str),
    Nothing,
}

/// A log line, for denials, for what break-glass lifts, and for violations of policies.
struct Line {
    uid: String,
    kind: String,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
    policies: Vec<String>,
}

/// Returns the path of a task.
fn path(task: Task) -> &'static str {
    match task {
        Task::Mutate => "/mutate",
        Task::Validate => "/validate",
        Task::Clusters { .. } => "/clusters",
        Task::CoreSets => "/core-sets",
    }
}

impl From<Task> for Path {
    fn from(task: Task) -> Self {
        Self { path: path(task) }
    }
}

impl Judged {
    /// Parses and validates a review, and writes the response.
    pub fn of(task: Task, facts: &Facts, body: &[u8]) -> Self {
        match Request::from_slice(body) {
            Ok(request) => Self::settle(task, &request, || answer::answer(task, &request, facts)),
            Err(error) => {
                let note = Note::Refused("unreadable");
                match Response::unreadable(&error) {
                    Some(response) => Self::written(&response, note),
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
        matches!(&self.note, Note::Verdict { problems, .. } if !problems.is_empty())
    }

    /// Returns the denial for an internal error, whatever the failurePolicy is.
    pub fn failed(uid: &str) -> Self {
        let message = "the webhook failed; its log says why";
        let response = Response::failed(uid, 500, "InternalError", message);
        let failed = Self::written(&response, Note::Nothing);
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
    pub fn settle(
        task: Task,
        request: &Request<'_>,
        judge: impl FnOnce() -> Result<(Response, Verdict), serde_json::Error>,
    ) -> Self {
        match catch_unwind(AssertUnwindSafe(judge)) {
            Ok(Ok((response, verdict))) => {
                let note = Note::of(task, request, &response, &verdict);
                Self {
                    unseen: verdict.unseen,
                    ..Self::written(&response, note)
                }
            }
            Ok(Err(error)) => {
                error!(uid = %request.uid, %error, "the patch cannot be written");
                Self::failed(&request.uid)
            }
            Err(_) => {
                error!(uid = %request.uid, kind = %request.kind.kind, "a review panicked");
                Self {
                    note: Note::Refused("panic"),
                    ..Self::failed(&request.uid)
                }
            }
        }
    }

    fn written(response: &Response, note: Note) -> Self {
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
    pub fn record(&self, metrics: &Metrics) {
        let (labels, problems, lifted, warned, line) = match &self.note {
            Note::Verdict {
                labels,
                problems,
                lifted,
                warned,
                line,
            } => (labels, problems, lifted, warned, line),
            Note::Refused(reason) => return metrics.refused(reason),
            Note::Nothing => return,
        };
        metrics.reviews.get_or_create(labels).inc();
        for rule in problems {
            metrics.denials.get_or_create(&Rule { rule }).inc();
        }
        for rule in lifted {
            metrics.lifted.get_or_create(&Rule { rule }).inc();
        }
        for rule in warned {
            metrics.policy_warnings.get_or_create(&Rule { rule }).inc();
        }
        let Some(line) = line else {
            return;
        };
        let listed = |rules: &[&'static str]| {
            let mut rules = rules.to_vec();
            rules.dedup();
            rules.join(",")
        };
        info!(
            uid = line.uid,
            operation = labels.operation,
            kind = line.kind,
            namespace = line.namespace,
            name = line.name,
            user = line.user,
            allowed = labels.allowed == "true",
            rules = listed(problems),
            break_glass = listed(lifted),
            policies = line.policies.join(", "),
            "judged"
        );
    }
}

impl Note {
    fn of(task: Task, request: &Request<'_>, response: &Response, verdict: &Verdict) -> Self {
        let rules = |problems: &[Problem]| problems.iter().map(|problem| problem.rule).collect();
        let is_plain =
            response.is_allowed() && verdict.lifted.is_empty() && verdict.breaches.is_empty();
        let warned = verdict.breaches.iter();
        let warned = warned.filter(|breach| breach.action == PolicyAction::Warn);
        Self::Verdict {
            labels: Review {
                path: path(task),
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
                Box::new(Line {
                    uid: request.uid.clone().into_owned(),
                    kind: request.kind.kind.clone().into_owned(),
                    namespace: request.namespace.clone(),
                    name: request.name.clone(),
                    user: request.user_info.username.clone(),
                    policies: verdict.breaches.iter().map(Breach::line).collect(),
                })
            }),
        }
    }
}

#[cfg(test)]
mod tests;
