//! Checks the locations of sources and indexes, and private registries, when they are written: one that cannot be used is refused, and a
//! location that is read without TLS causes a warning.

use common::address::is_safe_argument;
use common::registry::Registry;

use crate::verdict::AdmissionProblem;

/// The message about a URL with a user or a password.
pub const CREDENTIALS: &str = "a URL holds no credentials: put them into a Secret";

/// Returns why a location cannot be used. One without a scheme is a path, or a host in the form of ssh.
#[must_use]
pub fn check_url(text: &str, schemes: &[&str]) -> Option<String> {
    if text.trim().is_empty() {
        return Some("a value is required".to_owned());
    }
    let (scheme, rest) = text.split_once("://")?;
    let mut known = schemes.iter();
    if !known.any(|known| known.eq_ignore_ascii_case(scheme)) {
        let schemes = schemes.join("://, ");
        return Some(format!("{scheme}:// is not read here, but {schemes}://"));
    }
    let authority = authority(rest);
    if authority.is_empty() && !scheme.eq_ignore_ascii_case("file") {
        return Some(format!("{scheme}:// is followed by a host"));
    }
    let (user, _) = authority.rsplit_once('@')?;
    // With ssh, the user is part of the address.
    let is_secret = user.contains(':') || !scheme.eq_ignore_ascii_case("ssh");
    is_secret.then(|| CREDENTIALS.to_owned())
}

/// Returns why the remote of a repository cannot be reached by ssh; `None` also for remotes that are not reached by ssh.
#[must_use]
pub fn check_ssh_remote(remote: &str) -> Option<String> {
    let place = match remote.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("ssh") => authority(rest),
        Some(_) => return None,
        None => remote
            .split_once(':')
            .map(|(place, _)| place)
            .filter(|place| !place.contains('/'))?,
    };
    let (user, host) = place.rsplit_once('@').unwrap_or(("", place));
    let host = host.trim_start_matches('[').replace(']', "");
    let is_usable = is_safe_argument(&host) && (user.is_empty() || is_safe_argument(user));
    (!is_usable).then(|| "a host and a user of ssh consist of letters, digits and .-_".to_owned())
}

/// Returns whether a location is read without TLS from another machine.
#[must_use]
pub fn is_unencrypted(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    scheme.eq_ignore_ascii_case("http") && !is_loopback(authority(rest))
}

/// Returns whether a host, with or without a port, is the reader's own machine.
#[must_use]
pub fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Returns host and port from the part after the scheme.
fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Returns the problem of a text that is not a registry.
#[must_use]
pub fn check_registry(registry: Option<&str>) -> Option<AdmissionProblem> {
    let error = registry?.parse::<Registry>().err()?;
    let message = error.to_string();
    Some(AdmissionProblem::invalid(
        "registry",
        "spec.registry",
        message,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_ssh_are_one_word() {
        for (remote, is_usable) in [
            ("git@h.example:r", true),
            ("ssh://git@h.example:2222/r", true),
            ("ssh://[2001:db8::1]:22/r", true),
            ("https://$(id)/r", true),
            ("./a:b", true),
            ("ssh://%24%28id%29/r", false),
            ("$(id):r", false),
            ("a b@h:r", false),
            ("-oProxyCommand=id:r", false),
        ] {
            assert_eq!(check_ssh_remote(remote).is_none(), is_usable, "{remote}");
        }
    }

    #[test]
    fn the_words_name_the_schemes_and_no_credentials() {
        for (text, schemes, expected) in [
            (
                "ftp://h/a",
                &["https", "s3"][..],
                Some("ftp:// is not read here, but https://, s3://"),
            ),
            (
                "https:///a",
                &["https"],
                Some("https:// is followed by a host"),
            ),
            ("file:///a", &["file"], None),
            (" ", &["https"], Some("a value is required")),
            ("a/b.yaml", &["https"], None),
            ("s3://bucket/a@b.yaml", &["s3"], None),
            ("ssh://git@h/r", &["ssh"], None),
        ] {
            assert_eq!(check_url(text, schemes).as_deref(), expected, "{text:?}");
        }
        for (text, scheme) in [
            ("https://user:geheim@h/a", "https"),
            ("https://geheim@h", "https"),
            ("ssh://git:geheim@h/r", "ssh"),
        ] {
            let said = check_url(text, &[scheme]).unwrap();
            assert!(
                !said.contains("geheim") && said.contains("Secret"),
                "{said}"
            );
        }
    }

    #[test]
    fn what_others_on_the_way_can_change() {
        for (text, expected) in [
            ("http://h/a", true),
            ("HTTP://h:8080", true),
            ("http://127.evil.test", true),
            ("https://h/a", false),
            ("http://localhost:5000/a", false),
            ("http://127.0.0.1:5000/a", false),
            ("http://[::1]:5000/a", false),
            ("a/b.yaml", false),
            ("file:///http://h", false),
        ] {
            assert_eq!(is_unencrypted(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_registry_is_refused() {
        for (registry, is_refused) in [
            (None, false),
            (Some("mirror.example.com/addons"), false),
            (Some("localhost:5000"), false),
            (Some("https://mirror.example.com"), true),
            (Some("mirror"), true),
            (Some(""), true),
        ] {
            let problem = check_registry(registry);
            assert_eq!(problem.is_some(), is_refused, "{registry:?}: {problem:?}");
        }
    }
}
