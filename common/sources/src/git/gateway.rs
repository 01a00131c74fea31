//! Connects git to a server. Git sends its requests to a local port, and the gateway forwards them to the
//! server with the HTTP client of all sources or with ssh.
//!
//! Git therefore knows neither the server nor the credentials. Limits, redirects, forbidden addresses,
//! proxies, certificate authorities and retries are the same as for all other sources, and the gateway knows
//! the cause of a failure without parsing messages of git.
//!
//! | remote | protocol of git | connection to the server |
//! |---|---|---|
//! | `https://`, `http://` | smart HTTP | the HTTP client of all sources |
//! | `ssh://` | `git://` | the program ssh |

mod http;
mod ssh;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use http::Advertisement;

use super::GitProblem;
use super::remote::{GitRemote, GitTransport};
use crate::credentials::Credentials;
use crate::loopback::Loopback;
use crate::reach::Addresses;
use http::HttpBackend;
use ssh::SshBackend;

/// The connection of git to one server.
pub struct Gateway<'a> {
    loopback: Loopback,
    /// What the connections of git have in common.
    pub traffic: Arc<Traffic>,
    backend: GatewayBackend<'a>,
}

enum GatewayBackend<'a> {
    Http(Box<HttpBackend>),
    Ssh(SshBackend<'a>),
}

/// The received bytes, the cause of a failure and the capabilities of the server.
#[derive(Debug, Default)]
pub struct Traffic {
    /// The number of bytes that may still be received.
    left: AtomicU64,
    failure: Mutex<Option<GitProblem>>,
    /// The first response of the server, only over HTTP.
    advertisement: Mutex<Option<Advertisement>>,
}

impl<'a> Gateway<'a> {
    /// Opens a gateway. Keys are written to `home`, which is private and removed after the fetch.
    ///
    /// # Errors
    /// There is no free port, certificate authorities or keys cannot be used, or the host has a forbidden
    /// address.
    pub async fn open(
        remote: &'a GitRemote,
        credentials: Option<&'a Credentials>,
        addresses: Addresses,
        home: &'a Path,
    ) -> Result<Self, GitProblem> {
        let backend = match &remote.transport {
            GitTransport::Http(url) => {
                GatewayBackend::Http(Box::new(HttpBackend::new(url, credentials, addresses)?))
            }
            GitTransport::Ssh(ssh) => {
                GatewayBackend::Ssh(SshBackend::new(ssh, credentials, addresses, home).await?)
            }
            GitTransport::Local(_) => {
                return Err(GitProblem::Remote {
                    why: "a folder is read, not asked",
                });
            }
        };
        let loopback = Loopback::open().await;
        Ok(Self {
            loopback: loopback.map_err(|source| GitProblem::Loopback { source })?,
            traffic: Arc::default(),
            backend,
        })
    }

    /// The protocol that git must use.
    pub fn protocol(&self) -> &'static str {
        match self.backend {
            GatewayBackend::Http(_) => "http",
            GatewayBackend::Ssh(_) => "git",
        }
    }

    /// The URL of the remote for git. Over HTTP it does not contain the token, which is in a header instead,
    /// because other users can read the arguments of `git-remote-http`.
    pub fn url(&self) -> String {
        let (address, token) = (self.loopback.address(), self.loopback.token());
        match self.backend {
            GatewayBackend::Http(_) => format!("http://{address}{}", http::PATH),
            GatewayBackend::Ssh(_) => format!("git://{address}/{token}"),
        }
    }

    /// The settings of git that let it reach only the gateway.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let header = format!("Authorization: Bearer {}", self.loopback.token());
        match self.backend {
            GatewayBackend::Http(_) => vec![
                ("http.extraHeader", header),
                ("http.followRedirects", "false".to_owned()),
                ("http.proxy", String::new()),
                ("http.postBuffer", http::MAX_REQUEST.to_string()),
            ],
            GatewayBackend::Ssh(_) => Vec::new(),
        }
    }

    /// Sets how many more bytes may be received.
    pub fn allow(&self, bytes: u64) {
        self.traffic.left.store(bytes, Ordering::Relaxed);
    }

    /// Serves git until `work` is done. Then connections end and ssh is killed.
    pub async fn serve_while<T>(&self, work: impl Future<Output = T>) -> T {
        let serve = async |stream| match &self.backend {
            GatewayBackend::Http(http) => http.serve(&self.loopback, &self.traffic, stream).await,
            GatewayBackend::Ssh(ssh) => ssh.serve(&self.loopback, &self.traffic, stream).await,
        };
        self.loopback.serve_while(work, serve).await
    }
}

