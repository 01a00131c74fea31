//! Parses and checks the remote of a repository.

use std::path::{Path, PathBuf};

use common::address::is_safe_argument;
use url::Url;

use super::{GitProblem, local};
use crate::credentials::Proof;
use crate::reach::{Addresses, Reach};
use crate::{SourceAccess, host};

/// A parsed remote.
#[derive(Clone, Debug)]
pub struct GitRemote {
    /// The remote as given, for messages and cache keys.
    pub name: String,
    /// How to reach the repository.
    pub transport: GitTransport,
}

/// How to reach a repository.
#[derive(Clone, Debug)]
pub enum GitTransport {
    /// `https://` or `http://`.
    Http(Url),
    /// `ssh://USER@HOST:PORT/PATH` or `USER@HOST:PATH`.
    Ssh(SshRemote),
    /// A repository on this machine.
    Local(PathBuf),
}

/// The parts of an ssh remote.
#[derive(Clone, Debug)]
pub struct SshRemote {
    /// The user; `None` uses the configuration of ssh.
    pub user: Option<String>,
    /// The host, without brackets.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
    /// The path of the repository on the host.
    pub path: String,
}

const SCHEMES: &str = "git supports https://, http://, ssh:// and folders";
const ODD_SSH: &str = "not a valid ssh remote; use ssh://USER@HOST[:PORT]/PATH or USER@HOST:PATH, with letters, digits and .-_ in \
                       USER and HOST";

const LOCAL: &str = "catalogues, installations, plans and sets cannot name files of this machine; use https:// or ssh://";
const KEYS: &str = "ssh needs a Secret of type kubernetes.io/ssh-auth with ssh-privatekey and known_hosts as auth.secretRef";

impl GitRemote {
    /// Parses a remote.
    ///
    /// # Errors
    /// The scheme is not supported, the URL contains credentials, or ssh could take a part for an option.
    pub fn parse(remote: &str) -> Result<Self, GitProblem> {
        let transport = match remote.split_once("://") {
            Some((scheme, rest)) => parse_url(remote, scheme, rest),
            None if remote.is_empty() => Err("it names no repository"),
            // As in git, a colon before the first slash ends the host; a path with a colon begins with ./
            None => match remote.split_once(':').filter(|(host, _)| is_host(host)) {
                Some((_, path)) if path.starts_with(':') => Err(SCHEMES),
                Some((host, path)) => SshRemote::from_scp(host, path).map(GitTransport::Ssh),
                None => Ok(GitTransport::Local(remote.into())),
            },
        };
        Ok(Self {
            name: remote.to_owned(),
            transport: transport.map_err(|why| GitProblem::Remote { why })?,
        })
    }

    /// Checks the access before anything is sent, and returns the allowed addresses.
    ///
    /// # Errors
    /// The source may not use the local repository or the keys of the user, or the credentials have another
    /// type, are for another host, or would be sent without TLS.
    pub fn check(&self, access: &SourceAccess<'_>) -> Result<Addresses, GitProblem> {
        let mut addresses = access.reach.addresses();
        let host = match &self.transport {
            GitTransport::Local(path) if !is_open(path, access.reach) => {
                let place = access.reach.closed_folder(path);
                return Err(GitProblem::Closed { why: LOCAL, place });
            }
            GitTransport::Ssh(ssh) if access.credentials.is_none() => {
                let user = ssh.user.as_deref();
                if !access.reach.opens_ssh(user, &ssh.host, ssh.port) {
                    let place = format!("ssh://{}", host::with_port(&ssh.host, ssh.port));
                    let place = Some(place).filter(|_| access.reach.can_open());
                    return Err(GitProblem::Closed { why: KEYS, place });
                }
                // The settings of ssh may map the host to another name or use jump hosts.
                addresses = Addresses::Any;
                None
            }
            GitTransport::Local(_) => None,
            GitTransport::Ssh(ssh) => Some(host::with_port(&ssh.host, ssh.port)),
            GitTransport::Http(url) => Some(host::of(url)),
        };
        let Some(credentials) = access.credentials else {
            return Ok(addresses);
        };
        let is_plain = matches!(&self.transport, GitTransport::Http(url) if url.scheme() == "http");
        match (&self.transport, &credentials.proof) {
            (GitTransport::Http(_), Proof::Basic { .. })
            | (GitTransport::Ssh(_), Proof::Ssh { .. }) => {}
            (GitTransport::Http(_), _) => {
                let wanted = "kubernetes.io/basic-auth";
                return Err(credentials.mismatch("git over https", wanted).into());
            }
            (GitTransport::Ssh(_), _) => {
                let wanted = "kubernetes.io/ssh-auth";
                return Err(credentials.mismatch("git over ssh", wanted).into());
            }
            (GitTransport::Local(_), _) => {
                let mismatch = credentials.mismatch("a folder of this machine", "none");
                return Err(mismatch.into());
            }
        }
        host.map_or(Ok(()), |host| credentials.check(&host, !is_plain))?;
        Ok(addresses)
    }

    /// The remote and its reader in cache keys. Content that one reader may read is not returned to others.
    pub fn cache_key(&self, access: &SourceAccess<'_>) -> String {
        let is_ssh = matches!(self.transport, GitTransport::Ssh(_));
        format!("{}\n{}", self.name, access.reader(is_ssh.then_some("ssh")))
    }
}

