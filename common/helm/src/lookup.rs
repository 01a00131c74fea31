//! `lookup` in templates: helm asks a server for live objects, and that server is ours, on loopback, for the time of one rendering.
//!
//! It answers from what the caller gives it and nothing else. Helm's own `--dry-run=server` against the cluster would read any
//! object with the caller's rights, ignores `--api-versions`, and fails where the chart's own definitions are not served yet.

mod capabilities;
mod discovery;
mod endpoint;

use std::collections::BTreeSet;
use std::fmt;

use common::manifest::key::Gvk;
use common::manifest::kinds::KindTable;
use serde_json::Value;
use tokio::sync::{OnceCell, mpsc, oneshot};

pub(super) use capabilities::{Capabilities, capabilities};
pub(super) use endpoint::Endpoint;

/// What a template asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Query {
    /// Version and kind, as the template names them.
    pub gvk: Gvk,
    /// Namespace; `None` = none is named.
    pub namespace: Option<String>,
    /// Name; `None` = all of them.
    pub name: Option<String>,
}

/// A query, and where its answer is expected.
pub struct Question {
    /// What a template asks for.
    pub query: Query,
    /// The objects. A failure is told to helm, which ends the rendering with these words.
    pub answer: oneshot::Sender<Result<Vec<Value>, String>>,
}

/// What `lookup` sees in the renderings of one chart.
pub struct Lookup<'a> {
    /// The kinds that the cluster serves.
    kinds: &'a KindTable,
    questions: mpsc::Sender<Question>,
    /// Those of a rendering without `lookup`, read once.
    pub(super) capabilities: OnceCell<Capabilities>,
}

impl<'a> Lookup<'a> {
    /// With whom it asks: all questions have to be answered while something is rendered.
    #[must_use]
    pub fn new(kinds: &'a KindTable) -> (Self, mpsc::Receiver<Question>) {
        let (questions, asked) = mpsc::channel(1);
        let lookup = Self {
            kinds,
            questions,
            capabilities: OnceCell::new(),
        };
        (lookup, asked)
    }

    async fn find(&self, query: Query) -> Result<Vec<Value>, String> {
        let (answer, answered) = oneshot::channel();
        let silence = || "no one answers".to_owned();
        let sent = self.questions.send(Question { query, answer }).await;
        sent.map_err(|_| silence())?;
        answered.await.unwrap_or_else(|_| Err(silence()))
    }
}

impl fmt::Debug for Lookup<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lookup")
    }
}

/// The kinds that helm could not map, out of its words: `no matches for kind "Certificate" in version "cert-manager.io/v1"`.
pub(super) fn unmapped(message: &str) -> BTreeSet<Gvk> {
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
        assert_eq!(unmapped(message), expected.into());
        assert!(unmapped("nil pointer").is_empty());
    }
}
