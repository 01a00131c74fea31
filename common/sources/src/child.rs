//! Other programs (helm, kubectl, kustomize) as children of this one: what they get of our environment, and what is read of their words.

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::platform;

/// The variables that say how the network is reached.
const NETWORK: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Gives a program an environment of its own: of ours, only how programs are found and the network is reached. Credentials of this
/// machine are not passed.
pub fn isolate(command: &mut Command) {
    command.env_clear();
    for name in platform::PASSED.into_iter().chain(NETWORK) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// All that a pipe holds; `None` where that is more than `limit`.
///
/// # Errors
/// Those of the pipe.
pub async fn all(
    pipe: Option<impl AsyncRead + Unpin>,
    limit: usize,
) -> std::io::Result<Option<Vec<u8>>> {
    let Some(pipe) = pipe else {
        return Ok(Some(Vec::new()));
    };
    let mut bytes = Vec::new();
    pipe.take(limit as u64 + 1).read_to_end(&mut bytes).await?;
    Ok((bytes.len() <= limit).then_some(bytes))
}

/// The beginning of what a pipe holds; the rest is read, for a full pipe would hold the program for ever.
///
/// # Errors
/// Those of the pipe.
pub async fn beginning(
    pipe: Option<impl AsyncRead + Unpin>,
    limit: usize,
) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        (&mut pipe)
            .take(limit as u64)
            .read_to_end(&mut bytes)
            .await?;
        tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    }
    Ok(bytes)
}
