//! Matches the patterns of a policy. A pattern that cannot be read matches nothing.

use common::image::Image;

/// Returns whether `host` (`HOST[:PORT]`, `SCHEME://BUCKET`) matches `pattern` (`HOST[:PORT]`, `*.DOMAIN[:PORT]`, `SCHEME://BUCKET`). A
/// pattern without a port matches every port, as in the annotation of credentials.
pub(super) fn matches_host(pattern: &str, host: &str) -> bool {
    if pattern.contains("://") || host.contains("://") {
        return pattern == host;
    }
    let (wanted, wanted_port) = split_port(pattern);
    let (name, port) = split_port(host);
    matches_name(wanted, name) && wanted_port.is_none_or(|wanted| port == Some(wanted))
}

/// Returns whether the registry of `image` matches `pattern` (`HOST[:PORT][/PATH]`, `*.DOMAIN[:PORT][/PATH]`). A port is part of a
/// registry's name, so a pattern without a port does not match a registry with one.
pub(super) fn matches_registry(pattern: &str, image: &str) -> bool {
    let Ok(image) = Image::parse(image) else {
        return false;
    };
    let (host, path) = match pattern.split_once('/') {
        Some((host, path)) => (host, Some(path)),
        None => (pattern, None),
    };
    let (wanted, wanted_port) = split_port(host);
    let name = image.host.to_ascii_lowercase();
    let (name, port) = split_port(&name);
    let is_below = |path: &str| {
        let rest = image.repository.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    matches_name(wanted, name) && wanted_port == port && path.is_none_or(is_below)
}

/// Returns whether `name` equals `wanted`, or is below the domain of `*.DOMAIN`. A domain is not below itself.
fn matches_name(wanted: &str, name: &str) -> bool {
    let Some(domain) = wanted.strip_prefix("*.") else {
        return wanted == name;
    };
    let below = name.strip_suffix(domain);
    below
        .and_then(|below| below.strip_suffix('.'))
        .is_some_and(|below| !below.is_empty())
}

/// Splits `HOST[:PORT]` into host and port.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (name, Some(port))
        }
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts() {
        for (pattern, host, expected) in [
            ("git.example.com", "git.example.com", true),
            ("git.example.com", "git.example.com:8443", true),
            ("git.example.com:8443", "git.example.com:8443", true),
            ("git.example.com:8443", "git.example.com", false),
            ("git.example.com", "xgit.example.com", false),
            ("git.example.com", "git.example.com.evil.test", false),
            ("*.example.com", "git.example.com", true),
            ("*.example.com", "a.b.example.com:443", true),
            ("*.example.com:443", "a.example.com:8443", false),
            ("*.example.com", "example.com", false),
            ("*.example.com", ".example.com", false),
            ("*.example.com", "badexample.com", false),
            ("[::1]", "[::1]:8080", true),
            ("s3://addons", "s3://addons", true),
            ("s3://addons", "s3://addons2", false),
            ("s3://addons", "gs://addons", false),
            ("addons", "s3://addons", false),
            ("*", "git.example.com", false),
            ("", "git.example.com", false),
        ] {
            assert_eq!(matches_host(pattern, host), expected, "{pattern} {host}");
        }
    }

    #[test]
    fn registries() {
        for (pattern, image, expected) in [
            ("docker.io", "nginx", true),
            ("docker.io/library", "nginx:1", true),
            ("docker.io/library", "team/nginx", false),
            ("quay.io", "nginx", false),
            ("ghcr.io/acme", "ghcr.io/acme/web:1", true),
            ("ghcr.io/acme", "ghcr.io/acme-evil/web:1", false),
            (
                "ghcr.io/acme/web",
                "ghcr.io/acme/web@sha256:0b2f19895de281e4a416700b17a4dc9b8d3b80eb7b5b65dac173880f5113084e",
                true,
            ),
            ("mirror:5000", "mirror:5000/a", true),
            ("mirror.example.com", "mirror.example.com:5000/a", false),
            ("*.example.com/addons", "eu.example.com/addons/web", true),
            ("*.example.com/addons", "eu.example.com/other/web", false),
            ("*.example.com", "example.com/a", false),
            ("registry.example.com", "REGISTRY.example.com/a", true),
            ("docker.io", "not an image", false),
        ] {
            assert_eq!(
                matches_registry(pattern, image),
                expected,
                "{pattern} {image}"
            );
        }
    }
}
