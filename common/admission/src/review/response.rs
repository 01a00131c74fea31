//! The response to a review: allowed, patched or denied.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::Serialize;

use super::{API_VERSION, KIND, ReviewRequest};
use crate::policy::Breach;
use crate::verdict::{Denial, Verdict};

/// The API server truncates a warning at 256 characters, and all warnings together at 4096.
const MAX_WARNING: usize = 256;
const MAX_WARNINGS: usize = 4096;

/// Bytes that suffice for the defaults of an installation without values.
const TYPICAL_PATCH: usize = 512;

/// The response to a review.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    api_version: &'static str,
    kind: &'static str,
    response: ResponseBody,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseBody {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<DenialStatus>,
    /// Set together with `patch_type`, or not at all.
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
struct DenialStatus {
    status: &'static str,
    code: u16,
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<DenialDetails>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct DenialDetails {
    retry_after_seconds: u32,
}

impl Response {
    /// Returns a response that allows the request unchanged.
    #[must_use]
    pub fn allowed(uid: &str) -> Self {
        Self {
            api_version: API_VERSION,
            kind: KIND,
            response: ResponseBody {
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

    /// Returns a response that allows the request with the changes of `patch`, which may be empty.
    ///
    /// # Errors
    /// The patch cannot be written as JSON.
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

    /// Returns a denial without a verdict. The message must not contain values.
    #[must_use]
    pub fn failed(uid: &str, code: u16, reason: &'static str, message: &str) -> Self {
        let mut response = Self::allowed(uid);
        response.response.allowed = false;
        response.response.status = Some(DenialStatus {
            status: "Failure",
            code,
            reason,
            message: printable(message),
            details: None,
        });
        response
    }

    /// Returns a denial because there is no verdict now. The API server tells the client to try again after `seconds`.
    #[must_use]
    pub fn retry_later(uid: &str, message: &str, seconds: u32) -> Self {
        let mut response = Self::failed(uid, 429, "TooManyRequests", message);
        if let Some(status) = &mut response.response.status {
            status.details = Some(DenialDetails {
                retry_after_seconds: seconds,
            });
        }
        response
    }

    /// Returns the response to `request` with `verdict`.
    #[must_use]
    pub fn from_verdict(request: &ReviewRequest<'_>, verdict: &Verdict) -> Self {
        let mut response = Self::allowed(&request.uid);
        let answer = &mut response.response;
        answer.warnings = accepted_warnings(&verdict.warnings);
        if !verdict.lifted.is_empty() {
            let rules: Vec<&str> = verdict.lifted.iter().map(|lifted| lifted.rule).collect();
            answer
                .audit_annotations
                .insert("break-glass", rules.join(","));
        }
        if !verdict.breaches.is_empty() {
            let lines: Vec<String> = verdict.breaches.iter().map(Breach::to_audit_line).collect();
            answer
                .audit_annotations
                .insert("policies", lines.join(", "));
        }
        if let Some(denial) = verdict.denial() {
            answer.allowed = false;
            answer.status = Some(denial_status(denial));
        }
        response
    }

    /// Returns whether the request is allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.response.allowed
    }

    /// Returns the echoed uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.response.uid
    }

    /// Returns the message of a denial.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        let status = self.response.status.as_ref()?;
        Some(&status.message)
    }
}

/// Returns the status of a denial, without details: if a 422 lists causes, kubectl prints them instead of the message, and the user does
/// not see which webhook denied the request.
fn denial_status(denial: Denial) -> DenialStatus {
    DenialStatus {
        status: "Failure",
        code: denial.code,
        reason: denial.reason,
        message: printable(&denial.message),
        details: None,
    }
}

/// Returns the warnings that the API server passes on: without control characters, and within its limits.
fn accepted_warnings(all: &[String]) -> Vec<String> {
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

/// Replaces control characters. Names in messages come from the request, and must not control a terminal or a log.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
