//! The requests that the API server saw, from its audit log.
//!
//! The API server writes a request's first line before it handles the request (`RequestReceived`, blocking mode), so
//! every request whose answer a client has seen is in the log: counting needs no waiting. Requests of the cluster's own
//! components and health checks are not logged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// The audit log of one cluster.
#[derive(Clone, Debug)]
pub struct Audit {
    path: PathBuf,
}

/// A point in the log.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

/// Some requests, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Requests(pub Vec<Request>);

/// One request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; of a path that is no
    /// resource, as discovery, the HTTP method in lower case.
    pub verb: String,
    /// The client's name for itself.
    pub agent: String,
    /// Who was authenticated; behind impersonation, who was impersonated.
    pub user: String,
    /// Path and query.
    pub uri: String,
    /// What it was about; empty for a path that is no resource.
    pub object: ObjectReference,
}

/// The object of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Plural name, as `deployments`.
    pub resource: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Empty for lists and collections.
    pub name: String,
    /// API group, empty for core.
    pub api_group: String,
    /// `status`, `scale` and so on, mostly empty.
    pub subresource: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    user: UserName,
    impersonated_user: Option<UserName>,
    #[serde(default)]
    object_ref: ObjectReference,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UserName {
    username: String,
}

impl Audit {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Now.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub fn mark(&self) -> Result<Mark> {
        let metadata = self.path.metadata();
        Ok(Mark(
            metadata
                .with_context(|| self.path.display().to_string())?
                .len(),
        ))
    }

    /// The requests since then.
    ///
    /// # Errors
    /// Where the log cannot be read.
    pub fn since(&self, mark: Mark) -> Result<Requests> {
        let mut text = String::new();
        let mut file = File::open(&self.path).with_context(|| self.path.display().to_string())?;
        file.seek(SeekFrom::Start(mark.0))?;
        file.read_to_string(&mut text)?;
        // A request that is being written may have half a line, at the beginning for the mark and at the end for now.
        let requests = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Event>(line).ok())
            .filter(|event| event.stage == "RequestReceived")
            .map(|event| Request {
                verb: event.verb,
                agent: event.user_agent,
                user: event.impersonated_user.unwrap_or(event.user).username,
                uri: event.uri,
                object: event.object_ref,
            });
        Ok(Requests(requests.collect()))
    }
}

impl Requests {
    /// Only those of this user.
    #[must_use]
    pub fn by(mut self, user: &str) -> Self {
        self.0.retain(|request| request.user == user);
        self
    }

    /// How many requests with this verb came from clients whose user agent begins so.
    #[must_use]
    pub fn count(&self, verb: &str, agent: &str) -> usize {
        self.of(agent)
            .filter(|request| request.verb == verb)
            .count()
    }

    /// How many requests of any verb came from clients whose user agent begins so.
    #[must_use]
    pub fn total(&self, agent: &str) -> usize {
        self.of(agent).count()
    }

    /// How many requests that change something, dry runs excluded, came from clients whose user agent begins so.
    #[must_use]
    pub fn writes(&self, agent: &str) -> usize {
        self.of(agent).filter(|request| request.is_write()).count()
    }

    /// The numbers by verb of clients whose user agent begins so.
    #[must_use]
    pub fn by_verb(&self, agent: &str) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for request in self.of(agent) {
            *counts.entry(request.verb.clone()).or_default() += 1;
        }
        counts
    }

    /// The requests of clients whose user agent begins so.
    pub fn of<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = &'a Request> {
        self.0
            .iter()
            .filter(move |request| request.agent.starts_with(agent))
    }
}

impl Request {
    /// Whether it changes something: no read, no dry run, no review of rights.
    #[must_use]
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        ) && !self.uri.contains("dryRun=All")
            && !matches!(
                self.object.api_group.as_str(),
                "authorization.k8s.io" | "authentication.k8s.io"
            )
    }
}
