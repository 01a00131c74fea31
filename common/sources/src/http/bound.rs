//! Limits for the size and the duration of responses.

use std::time::Duration;

use futures::{Stream, StreamExt as _};
use reqwest::Response;

use super::error::HttpError;

/// The timeout for connecting.
pub const CONNECT: Duration = Duration::from_secs(10);
/// The timeout between two pieces of a response.
pub const IDLE: Duration = Duration::from_secs(60);
/// The timeout for a document, a chart or a commit, with all requests and retries.
pub const TIME: Duration = Duration::from_secs(300);
/// The timeout for an image, which has many layers.
pub const IMAGE_TIME: Duration = Duration::from_secs(600);

/// The maximum size in bytes of a document or of a single file in a registry.
pub const DOCUMENT: u64 = 16 << 20;
/// The maximum size in bytes of an archive or of the index of a chart repository. Large public indexes have
/// 20 MB.
pub const ARCHIVE: u64 = 64 << 20;
/// The maximum size in bytes of one page of tags or of a manifest, which is the usual limit of registries.
pub const MANIFEST: u64 = 4 << 20;
/// The maximum size in bytes of a response with a token or an error message.
pub const SMALL: u64 = 1 << 20;

/// The content has more bytes than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is larger than {} MiB", .0 >> 20)]
pub struct ContentTooLarge(pub u64);

/// Reads a stream to its end. `announced` is the size that the server states, or 0.
///
/// # Errors
/// [`ContentTooLarge`], or the error of the stream.
pub async fn read<B: AsRef<[u8]>, E: From<ContentTooLarge>>(
    stream: impl Stream<Item = Result<B, impl Into<E>>>,
    announced: u64,
    limit: u64,
) -> Result<Vec<u8>, E> {
    let mut bytes = Vec::new();
    if announced > limit {
        return Err(ContentTooLarge(limit).into());
    }
    let mut stream = std::pin::pin!(stream);
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(chunk.map_err(Into::into)?.as_ref());
        if bytes.len() as u64 > limit {
            return Err(ContentTooLarge(limit).into());
        }
    }
    Ok(bytes)
}

/// Reads the body of a response.
///
/// # Errors
/// The body has more than `limit` bytes, or the connection broke off.
pub async fn body(response: Response, limit: u64) -> Result<Vec<u8>, HttpError> {
    let announced = response.content_length().unwrap_or_default();
    read(response.bytes_stream(), announced, limit).await
}
