//! The remote of a repository.

use std::path::PathBuf;

use gix::bstr::{BString, ByteSlice as _};
use gix::url::Scheme;

use super::Problem;
use crate::Reach;
use crate::credentials::{Credentials, Proof};
use crate::{Access, host};

/// A checked remote.
#[derive(Clone, Debug)]
pub struct Remote {
    /// As given, for messages and for the cache.
    pub name: String,
    /// How to reach it.
    pub way: Way,
}

/// How to reach a repository.
#[derive(Clone, Debug)]
pub enum Way {
    /// `https://` or `http://`.
    Http(gix::Url),
    /// `ssh://USER@HOST:PORT/PATH` or `USER@HOST:PATH`.
    Ssh(Ssh),
    /// A repository of this machine.
    Local(PathBuf),
}

/// The arguments of ssh.
#[derive(Clone, Debug)]
pub struct Ssh {
    /// The user; `None` leaves it to the configuration of ssh.
    pub user: Option<String>,
    /// The host, without brackets.
    pub host: String,
    /// Its port.
    pub port: Option<u16>,
    /// The repository there.
    pub path: BString,
}

impl Remote {
    /// Reads a remote.
    ///
    /// # Errors
    /// Another scheme, credentials in the URL, or parts that ssh could take for an option.
    pub fn parse(remote: &str) -> Result<Self, Problem> {
        let wrong = |why| Problem::Remote { why };
        let url = gix::url::parse(remote).map_err(|_| {
            wrong("not the URL of a git repository; use https://HOST/PATH or ssh://USER@HOST/PATH")
        })?;
        let is_http = matches!(url.scheme, Scheme::Http | Scheme::Https);
        if url.password().is_some() || (is_http && url.user().is_some()) {
            return Err(wrong(
                "a user name or password in a URL would be recorded and shown; remove it, and name a Secret in auth.secretRef",
            ));
        }
        let way = match url.scheme {
            Scheme::Http | Scheme::Https if url.host().is_none_or(str::is_empty) => {
                return Err(wrong("it names no host"));
            }
            Scheme::Http | Scheme::Https if url.path.find_byteset(b"?#").is_some() => {
                return Err(wrong("a remote cannot have a query or fragment"));
            }
            Scheme::Http | Scheme::Https => Way::Http(url),
            Scheme::Ssh => Way::Ssh(Ssh::new(&url).map_err(wrong)?),
            Scheme::File if url.host().is_some() => {
                return Err(wrong(
                    "a file:// URL has no host: file:///path/to/repository",
                ));
            }
            Scheme::File => Way::Local(
                gix::path::from_bstring(url.path)
                    .map_err(|_| wrong("not a path of this machine"))?,
            ),
            _ => {
                return Err(wrong("git supports https://, http://, ssh:// and folders"));
            }
        };
        Ok(Self {
            name: remote.to_owned(),
            way,
        })
    }

    /// Checks the access before anything is sent.
    ///
    /// # Errors
    /// A remote on this machine that is out of reach; credentials of another type, for another host, or without TLS.
    pub fn check(&self, access: &Access<'_>) -> Result<(), Problem> {
        let wrong = |why| Problem::Remote { why };
        let host = match &self.way {
            Way::Local(_) if access.reach != Reach::Own => {
                return Err(wrong(
                    "a catalogue in the cluster cannot name files of this machine; use https:// or ssh://",
                ));
            }
            Way::Ssh(_) if access.reach != Reach::Own && access.credentials.is_none() => {
                return Err(wrong(
                    "ssh needs a Secret of type kubernetes.io/ssh-auth with ssh-privatekey and known_hosts as auth.secretRef",
                ));
            }
            Way::Local(_) => None,
            Way::Ssh(ssh) => Some(host::with_port(&ssh.host, ssh.port)),
            Way::Http(url) => url.host().map(|host| host::with_port(host, url.port)),
        };
        let Some(credentials) = access.credentials else {
            return Ok(());
        };
        let is_plain = matches!(&self.way, Way::Http(url) if url.scheme == Scheme::Http);
        match (&self.way, &credentials.proof) {
            (Way::Http(_), Proof::Basic { .. }) | (Way::Ssh(_), Proof::Ssh { .. }) => {}
            (Way::Http(_), _) => {
                let wanted = "kubernetes.io/basic-auth";
                return Err(credentials.mismatch("git over https", wanted).into());
            }
            (Way::Ssh(_), _) => {
                let wanted = "kubernetes.io/ssh-auth";
                return Err(credentials.mismatch("git over ssh", wanted).into());
            }
            (Way::Local(_), _) => {
                let mismatch = credentials.mismatch("a folder of this machine", "none");
                return Err(mismatch.into());
            }
        }
        host.map_or(Ok(()), |host| credentials.check(&host, !is_plain))?;
        Ok(())
    }

    /// The remote with the credentials, for the keys of the cache: what one Secret may read is not shown to others.
    pub fn key(&self, credentials: Option<&Credentials>) -> String {
        let identity = credentials.map(Credentials::identity);
        format!("{}\n{}", self.name, identity.unwrap_or_default())
    }
}

impl Ssh {
    fn new(url: &gix::Url) -> Result<Self, &'static str> {
        let host = url.host().unwrap_or_default();
        let is_option = |text: &[u8]| text.trim().first() == Some(&b'-');
        let is_odd = |text: &[u8]| text.iter().any(|byte| byte.is_ascii_control());
        let user = url.user().map(str::to_owned);
        let parts = [
            host.as_bytes(),
            user.as_deref().unwrap_or_default().as_bytes(),
            &url.path,
        ];
        if parts.iter().any(|part| is_option(part)) {
            return Err(
                "a host, user or path that begins with - would be taken for an option of ssh",
            );
        }
        if host.is_empty() || url.path.is_empty() || parts.iter().any(|part| is_odd(part)) {
            return Err(
                "not a valid ssh remote; use ssh://USER@HOST[:PORT]/PATH or USER@HOST:PATH",
            );
        }
        // As in git, /~user is a home folder.
        let path = url
            .path
            .strip_prefix(b"/")
            .filter(|rest| rest.starts_with(b"~"));
        Ok(Self {
            user,
            host: host.to_owned(),
            port: url.port,
            path: path.map_or_else(|| url.path.clone(), BString::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ssh(remote: &str) -> (Option<String>, String, Option<u16>, String) {
        match Remote::parse(remote).unwrap().way {
            Way::Ssh(ssh) => (ssh.user, ssh.host, ssh.port, ssh.path.to_string()),
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
    fn what_is_no_remote() {
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
            ("file://host/a", "no host"),
            ("", ""),
        ] {
            let error = Remote::parse(remote).unwrap_err().to_string();
            assert!(error.contains(want), "{remote}: {error}");
            assert!(!error.contains("pw"), "{error}");
        }
    }
}