/// Whether a local repository may be read, including everything to which its files point.
fn is_open(path: &Path, reach: &Reach) -> bool {
    let is_open = |part: &PathBuf| reach.file(part).is_some();
    reach.file(path).is_some()
        && local::read_paths(path).is_some_and(|parts| parts.iter().all(is_open))
}

/// Whether the text before a colon is a host. On Windows, a single letter is a drive.
fn is_host(before: &str) -> bool {
    let is_drive = cfg!(windows) && before.len() == 1;
    !before.is_empty() && !before.contains('/') && !is_drive
}

fn parse_url(remote: &str, scheme: &str, rest: &str) -> Result<GitTransport, &'static str> {
    let scheme = scheme.to_ascii_lowercase();
    if scheme == "file" {
        return match rest.starts_with('/') {
            true => Ok(GitTransport::Local(percent_decode(rest)?.into())),
            false => Err("a file:// URL has no host: file:///path/to/repository"),
        };
    }
    if !matches!(scheme.as_str(), "http" | "https" | "ssh") {
        return Err(SCHEMES);
    }
    // URL parsers would take the first part of the path as the host.
    if rest.starts_with('/') {
        return Err("it names no host");
    }
    let url = Url::parse(remote).map_err(
        |_| "not the URL of a git repository; use https://HOST/PATH or ssh://USER@HOST/PATH",
    )?;
    let is_ssh = scheme == "ssh";
    if url.password().is_some() || (!is_ssh && !url.username().is_empty()) {
        return Err(
            "a user name or password in a URL would be recorded and shown; remove it, and name a Secret in auth.secretRef",
        );
    }
    if is_ssh {
        return SshRemote::from_url(&url).map(GitTransport::Ssh);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("a remote cannot have a query or fragment");
    }
    Ok(GitTransport::Http(url))
}

/// Decodes the `%XX` escapes of a URL.
fn percent_decode(text: &str) -> Result<String, &'static str> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| "it is not UTF-8")?.into_owned())
}

impl SshRemote {
    /// Parses `ssh://USER@HOST:PORT/PATH`.
    fn from_url(url: &Url) -> Result<Self, &'static str> {
        let path = percent_decode(url.path())?;
        // As in git, /~user is a home folder.
        let home = path.strip_prefix('/').filter(|rest| rest.starts_with('~'));
        let user = percent_decode(url.username())?;
        let host = percent_decode(url.host_str().unwrap_or_default())?;
        Self::new(user, &host, url.port(), home.unwrap_or(&path))
    }

    /// Parses `USER@HOST:PATH`.
    fn from_scp(host: &str, path: &str) -> Result<Self, &'static str> {
        let (user, host) = host.rsplit_once('@').unwrap_or(("", host));
        Self::new(user.to_owned(), host, None, path)
    }

    fn new(user: String, host: &str, port: Option<u16>, path: &str) -> Result<Self, &'static str> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let parts = [host, &user, path];
        if parts.iter().any(|part| part.trim().starts_with('-')) {
            return Err(
                "a host, user or path that begins with - would be taken for an option of ssh",
            );
        }
        let is_user = user.is_empty() || is_safe_argument(&user);
        if !is_safe_argument(host) || !is_user || path.is_empty() || path.contains(char::is_control)
        {
            return Err(ODD_SSH);
        }
        Ok(Self {
            user: (!user.is_empty()).then_some(user),
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(remote: &str) -> (Option<String>, String, Option<u16>, String) {
        match GitRemote::parse(remote).unwrap().transport {
            GitTransport::Ssh(ssh) => (ssh.user, ssh.host, ssh.port, ssh.path),
            other => panic!("{remote} is {other:?}"),
        }
    }

    #[test]
    fn both_spellings_of_ssh() {
        let git = || Some("git".to_owned());
        let host = || "example.com".to_owned();
        let cases = [
            (
                "ssh://git@example.com:2222/a/b.git",
                (git(), host(), Some(2222), "/a/b.git".to_owned()),
            ),
            (
                "git@example.com:a/b.git",
                (git(), host(), None, "a/b.git".to_owned()),
            ),
            (
                "ssh://example.com/~me/b",
                (None, host(), None, "~me/b".to_owned()),
            ),
        ];
        for (remote, want) in cases {
            assert_eq!(ssh(remote), want, "{remote}");
        }
    }

    #[test]
    fn invalid_remotes_are_refused() {
        for (remote, want) in [
            ("ext::sh -c true", "git supports"),
            ("git://example.com/a", "git supports"),
            ("https:///a", ""),
            ("https://example.com/a?token=x", "query"),
            ("https://me@example.com/a", "user name or password"),
            ("https://me:pw@example.com/a", "user name or password"),
            ("ssh://me:pw@example.com/a", "user name or password"),
            ("ssh://-oProxyCommand=id/a", "option"),
            ("ssh://-l@example.com/a", "option"),
            ("git@example.com:-a", "option"),
            ("git@-oProxyCommand=id:a", "option"),
            ("ssh://example.com/a%0ab", "not a valid ssh remote"),
            ("ssh://%24%28id%29/a", ""),
            ("$(id):a", "not a valid ssh remote"),
            ("`id`@example.com:a", "not a valid ssh remote"),
            ("ssh://a%3Bid@example.com/a", "not a valid ssh remote"),
            ("file://host/a", "no host"),
            ("", ""),
        ] {
            let error = GitRemote::parse(remote).unwrap_err().to_string();
            assert!(error.contains(want), "{remote}: {error}");
            assert!(!error.contains("pw"), "{error}");
        }
    }
}
