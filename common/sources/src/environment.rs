//! What other programs (helm, kubectl, kustomize) get of our environment.

/// The variables that go through to them: how the network is reached. Credentials of this machine do not.
pub const PASSED: [&str; 9] = [
    "PATH",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
