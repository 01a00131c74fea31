//! Why a URL cannot be read.

use std::net::IpAddr;

use crate::credentials::CredentialsError;

/// Why a fetch failed. The location is part of every message; what may be secret in it is not.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// A scheme that cannot be read.
    #[error(
        "{location}: {scheme}:// cannot be read; use a file, file://, http://, https://, s3://, gs:// or az://"
    )]
    Scheme {
        /// As given.
        location: String,
        /// The scheme.
        scheme: String,
    },
    /// No URL.
    #[error("{location} is no URL")]
    Malformed {
        /// As given.
        location: String,
        /// Why.
        #[source]
        source: url::ParseError,
    },
    /// User name or password in a URL.
    #[error(
        "{location}: a user name or password in a URL would be recorded and shown; take it out, or give a file"
    )]
    Credentials {
        /// Without them.
        location: String,
    },
    /// A file of this machine, named by a catalogue in a cluster.
    #[error(
        "{location}: a catalogue in the cluster names no files of this machine; put it on a web server or in an object store, \
         or write it into the catalogue as source.inline"
    )]
    Local {
        /// As written.
        location: String,
    },
    /// The file cannot be read.
    #[error("{location}")]
    File {
        /// Path.
        location: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// More than a document or an archive may have, also once it is unpacked.
    #[error("{location} is larger than {} MiB", limit >> 20)]
    TooLarge {
        /// As given.
        location: String,
        /// Bytes.
        limit: u64,
    },
    /// The server answered with an error.
    #[error("{location}: the server answers {status}")]
    Status {
        /// URL.
        location: String,
        /// `404 Not Found`.
        status: String,
    },
    /// The server wants other credentials, or some.
    #[error("{location}: the server answers {status} {}", whose(identity.as_deref(), wanted))]
    Denied {
        /// URL.
        location: String,
        /// `401 Unauthorized`.
        status: String,
        /// Whose credentials it got.
        identity: Option<String>,
        /// The type of Secret that it could get.
        wanted: &'static str,
    },
    /// It wants to be left alone for longer than anybody waits.
    #[error(
        "{location}: the server answers {status} and asks to come back in {seconds} s; run this again then"
    )]
    Later {
        /// URL.
        location: String,
        /// `429 Too Many Requests`.
        status: String,
        /// What it asks for.
        seconds: u64,
    },
    /// Redirects without an end.
    #[error("{location}: too many redirects (more than {limit})")]
    Redirects {
        /// URL.
        location: String,
        /// How many are followed.
        limit: usize,
    },
    /// A redirect that is not followed.
    #[error(
        "{location}: a redirect to another scheme is not followed: to {to}; where it can be trusted, give that location itself"
    )]
    Redirect {
        /// URL.
        location: String,
        /// Where it leads.
        to: String,
    },
    /// Where clouds serve the credentials of the machine.
    #[error(
        "{location} leads to {address}, a link-local address, which a catalogue in the cluster may not name; put it on a web server"
    )]
    Address {
        /// URL.
        location: String,
        /// The address.
        address: IpAddr,
    },
    /// Credentials would be sent for everybody to read.
    #[error("{location}: Secret {secret} is not sent without TLS; use https://")]
    Plain {
        /// URL.
        location: String,
        /// The Secret.
        secret: String,
    },
    /// A Secret that does not go with it.
    #[error("{location}")]
    Secret {
        /// URL.
        location: String,
        /// Why.
        #[source]
        source: Box<CredentialsError>,
    },
    /// Certificate authorities that are none.
    #[error("Secret {secret}: its key ca.crt holds no certificate in PEM")]
    Authority {
        /// The Secret.
        secret: String,
    },
    /// A certificate that nobody vouches for.
    #[error(
        "{location}: the certificate of the server cannot be trusted; an authority of its own can stand in key ca.crt of the \
         Secret that auth.secretRef names"
    )]
    Certificate {
        /// URL.
        location: String,
        /// Why; without its URL.
        #[source]
        source: reqwest::Error,
    },
    /// No usable answer.
    #[error("{location} cannot be fetched")]
    Http {
        /// URL.
        location: String,
        /// Why; its URL was taken out, which may hold credentials.
        #[source]
        source: reqwest::Error,
    },
    /// An answer that does not end.
    #[error("{location}: no whole answer within {seconds} s")]
    Timeout {
        /// URL.
        location: String,
        /// The bound.
        seconds: u64,
    },
    /// Not in the cache, and nobody may be asked.
    #[error(
        "{location} is not in the cache, and with --offline nobody is asked; run this once without --offline"
    )]
    Offline {
        /// URL.
        location: String,
    },
    /// An object store cannot be used as it is set up.
    #[error("{location}: {why}")]
    Setting {
        /// URL.
        location: String,
        /// Which setting, where it stands, and what would do.
        why: String,
    },
    /// No usable answer of an object store.
    #[error("{location} cannot be fetched: {why}")]
    Store {
        /// URL.
        location: String,
        /// In the words of the client, without what may be secret.
        why: String,
    },
}

fn whose(identity: Option<&str>, wanted: &str) -> String {
    match identity {
        Some(identity) => format!("to the credentials of {identity}; it takes other ones"),
        None => format!(
            "without credentials; the source's auth.secretRef can name a Secret of type {wanted}"
        ),
    }
}
