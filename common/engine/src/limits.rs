//! Limits the answers of a server whose address came from a Secret (semantics 6.4). Answers are held, parsed and kept: a few bytes of text
//! can take much more memory, so scalars, lists, maps and objects are counted as well. The limits belong to the server, wherever the
//! records of its installations are.
//!
//! | limit | of |
//! |---|---|
//! | [`LARGEST_ANSWER`], [`MAX_NODES`], [`MAX_ITEMS`] | one answer; one page of a list |
//! | [`LARGEST_LIST`] | all pages of a list, by the memory they take |
//! | [`LARGEST_SMALL_ANSWER`] | answers that are received at the same time; of larger ones, one at a time |

use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use tokio::sync::{Semaphore, SemaphorePermit};

use common::entrance;

use super::error::EngineError;

/// Maximum size of an answer, in bytes.
pub(super) const LARGEST_ANSWER: usize = 64 << 20;
/// Maximum number of scalars, lists and maps in one answer.
const MAX_NODES: usize = 2_000_000;
/// Maximum number of objects in one page: 100 are requested, but an aggregated API may not support pages.
pub(super) const MAX_ITEMS: usize = 10_000;
/// Maximum size of a list, in bytes of memory.
pub(super) const LARGEST_LIST: usize = 256 << 20;
/// Minimum size that a page counts with, so that a list of empty pages ends, too.
pub(super) const SMALLEST_PAGE: usize = 128 << 10;
/// Memory of a scalar, list or map in addition to its text.
const NODE_BYTES: usize = 32;
/// Maximum size of an answer that is received along with others of the same server.
const LARGEST_SMALL_ANSWER: usize = 2 << 20;

/// Limits for the answers of a server.
#[derive(Debug)]
pub(super) struct ServerLimits {
    large: Semaphore,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            large: Semaphore::new(1),
        }
    }
}

/// The body of an answer.
pub(super) struct ReceivedBody<'a> {
    pub(super) bytes: Vec<u8>,
    /// Held until a large answer is parsed.
    _large: Option<SemaphorePermit<'a>>,
}

/// Why an answer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LimitExceeded {
    /// It has too many scalars, lists and maps.
    #[error("it has more than {MAX_NODES} scalars, lists and maps")]
    Nodes,
    /// It has too many objects.
    #[error("it has more than {MAX_ITEMS} objects in one page")]
    Items,
    /// All pages of the list together are too large.
    #[error("the list takes more than {} MiB", LARGEST_LIST >> 20)]
    List,
}

impl LimitExceeded {
    /// Returns the error for an answer or a list.
    pub(super) fn into_error(self, what: &str) -> EngineError {
        EngineError::Api {
            what: what.to_owned(),
            message: match self {
                Self::List => self.to_string(),
                Self::Nodes | Self::Items => format!("the server's answer is not read: {self}"),
            },
            code: 0,
        }
    }
}

/// Receives the body of an answer, within the limits if the server has any.
///
/// # Errors
/// The body is too large, or the connection breaks.
pub(super) async fn receive(
    limits: Option<&ServerLimits>,
    body: Body,
) -> Result<ReceivedBody<'_>, kube::Error> {
    let largest = limits.map_or(usize::MAX, |_| LARGEST_ANSWER);
    let mut body = Limited::new(body, largest);
    let mut bytes: Vec<u8> = Vec::new();
    let mut large = None;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(kube::Error::Service)?.into_data() else {
            continue;
        };
        bytes.extend_from_slice(&data);
        if let Some(limits) = limits
            && large.is_none()
            && bytes.len() > LARGEST_SMALL_ANSWER
        {
            // The semaphore is never closed.
            large = limits.large.acquire().await.ok();
        }
    }
    Ok(ReceivedBody {
        bytes,
        _large: large,
    })
}

impl ServerLimits {
    /// Refuses an answer that would take too much memory when parsed; otherwise returns its size in memory.
    ///
    /// # Errors
    /// [`LimitExceeded`].
    pub(super) fn check(&self, bytes: &[u8]) -> Result<usize, LimitExceeded> {
        let nodes = entrance::count_nodes(bytes, usize::MAX);
        match nodes > MAX_NODES {
            true => Err(LimitExceeded::Nodes),
            false => Ok(bytes.len().saturating_add(nodes.saturating_mul(NODE_BYTES))),
        }
    }

    /// Adds the size of a page to that of the previous pages.
    ///
    /// # Errors
    /// [`LimitExceeded::List`].
    pub(super) fn add_page(&self, taken: &mut usize, page: usize) -> Result<(), LimitExceeded> {
        *taken = taken.saturating_add(page.max(SMALLEST_PAGE));
        match *taken > LARGEST_LIST {
            true => Err(LimitExceeded::List),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_more_memory_than_it_has_bytes() {
        let limits = ServerLimits::default();
        let empty = |count: usize| format!("{{\"items\":[{}{{}}]}}", "{},".repeat(count));
        assert!(
            limits
                .check(empty(1000).as_bytes())
                .is_ok_and(|weight| weight > 60_000)
        );
        assert_eq!(
            limits.check(empty(MAX_NODES / 2).as_bytes()),
            Err(LimitExceeded::Nodes)
        );
    }

    #[test]
    fn a_list_ends_by_what_it_takes_and_by_its_pages() {
        let limits = ServerLimits::default();
        for (page, pages) in [(0, LARGEST_LIST / SMALLEST_PAGE), (LARGEST_LIST / 4, 4)] {
            let mut taken = 0;
            for _ in 0..pages {
                assert_eq!(limits.add_page(&mut taken, page), Ok(()));
            }
            assert_eq!(limits.add_page(&mut taken, page), Err(LimitExceeded::List));
        }
    }

    #[tokio::test]
    async fn one_large_answer_is_held_at_a_time() {
        let limits = ServerLimits::default();
        let large = || Body::from(vec![b' '; LARGEST_SMALL_ANSWER + 1]);
        let first = receive(Some(&limits), large()).await.unwrap();
        let small = receive(Some(&limits), Body::from(vec![b' '; LARGEST_SMALL_ANSWER])).await;
        assert_eq!(small.unwrap().bytes.len(), LARGEST_SMALL_ANSWER);
        let second = receive(Some(&limits), large());
        let waited = tokio::time::timeout(std::time::Duration::from_millis(50), second).await;
        assert!(waited.is_err(), "the first one is not read yet");
        drop(first);
        assert!(receive(Some(&limits), large()).await.is_ok());
        assert!(receive(None, large()).await.is_ok());
    }
}
