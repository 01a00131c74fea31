//! Reads credentials by registry from the `.dockerconfigjson` of a Secret. Programs that it names are never
//! run.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;

use common::entrance;

use super::login::RegistryIdentity;
use crate::names::{is_within, list_names};

/// The maximum number of registries that an error lists.
const MAX_NAMES: usize = 10;

/// The names of Docker Hub.
const DOCKER_HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// Why a configuration cannot be used. The messages never contain its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DockerConfigError {
    /// The value is not JSON of the expected shape.
    #[error(
        "key .dockerconfigjson is not JSON with \"auths\"; make it with kubectl create secret docker-registry"
    )]
    Malformed,
    /// The value of `auth` cannot be decoded.
    #[error("key .dockerconfigjson: \"auth\" of {key:?} is not base64 of USER:PASSWORD")]
    Auth {
        /// The key under `auths`.
        key: String,
    },
    /// There is no entry for the registry.
    #[error("key .dockerconfigjson has no entry for {host}; it names {known}")]
    Missing {
        /// The registry.
        host: String,
        /// The keys under `auths`.
        known: String,
    },
}

#[derive(Deserialize)]
struct DockerConfig {
    auths: BTreeMap<String, AuthEntry>,
}

#[derive(Deserialize)]
struct AuthEntry {
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    identitytoken: Option<String>,
}

/// Finds the credentials at `host` (`HOST` or `HOST:PORT`) for `repository`, which are those of the entry
/// with the longest path that contains the repository.
///
/// # Errors
/// [`DockerConfigError`].
pub fn find_identity(
    config: &[u8],
    host: &str,
    repository: &str,
) -> Result<RegistryIdentity, DockerConfigError> {
    let config: DockerConfig =
        entrance::from_slice(config).map_err(|_| DockerConfigError::Malformed)?;
    let fitting = config.auths.iter().filter_map(|(key, entry)| {
        let (key_host, path) = split_key(key);
        (same_host(key_host, host) && is_within(repository, path)).then_some((
            path.len(),
            key,
            entry,
        ))
    });
    // If a registry is listed under two spellings, the first is used.
    let best = fitting.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let Some((_, key, entry)) = best else {
        return Err(DockerConfigError::Missing {
            host: host.to_owned(),
            known: list_names(config.auths.keys(), MAX_NAMES, "nothing"),
        });
    };
    if let Some(token) = non_empty(entry.identitytoken.as_ref()) {
        return Ok(RegistryIdentity::Refresh(token));
    }
    if let Some(auth) = non_empty(entry.auth.as_ref()) {
        let key = key.clone();
        return decode_auth(&auth).ok_or(DockerConfigError::Auth { key });
    }
    Ok(RegistryIdentity::new(
        entry.username.clone().unwrap_or_default(),
        entry.password.clone().unwrap_or_default(),
    ))
}

/// Whether two hosts are the same registry.
pub fn same_host(a: &str, b: &str) -> bool {
    let known = |host: &str| DOCKER_HUB.contains(&host);
    a.eq_ignore_ascii_case(b) || (known(a) && known(b))
}

/// Splits `https://HOST/v1/` and `HOST/PATH` into host and path.
fn split_key(key: &str) -> (&str, &str) {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    // Both mean the whole registry, as in the kubelet.
    match path.trim_end_matches('/') {
        "v1" | "v2" => (host, ""),
        path => (host, path),
    }
}

fn non_empty(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn decode_auth(auth: &str) -> Option<RegistryIdentity> {
    let padding =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&STANDARD, padding).decode(auth).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (username, password) = text.split_once(':')?;
    // Old versions of docker login pad the password.
    let password = password.trim_end_matches('\0');
    Some(RegistryIdentity::new(
        username.to_owned(),
        password.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(auths: &str, host: &str, repository: &str) -> Result<String, DockerConfigError> {
        let config = format!("{{\"auths\": {auths}}}");
        find_identity(config.as_bytes(), host, repository).map(|identity| match identity {
            RegistryIdentity::Password { username, password } => format!("{username}:{password}"),
            RegistryIdentity::Refresh(token) => format!("token {token}"),
            RegistryIdentity::Anonymous => "nobody".to_owned(),
        })
    }

    #[test]
    fn the_longest_path_counts() {
        let auths = r#"{
            "r.example:5000": {"username": "all", "password": "1"},
            "https://r.example:5000/team/": {"username": "team", "password": "2"},
            "r.example:5000/team/app": {"username": "app", "password": "3"},
            "r.example:5000/te": {"username": "te", "password": "4"},
            "r.example": {"username": "other port", "password": "5"}
        }"#;
        for (repository, expected) in [
            ("x", "all:1"),
            ("team/x", "team:2"),
            ("team/app", "app:3"),
            ("team/app/x", "app:3"),
            ("team/apple", "team:2"),
            ("teams/x", "all:1"),
        ] {
            let found = who(auths, "r.example:5000", repository);
            assert_eq!(found.as_deref(), Ok(expected), "{repository}");
        }
    }

    #[test]
    fn docker_hub_has_many_names() {
        for key in [
            "https://index.docker.io/v1/",
            "https://registry-1.docker.io/v2/",
            "docker.io",
            "index.docker.io",
        ] {
            let auths = format!("{{{key:?}: {{\"auth\": \"dXNlcjpwYTpzcw==\"}}}}");
            let found = who(&auths, "index.docker.io", "library/x");
            assert_eq!(found.as_deref(), Ok("user:pa:ss"), "{key}");
        }
    }

    #[test]
    fn an_entry_is_a_token_or_a_password() {
        let rows = [
            (r#"{"auth": "dXNlcjpwYTpzcw"}"#, "user:pa:ss"),
            (r#"{"auth": "", "username": "u", "password": "p"}"#, "u:p"),
            (r#"{"identitytoken": "t", "auth": "AAAA"}"#, "token t"),
            (r#"{}"#, "nobody"),
            (r#"{"auth": "Og=="}"#, "nobody"),
        ];
        for (entry, expected) in rows {
            let found = who(&format!("{{\"h\": {entry}}}"), "h", "x");
            assert_eq!(found.as_deref(), Ok(expected), "{entry}");
        }
    }

    #[test]
    fn errors_hold_no_secret() {
        let rows = [
            (r#"{"h": {"auth": "***"}}"#, "auth"),
            (r#"{"h": {"auth": "c2VjcmV0"}}"#, "base64"),
            (r#"{"other": {"password": "secret"}}"#, "other"),
            (r#"{"h": {"auth": {"secret": 1}}}"#, "JSON"),
        ];
        for (auths, expected) in rows {
            let error = who(auths, "h", "x").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("secret\""), "{error}");
            assert!(!error.contains("c2VjcmV0"), "{error}");
        }
    }
}
