//! The answer: allowed, patched or denied.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::Serialize;

use super::{API_VERSION, KIND, Request};
use crate::policy::Breach;
use crate::verdict::{Denial, Verdict};

/// The API server cuts a warning at 256 characters, and all of them at 4096.
const MAX_WARNING: usize = 256;
const MAX_WARNINGS: usize = 4096;

/// Bytes that the defaults of an installation without values fit into.
const TYPICAL_PATCH: usize = 512;

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
#[serde(rename_all = "camelCase")]
struct Details {
    retry_after_seconds: u32,
}

impl Response {
    /// Allowed without changes.
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
            let mut text = Vec::with_capacity(TYPICAL_PATCH);
            serde_json::to_writer(&mut text, patch)?;
            response.response.patch = Some(STANDARD.encode(text));
            response.response.patch_type = Some("JSONPatch");
        }
        Ok(response)
    }

    /// Denied because there is no verdict; the message names no value.
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

    /// Denied because there is no verdict now; the API server tells the client to try again after some seconds.
    #[must_use]
    pub fn later(uid: &str, message: &str, seconds: u32) -> Self {
        let mut response = Self::failed(uid, 429, "TooManyRequests", message);
        if let Some(status) = &mut response.response.status {
            status.details = Some(Details {
                retry_after_seconds: seconds,
            });
        }
        response
    }

    /// The response to `request` with `verdict`.
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
        if !verdict.breaches.is_empty() {
            let lines: Vec<String> = verdict.breaches.iter().map(Breach::line).collect();
            answer
                .audit_annotations
                .insert("policies", lines.join(", "));
        }
        if let Some(denial) = verdict.denial() {
            answer.allowed = false;
            answer.status = Some(status(denial));
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

/// The status of a denial, without details: where a 422 lists causes, kubectl prints them in place of the message, and
/// the user does not see which webhook denied it.
fn status(denial: Denial) -> Status {
    Status {
        status: "Failure",
        code: denial.code,
        reason: denial.reason,
        message: printable(&denial.message),
        details: None,
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

/// Names in messages come from the request: control characters must not reach a terminal or a log.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
