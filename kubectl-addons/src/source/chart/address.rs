//! URLs of repositories and archives: which may be asked, and who gets credentials.

use std::net::IpAddr;

use url::{Host, Url};

use super::ChartError;
use crate::source::credentials::{Credentials, CredentialsError, Proof};

/// A URL that charts can be fetched from.
pub(super) fn http_url(text: &str) -> Result<Url, ChartError> {
    let wrong = |url: &str, problem| ChartError::Url {
        url: url.to_owned(),
        problem,
    };
    let Ok(url) = Url::parse(text) else {
        return Err(wrong(
            "url of the chart's repository",
            "it is no URL: https://HOST/PATH",
        ));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            &shown(&url),
            "a user name or password in a URL would be recorded and shown; put it into a Secret and name that in auth.secretRef",
        ));
    }
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong(
            &shown(&url),
            "charts are fetched by https://, http:// or oci://",
        ));
    }
    Ok(url)
}

/// User and password for the repository; `None` where the Secret holds a certificate authority alone.
pub(super) fn basic<'a>(
    credentials: &'a Credentials,
    base: &Url,
) -> Result<Option<(&'a str, &'a str)>, ChartError> {
    let Proof::Basic { username, password } = &credentials.proof else {
        return Err(ChartError::Credentials(CredentialsError::Mismatch {
            secret: credentials.secret.clone(),
            source_kind: "a chart repository over http(s)",
            wanted: "kubernetes.io/basic-auth",
        }));
    };
    credentials.check_host(&authority(base))?;
    if base.scheme() == "http" && !is_loopback(base) {
        return Err(ChartError::PlainHttp { url: shown(base) });
    }
    Ok(Some((username, password)))
}

/// `HOST` or `HOST:PORT`, as the URL writes it.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Whether what is sent to one may be sent to the other.
pub(super) fn same_host(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host() == b.host()
        && a.port_or_known_default() == b.port_or_known_default()
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    }
}

/// The URL as it may be shown and recorded: queries of archives are signatures.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only where there can be none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_those_of_repositories() {
        for (url, words) in [
            ("https://a.example/charts", None),
            (
                "https://u:p@a.example",
                Some("https://a.example/: a user name or password"),
            ),
            ("file:///tmp/charts", Some("charts are fetched by")),
            ("a.example/charts", Some("it is no URL")),
        ] {
            match (http_url(url), words) {
                (Ok(_), None) => {}
                (Err(error), Some(words)) => {
                    assert!(error.to_string().contains(words), "{url}: {error}");
                }
                (found, _) => panic!("{url}: {found:?}"),
            }
        }
    }
}
