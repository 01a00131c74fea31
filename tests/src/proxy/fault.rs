//! Which request is broken, and how.

use std::time::Duration;

/// Breaks some of the requests that it is about.
#[derive(Clone, Debug)]
pub struct Fault {
    client: Option<String>,
    method: Option<String>,
    path: Option<String>,
    whole_path: Option<String>,
    writes: bool,
    changes: bool,
    first: usize,
    times: usize,
    action: Action,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is delivered later.
    Delay(Duration),
    /// It is delivered when the proxy lets go what is held up.
    Hold,
    /// It is not delivered, and answered with a Kubernetes Status of this code.
    Answer {
        /// 429, 500, 503 and so on.
        status: u16,
        /// Seconds in the header Retry-After.
        retry_after: Option<u32>,
    },
    /// It is not delivered, and answered with this JSON: a server of another version.
    Say(String),
    /// A read is answered as it was before ([`super::Proxy::remember`]): a member that lags behind. It is delivered where it was not
    /// asked before.
    Replay,
    /// The connection is closed without an answer.
    Cut {
        /// Whether the API server handles the request before.
        delivered: bool,
    },
    /// No answer comes, and the connection stays open until the client gives up.
    Hang {
        /// Whether the API server handles the request.
        delivered: bool,
    },
    /// As [`Action::Cut`], and the client never gets through again: as a process that was killed at this request.
    Stop {
        /// Whether the API server handles the request before.
        delivered: bool,
    },
}

/// A fault that counts.
pub(super) struct Armed {
    fault: Fault,
    matched: usize,
}

impl Fault {
    /// Hits request `number` of those that it is about, counted from 1.
    #[must_use]
    pub fn at(number: usize, action: Action) -> Self {
        Self {
            client: None,
            method: None,
            path: None,
            whole_path: None,
            writes: false,
            changes: false,
            first: number,
            times: 1,
            action,
        }
    }

    /// Hits every request that it is about.
    #[must_use]
    pub fn always(action: Action) -> Self {
        Self::at(1, action).times(usize::MAX)
    }

    /// Hits so many requests in a row.
    #[must_use]
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Only about requests of this client.
    #[must_use]
    pub fn client(self, name: &str) -> Self {
        Self {
            client: Some(name.to_owned()),
            ..self
        }
    }

    /// Only about requests with this HTTP method.
    #[must_use]
    pub fn method(self, method: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            ..self
        }
    }

    /// Only about requests whose path and query contain this.
    #[must_use]
    pub fn path(self, part: &str) -> Self {
        Self {
            path: Some(part.to_owned()),
            ..self
        }
    }

    /// Only about requests of this path, without a query.
    #[must_use]
    pub fn at_path(self, path: &str) -> Self {
        Self {
            whole_path: Some(path.to_owned()),
            ..self
        }
    }

    /// Only about requests that are not reads.
    #[must_use]
    pub fn changes(self) -> Self {
        Self {
            changes: true,
            ..self
        }
    }

    /// Not about dry runs.
    #[must_use]
    pub fn writes(self) -> Self {
        Self {
            writes: true,
            ..self
        }
    }
}

impl From<Fault> for Armed {
    fn from(fault: Fault) -> Self {
        Self { fault, matched: 0 }
    }
}

impl Armed {
    /// Counts the request, and says what to do with it.
    pub(super) fn hit(&mut self, client: &str, method: &str, uri: &str) -> Option<Action> {
        let Fault {
            client: only_client,
            method: only_method,
            path,
            whole_path,
            writes,
            changes,
            first,
            times,
            action,
        } = &self.fault;
        let about = only_client.as_ref().is_none_or(|name| name == client)
            && only_method.as_ref().is_none_or(|name| name == method)
            && path.as_ref().is_none_or(|part| uri.contains(part))
            && whole_path.as_ref().is_none_or(|path| uri == path)
            && !(*writes && uri.contains("dryRun=All"))
            && !(*changes && method == "GET");
        if !about {
            return None;
        }
        self.matched += 1;
        let hit = self.matched >= *first && self.matched - first < *times;
        hit.then(|| action.clone())
    }
}
