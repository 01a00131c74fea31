//! Other programs (helm, kubectl, kustomize) as children of this one: what they get of our environment, what is read of their words, and
//! how they and their own children end.

use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

/// The variables that go through to them: how the network is reached. Credentials of this machine do not.
const PASSED: [&str; 9] = [
    "PATH",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Gives a program an environment of its own: of ours, only how the network is reached.
pub fn isolate(command: &mut Command) {
    command.env_clear();
    for name in PASSED {
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

/// Sends a signal (`TERM`, `KILL`) to the process group of a child: without unsafe code that is for a shell to do.
pub async fn signal(child: &Child, name: &str) {
    let Some(id) = child.id() else { return };
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", r#"kill -s "$1" -- "-$2""#, "sh", name])
        .arg(id.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _ = command.status().await;
}

/// Ends the process group of a child.
pub async fn kill(child: &mut Child) {
    signal(child, "KILL").await;
    let _ = child.kill().await;
}
