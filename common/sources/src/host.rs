//! Hosts in the form `HOST` or `HOST:PORT`, as Secrets name them.

use std::net::IpAddr;

use url::Url;

/// Returns the host of a URL, with the port unless it is the default of the scheme.
pub fn of(url: &Url) -> String {
    with_port(url.host_str().unwrap_or_default(), url.port())
}

/// Formats a host and an optional port as `HOST` or `HOST:PORT`.
pub fn with_port(host: &str, port: Option<u16>) -> String {
    port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Removes the port from `HOST:PORT`.
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => host,
    }
}

/// Whether a host without a port is a loopback address or `localhost`.
pub fn is_loopback(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name == "localhost"
        || address
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback() {
        for host in ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["127.0.0.1.example.com", "localhost.example.com", "10.0.0.1"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
