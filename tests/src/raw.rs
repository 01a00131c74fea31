//! Requests as any client may send them, without kubectl: the answer of the API server with its warnings.

use anyhow::{Context as _, Result};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;

/// How a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Send {
    /// `GET`.
    Get,
    /// `DELETE`.
    Delete,
    /// `POST` of an object.
    Create,
    /// `PATCH` with a merge patch.
    Merge,
    /// `PATCH` with a JSON patch.
    Json,
    /// `PUT` of what is there, merged with the body; for a subresource, of the object.
    Put,
}

/// What the API server answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Code and message, where it refuses.
    pub refusal: Option<(u16, String)>,
    /// Its warnings, and those of webhooks.
    pub warnings: Vec<String>,
}

/// Tries a request as a dry run, which changes nothing.
///
/// # Errors
/// The API server cannot be reached, or answers something else than an object.
pub async fn attempt(client: &Client, send: Send, path: &str, body: &Value) -> Result<Answer> {
    let (method, content, body) = match send {
        Send::Get => ("GET", "json", Value::Null),
        Send::Delete => ("DELETE", "json", Value::Null),
        Send::Create => ("POST", "json", body.clone()),
        Send::Merge => ("PATCH", "merge-patch+json", body.clone()),
        Send::Json => ("PATCH", "json-patch+json", body.clone()),
        Send::Put => {
            let (object, _) = path.rsplit_once('/').context("a subresource")?;
            let asked = http::Request::get(object).body(Vec::new())?;
            let mut object: Value = client.request(asked).await?;
            json_patch::merge(&mut object, body);
            ("PUT", "json", object)
        }
    };
    let body = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let more = if path.contains('?') { '&' } else { '?' };
    let sent = http::Request::builder()
        .method(method)
        .uri(format!("{path}{more}dryRun=All"))
        .header("content-type", format!("application/{content}"))
        .body(Body::from(body))?;
    let answer = client.send(sent).await?;
    let is_done = answer.status().is_success();
    let warnings = answer.headers().get_all("warning").iter();
    let warnings = warnings.filter_map(|value| Some(warning(value.to_str().ok()?)));
    let warnings = warnings.collect();
    let body = answer.into_body().collect().await?.to_bytes();
    let refusal = if is_done {
        None
    } else {
        let status: Status = serde_json::from_slice(&body)
            .with_context(|| String::from_utf8_lossy(&body).into_owned())?;
        Some((status.code, status.message))
    };
    Ok(Answer { refusal, warnings })
}

/// The text of `299 - "text"`.
fn warning(header: &str) -> String {
    let text = header.split_once('"').map_or(header, |(_, text)| text);
    let text = text.strip_suffix('"').unwrap_or(text);
    text.replace("\\\"", "\"").replace("\\\\", "\\")
}

#[derive(Deserialize)]
struct Status {
    code: u16,
    message: String,
}
