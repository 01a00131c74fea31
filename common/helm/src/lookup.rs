//! `lookup` in templates: helm asks a server for live objects. During a rendering, that server is ours, on loopback.
//!
//! It returns only objects that the caller gives it. With `--dry-run=server` against the cluster, helm would read any object with the
//! caller's rights, ignore `--api-versions`, and fail if the chart's own definitions are not served yet.

mod capabilities;
mod discovery;
mod endpoint;

use std::collections::BTreeSet;
use std::fmt;

use common::manifest::key::Gvk;
use common::manifest::kinds::KindTable;
use serde_json::Value;
use tokio::sync::{OnceCell, mpsc, oneshot};

pub(super) use capabilities::{Capabilities, read_capabilities};
pub(super) use endpoint::Endpoint;

/// The objects that a template asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookupQuery {
    /// Group, version and kind, as the template names them.
    pub gvk: Gvk,
    /// Namespace; `None` if the template names none.
    pub namespace: Option<String>,
    /// Name; `None` for all objects of the kind.
    pub name: Option<String>,
}

/// A query, with the channel for its answer.
pub struct LookupQuestion {
    /// The objects that the template asks for.
    pub query: LookupQuery,
    /// Receives the objects, or an error message. Helm gets the message, and ends the rendering with it.
    pub answer: oneshot::Sender<Result<Vec<Value>, String>>,
}

/// The objects that `lookup` finds while one chart is rendered.
pub struct Lookup<'a> {
    /// The kinds that the cluster serves.
    kinds: &'a KindTable,
    questions: mpsc::Sender<LookupQuestion>,
    /// The capabilities in a rendering without `lookup`, read once.
    pub(super) capabilities: OnceCell<Capabilities>,
}

impl<'a> Lookup<'a> {
    /// Returns a lookup, and the receiver of its questions. All questions must be answered while a chart is rendered.
    #[must_use]
    pub fn new(kinds: &'a KindTable) -> (Self, mpsc::Receiver<LookupQuestion>) {
        let (questions, asked) = mpsc::channel(1);
        let lookup = Self {
            kinds,
            questions,
            capabilities: OnceCell::new(),
        };
        (lookup, asked)
    }

    async fn find(&self, query: LookupQuery) -> Result<Vec<Value>, String> {
        let (answer, answered) = oneshot::channel();
        let silence = || "no one answers".to_owned();
        let sent = self.questions.send(LookupQuestion { query, answer }).await;
        sent.map_err(|_| silence())?;
        answered.await.unwrap_or_else(|_| Err(silence()))
    }
}

impl fmt::Debug for Lookup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

/// Parses the kinds that helm could not map from its message: `no matches for kind "Certificate" in version "cert-manager.io/v1"`.
pub(super) fn unmapped_kinds(message: &str) -> BTreeSet<Gvk> {
    let found = message.split("no matches for kind \"").skip(1);
    let kinds = found.filter_map(|rest| {
        let (kind, rest) = rest.split_once('"')?;
        let (api_version, _) = rest.strip_prefix(" in version \"")?.split_once('"')?;
        Some(Gvk::new(api_version, kind))
    });
    kinds.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_helm_does_not_know() {
        let message = "unable to build kubernetes objects from release manifest: [resource mapping not found for name: \"a\" \
            namespace: \"\" from \"\": no matches for kind \"Own\" in version \"own.io/v1\"\nensure CRDs are installed first, \
            resource mapping not found for name: \"b\" namespace: \"\" from \"\": no matches for kind \"Pot\" in version \"v2\"\n\
            ensure CRDs are installed first, no matches for kind \"Cut";
        let expected = [Gvk::new("own.io/v1", "Own"), Gvk::new("v2", "Pot")];
        assert_eq!(unmapped_kinds(message), expected.into());
        assert!(unmapped_kinds("nil pointer").is_empty());
    }
}
