//! Between git and a server: git talks to a port of this machine, and what comes from there goes to the server by the clients that all
//! sources share.
//!
//! So git knows neither the server nor the credentials. Limits, redirects, addresses that are out of reach, proxies, certificate
//! authorities and retries are those of every other source, and a failure is seen where it happens instead of being read from messages.
//!
//! | remote | git speaks | to the server |
//! |---|---|---|
//! | `https://`, `http://` | smart HTTP | our HTTP client |
//! | `ssh://` | its own protocol (`git://`) | the program ssh |

mod http;
mod ssh;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use http::Advertisement;

use super::Problem;
use super::remote::{Remote, Way};
use crate::credentials::Credentials;
use crate::loopback::Loopback;
use crate::reach::Addresses;
use http::HttpWay;
use ssh::SshWay;

/// A way to one server.
pub struct Gateway<'a> {
    loopback: Loopback,
    traffic: Arc<Traffic>,
    way: Server<'a>,
}

enum Server<'a> {
    Http(Box<HttpWay>),
    Ssh(SshWay<'a>),
}

/// What passed, and why it ended.
#[derive(Debug, Default)]
struct Traffic {
    /// Bytes that may still be received.
    left: AtomicU64,
    failure: Mutex<Option<Problem>>,
    /// Over HTTP: the first answer of the server.
    advertisement: Mutex<Option<Advertisement>>,
}

impl<'a> Gateway<'a> {
    /// Opens one. Keys are written into `home`, which is private and deleted after the fetch.
    ///
    /// # Errors
    /// There is no free port; certificate authorities or keys that cannot be used; a host that is out of reach.
    pub async fn open(
        remote: &'a Remote,
        credentials: Option<&'a Credentials>,
        addresses: Addresses,
        home: &'a Path,
    ) -> Result<Self, Problem> {
        let way = match &remote.way {
            Way::Http(url) => Server::Http(Box::new(HttpWay::new(url, credentials, addresses)?)),
            Way::Ssh(ssh) => Server::Ssh(SshWay::new(ssh, credentials, addresses, home).await?),
            Way::Local(_) => {
                return Err(Problem::Remote {
                    why: "a folder is read, not asked",
                });
            }
        };
        let loopback = Loopback::open().await;
        Ok(Self {
            loopback: loopback.map_err(|source| Problem::Loopback { source })?,
            traffic: Arc::default(),
            way,
        })
    }

    /// The protocol that git has to speak.
    pub fn protocol(&self) -> &'static str {
        match self.way {
            Server::Http(_) => "http",
            Server::Ssh(_) => "git",
        }
    }

    /// The remote for git. Others may read the arguments of `git-remote-http`: there, the token is in a header.
    pub fn url(&self) -> String {
        let (address, token) = (self.loopback.address(), self.loopback.token());
        match self.way {
            Server::Http(_) => format!("http://{address}{}", http::PATH),
            Server::Ssh(_) => format!("git://{address}/{token}"),
        }
    }

    /// Settings of git with which it reaches the gateway, and nothing else.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let header = format!("Authorization: Bearer {}", self.loopback.token());
        match self.way {
            Server::Http(_) => vec![
                ("http.extraHeader", header),
                ("http.followRedirects", "false".to_owned()),
                ("http.proxy", String::new()),
                ("http.postBuffer", http::MAX_REQUEST.to_string()),
            ],
            Server::Ssh(_) => Vec::new(),
        }
    }

    /// Sets how many bytes may be received from now on.
    pub fn allow(&self, bytes: u64) {
        self.traffic.left.store(bytes, Ordering::Relaxed);
    }

    /// Serves git until the work is done. When this is dropped, connections end and ssh is killed.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let serve = async |stream| match &self.way {
            Server::Http(http) => http.serve(&self.loopback, &self.traffic, stream).await,
            Server::Ssh(ssh) => ssh.serve(&self.loopback, &self.traffic, stream).await,
        };
        self.loopback.during(work, serve).await
    }

    /// Takes the reason why git failed, if that happened here.
    pub fn failure(&self) -> Option<Problem> {
        self.traffic.failure()
    }

    /// The capabilities of the server, from an earlier run or to be kept for later ones.
    pub fn advertisement(&self) -> Option<Advertisement> {
        self.traffic.advertisement()
    }

    /// Sets the capabilities of the server. Without any, the server is asked for them again.
    pub fn set_advertisement(&self, advertisement: Option<Advertisement>) {
        self.traffic.set_advertisement(advertisement);
    }
}

impl Traffic {
    /// Counts received bytes.
    ///
    /// # Errors
    /// More than allowed.
    fn received(&self, bytes: usize) -> Result<(), Problem> {
        let bytes = bytes as u64;
        let counted = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        counted.map(drop).map_err(|_| Problem::TooLarge)
    }

    /// Keeps the cause, which git does not know. The first one is kept.
    fn fail(&self, problem: Problem) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(problem);
    }

    fn failure(&self) -> Option<Problem> {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.take()
    }

    fn advertisement(&self) -> Option<Advertisement> {
        let known = self.advertisement.lock();
        known.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_advertisement(&self, advertisement: Option<Advertisement>) {
        let known = self.advertisement.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = advertisement;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    use super::*;

    /// What a client of the port gets.
    async fn ask(gateway: &Gateway<'_>, request: &str) -> String {
        let address = gateway.loopback.address();
        let client = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut text = String::new();
            // A connection that is cut is an answer, too.
            let _ = stream.read_to_string(&mut text).await;
            text
        };
        gateway.during(client).await
    }

    #[tokio::test]
    async fn only_the_git_that_has_the_token_is_served_over_http() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let home = tempfile::tempdir().unwrap();
        let remote = Remote::parse("http://127.0.0.1:9/x").unwrap();
        let gateway = Gateway::open(&remote, None, Addresses::Any, home.path());
        let gateway = gateway.await.unwrap();
        gateway.set_advertisement(Some(Advertisement {
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
        let remote = Remote::parse("ssh://a@127.0.0.1:9/x").unwrap();
        let gateway = Gateway::open(&remote, None, Addresses::Any, home.path());
        let gateway = gateway.await.unwrap();
        let token = gateway.loopback.token();
        let other = "0".repeat(token.len());
        for (path, is_served) in [(token, true), (other.as_str(), false), ("x", false)] {
            let line = format!("git-upload-pack /{path}\0host=127.0.0.1\0\0version=2\0");
            ask(&gateway, &format!("{:04x}{line}", line.len() + 4)).await;
            // No server is there, and ssh says so, if it was started.
            assert_eq!(gateway.failure().is_some(), is_served, "{path}");
        }
    }
}
