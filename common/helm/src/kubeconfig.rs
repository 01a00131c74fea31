//! Writes the connection of this program as a kubeconfig for helm: the same server and the same user, whichever flags chose them.

use common::api::names::CLIENT;
use k8s_openapi::ByteString;
use kube::Config;
use serde_json::{Map, Value, json};

/// Line length of a PEM file.
const COLUMNS: usize = 64;

/// Returns a kubeconfig with one context. It contains credentials.
pub(super) fn kubeconfig(config: &Config) -> Result<Vec<u8>, serde_json::Error> {
    let mut cluster = Map::new();
    let mut set = |name: &str, value: Value| {
        cluster.insert(name.to_owned(), value);
    };
    set("server", config.cluster_url.to_string().into());
    if config.accept_invalid_certs {
        // Go's client refuses a certificate authority in addition to it.
        set("insecure-skip-tls-verify", true.into());
    } else if let Some(file) = &config.root_cert_file {
        set("certificate-authority", file.to_string_lossy().into());
    } else if let Some(roots) = &config.root_cert {
        let pem: String = roots.iter().map(|der| pem(der)).collect();
        set("certificate-authority-data", base64(pem.into_bytes())?);
    }
    if let Some(name) = &config.tls_server_name {
        set("tls-server-name", name.clone().into());
    }
    if let Some(proxy) = &config.proxy_url {
        set("proxy-url", proxy.to_string().into());
    }
    let mut user = config.auth_info.clone();
    // The kubeconfig is in a folder of its own, and relative paths would be relative to that.
    for path in [
        &mut user.client_certificate,
        &mut user.client_key,
        &mut user.token_file,
    ] {
        if let Some(path) = path
            && let Ok(absolute) = std::path::absolute(&*path)
        {
            *path = absolute.to_string_lossy().into_owned();
        }
    }
    if user.token.is_some() {
        user.token_file = None;
    }
    let name = CLIENT;
    let mut user = serde_json::to_value(user)?;
    if let Some(user) = user.as_object_mut() {
        user.retain(|_, value| !value.is_null());
    }
    serde_json::to_vec(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }))
}

fn base64(bytes: Vec<u8>) -> Result<Value, serde_json::Error> {
    serde_json::to_value(ByteString(bytes))
}

fn pem(der: &[u8]) -> String {
    let text = base64(der.to_vec()).unwrap_or_default();
    let text: Vec<char> = text.as_str().unwrap_or_default().chars().collect();
    let lines = text.chunks(COLUMNS).map(|line| line.iter().collect());
    let lines: Vec<String> = lines.collect();
    format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_is_the_same() {
        let mut config = Config::new("https://a.example:6443".parse().unwrap());
        config.root_cert = Some(vec![vec![1; 100], vec![2]]);
        config.tls_server_name = Some("kubernetes".to_owned());
        config.auth_info.token = Some("t".to_owned().into());
        config.auth_info.token_file = Some("token".to_owned());
        config.auth_info.client_key = Some("key.pem".to_owned());
        config.auth_info.impersonate = Some("jane".to_owned());
        config.auth_info.impersonate_groups = Some(vec!["admins".to_owned()]);
        let read: Value = serde_json::from_slice(&kubeconfig(&config).unwrap()).unwrap();
        let cluster = &read["clusters"][0]["cluster"];
        assert_eq!(cluster["server"], "https://a.example:6443/");
        assert_eq!(cluster["tls-server-name"], "kubernetes");
        let pem: ByteString =
            serde_json::from_value(cluster["certificate-authority-data"].clone()).unwrap();
        let roots: Vec<_> = {
            use rustls::pki_types::CertificateDer;
            use rustls::pki_types::pem::PemObject as _;
            CertificateDer::pem_slice_iter(&pem.0)
                .map(|root| root.unwrap().to_vec())
                .collect()
        };
        assert_eq!(Some(roots), config.root_cert);
        let user = &read["users"][0]["user"];
        assert_eq!(user["token"], "t");
        assert_eq!(
            (&user["as"], &user["as-groups"][0]),
            (&json!("jane"), &json!("admins"))
        );
        assert_eq!(user.get("tokenFile"), None);
        let key = user["client-key"].as_str().unwrap();
        assert!(std::path::Path::new(key).is_absolute() && key.ends_with("key.pem"));
        config.accept_invalid_certs = true;
        let read: Value = serde_json::from_slice(&kubeconfig(&config).unwrap()).unwrap();
        let cluster = &read["clusters"][0]["cluster"];
        assert_eq!(cluster["insecure-skip-tls-verify"], true);
        assert_eq!(cluster.get("certificate-authority-data"), None);
    }
}
