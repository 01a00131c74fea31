//! The way from an API server to the Pods behind Services: its egress to the cluster is a proxy, which is a test.
//!
//! The API server finds the ready endpoint of a Service by itself, and without one it fails. Only the connection to that
//! endpoint comes here, whatever address it has.

use std::fs;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use crate::guard::Folder;

/// Longest beginning of a connection.
const HEAD_LIMIT: usize = 4096;

/// The configuration of an API server that asks this proxy.
pub struct Egress {
    folder: Folder,
}

impl Egress {
    /// A proxy that listens, in the runtime of the caller.
    ///
    /// # Errors
    /// Of the file system.
    pub fn open() -> Result<(Self, UnixListener)> {
        let folder = Folder::new("kubectl-addons-egress-")?;
        // Over TCP the API server wants TLS on the way to the proxy, too.
        let socket = folder.path().join("egress.sock");
        let listener = UnixListener::bind(&socket).with_context(|| socket.display().to_string())?;
        let egress = json!({
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": {
                "proxyProtocol": "HTTPConnect",
                "transport": {"uds": {"udsName": socket}},
            }}],
        });
        fs::write(folder.path().join("egress.json"), egress.to_string())?;
        Ok((Self { folder }, listener))
    }

    /// The flag by which an API server finds it.
    #[must_use]
    pub fn flag(&self) -> String {
        let path = self.folder.path().join("egress.json");
        format!("--egress-selector-config-file={}", path.display())
    }
}

/// What the head of a connection asks for: of `CONNECT 10.0.0.5:9443 HTTP/1.1` the second word.
///
/// # Errors
/// Of the connection; where it asks for something else.
pub async fn endpoint(stream: &mut UnixStream) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        // Byte by byte: what comes behind it belongs to TLS.
        head.push(stream.read_u8().await?);
        if head.len() > HEAD_LIMIT {
            bail!("a head of more than {HEAD_LIMIT} bytes");
        }
    }
    let head = String::from_utf8(head)?;
    let mut words = head.split(' ');
    match (words.next(), words.next()) {
        (Some("CONNECT"), Some(endpoint)) => Ok(endpoint.to_owned()),
        _ => bail!("no CONNECT: {head}"),
    }
}

/// Tells the API server that what follows reaches the endpoint.
///
/// # Errors
/// Of the connection.
pub async fn established(stream: &mut UnixStream) -> Result<()> {
    let answer = b"HTTP/1.1 200 Connection Established\r\n\r\n";
    Ok(stream.write_all(answer).await?)
}