impl Traffic {
    /// Counts received bytes.
    ///
    /// # Errors
    /// More bytes than allowed were received.
    fn received(&self, bytes: usize) -> Result<(), GitProblem> {
        let bytes = bytes as u64;
        let counted = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        counted.map(drop).map_err(|_| GitProblem::TooLarge)
    }

    /// Records the cause of a failure, which git does not know. Only the first cause is kept.
    fn fail(&self, problem: GitProblem) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(problem);
    }

    /// Takes the reason why git failed, if the gateway caused it.
    pub fn failure(&self) -> Option<GitProblem> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }

    /// The capabilities of the server, from an earlier run or from this one.
    pub fn advertisement(&self) -> Option<Advertisement> {
        let known = self.advertisement.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the capabilities of the server. With `None`, they are requested from the server again.
    pub fn set_advertisement(&self, advertisement: Option<Advertisement>) {
        let known = self.advertisement.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = advertisement;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// Sends a request to the port and returns the response.
    async fn ask(gateway: &Gateway<'_>, request: &str) -> String {
        let address = gateway.loopback.address();
        let client = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut text = String::new();
            // A closed connection is a valid response too.
            let _ = stream.read_to_string(&mut text).await;
            text
        };
        gateway.serve_while(client).await
    }

    #[tokio::test]
    async fn only_the_git_that_has_the_token_is_served_over_http() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let home = tempfile::tempdir().unwrap();
        let remote = GitRemote::parse("http://127.0.0.1:9/x").unwrap();
        let gateway = Gateway::open(&remote, None, Addresses::Any, home.path());
        let gateway = gateway.await.unwrap();
        gateway.traffic.set_advertisement(Some(Advertisement {
            bytes: b"known".to_vec(),
            base: "http://127.0.0.1:9/x".to_owned(),
        }));
        let token = gateway.loopback.token();
        let other = "0".repeat(token.len());
        let refs = "/repository/info/refs?service=git-upload-pack";
        for (path, token, want) in [
            (refs, token, "HTTP/1.1 200"),
            (refs, "", "HTTP/1.1 401"),
            (refs, &other, "HTTP/1.1 401"),
            (
                "/repository/info/refs?service=git-receive-pack",
                token,
                "HTTP/1.1 404",
            ),
            (
                "/other/info/refs?service=git-upload-pack",
                token,
                "HTTP/1.1 404",
            ),
            ("/repository/git-upload-pack", token, "HTTP/1.1 404"),
        ] {
            let request = format!(
                "GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
            );
            let text = ask(&gateway, &request).await;
            assert!(text.starts_with(want), "{path} {token}: {text}");
        }
    }

    #[tokio::test]
    async fn only_the_git_that_has_the_token_is_served_over_ssh() {
        let home = tempfile::tempdir().unwrap();
        let remote = GitRemote::parse("ssh://a@127.0.0.1:9/x").unwrap();
        let gateway = Gateway::open(&remote, None, Addresses::Any, home.path());
        let gateway = gateway.await.unwrap();
        let token = gateway.loopback.token();
        let other = "0".repeat(token.len());
        for (path, is_served) in [(token, true), (other.as_str(), false), ("x", false)] {
            let line = format!("git-upload-pack /{path}\0host=127.0.0.1\0\0version=2\0");
            ask(&gateway, &format!("{:04x}{line}", line.len() + 4)).await;
            // There is no server, so ssh fails if it was started.
            assert_eq!(gateway.traffic.failure().is_some(), is_served, "{path}");
        }
    }
}
