//! How much and how long: the limits of what servers send.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use reqwest::Response;

use super::error::HttpError;

/// Until a server has accepted a connection.
pub const CONNECT: Duration = Duration::from_secs(10);
/// Between two pieces of an answer.
pub const IDLE: Duration = Duration::from_secs(60);
/// A document, a chart or a commit, with all of its requests and retries.
pub const TIME: Duration = Duration::from_secs(300);
/// An image, which has many layers.
pub const IMAGE_TIME: Duration = Duration::from_secs(600);

/// Bytes of a document, or of a single file in a registry.
pub const DOCUMENT: u64 = 16 << 20;
/// Bytes of an archive, or of the index of a chart repository: large public ones have 20 MB.
pub const ARCHIVE: u64 = 64 << 20;
/// Bytes of a manifest, as registries limit them, or of one page of tags.
pub const MANIFEST: u64 = 4 << 20;
/// Bytes of an answer that holds a token or explains an error.
pub const SMALL: u64 = 1 << 20;

/// More bytes than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is larger than {} MiB", .0 >> 20)]
pub struct TooLarge(pub u64);

/// Reads a stream to its end. `announced` is the size that the server names, 0 where it names none.
///
/// # Errors
/// [`TooLarge`], or the error of the stream.
pub async fn read<B: AsRef<[u8]>, E: From<TooLarge>>(
    stream: impl Stream<Item = Result<B, impl Into<E>>>,
    announced: u64,
    limit: u64,
) -> Result<Vec<u8>, E> {
    let mut bytes = Vec::new();
    if announced > limit {
        return Err(TooLarge(limit).into());
    }
    let mut stream = std::pin::pin!(stream);
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(chunk.map_err(Into::into)?.as_ref());
        if bytes.len() as u64 > limit {
            return Err(TooLarge(limit).into());
        }
    }
    Ok(bytes)
}

/// The bytes of an answer.
///
/// # Errors
/// More than `limit`, or a connection that broke off.
pub async fn body(response: Response, limit: u64) -> Result<Vec<u8>, HttpError> {
    let announced = response.content_length().unwrap_or_default();
    read(response.bytes_stream(), announced, limit).await
}
