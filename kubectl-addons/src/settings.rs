//! From flags and environment to a client configuration, with kubectl's precedence: flag, kubeconfig.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use common::engine::ClusterOptions;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::cli::Global;

/// Bound of one request where `--request-timeout` does not say otherwise.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The configuration of the client.
///
/// # Errors
/// An unreadable kubeconfig, an unknown context, an unreadable certificate file.
pub async fn config(global: &Global) -> Result<Config> {
    let options = KubeConfigOptions {
        context: global.context.clone(),
        cluster: global.cluster.clone(),
        user: global.user.clone(),
    };
    let kubeconfig = match &global.kubeconfig {
        Some(path) => Some(Kubeconfig::read_from(path).with_context(|| format!("--kubeconfig {path}"))?),
        None => None,
    };
    let named = options.context.is_some() || options.cluster.is_some() || options.user.is_some();
    let mut config = match kubeconfig {
        Some(kubeconfig) => {
            Config::from_custom_kubeconfig(kubeconfig, &options).await.context("cannot use the kubeconfig")?
        }
        None => match Config::from_kubeconfig(&options).await {
            Ok(config) => config,
            // A pod has no kubeconfig, and a server may be named by flag alone.
            Err(error) if !named => match (&global.server, Config::incluster()) {
                (Some(server), _) => Config::new(uri(server)?),
                (None, Ok(config)) => config,
                (None, Err(_)) => {
                    return Err(error).context(
                        "no usable kubeconfig; set KUBECONFIG, or use --kubeconfig FILE or --server URL",
                    );
                }
            },
            Err(error) => return Err(error).context("cannot use the kubeconfig"),
        },
    };
    override_by_flags(&mut config, global)?;
    Ok(config)
}

fn override_by_flags(config: &mut Config, global: &Global) -> Result<()> {
    if let Some(server) = &global.server {
        config.cluster_url = uri(server)?;
    }
    if let Some(path) = &global.certificate_authority {
        let pem = std::fs::read(path).with_context(|| format!("--certificate-authority {path}"))?;
        config.root_cert_file = None;
        config.root_cert = Some(certificates(&pem).with_context(|| format!("--certificate-authority {path}"))?);
    }
    if global.insecure_skip_tls_verify {
        config.accept_invalid_certs = true;
    }
    if let Some(name) = &global.tls_server_name {
        config.tls_server_name = Some(name.clone());
    }
    let auth = &mut config.auth_info;
    if let Some(token) = &global.token {
        auth.token = Some(token.clone().into());
        auth.exec = None;
        auth.token_file = None;
    }
    if let Some(path) = &global.client_certificate {
        auth.client_certificate = Some(path.clone());
        auth.client_certificate_data = None;
    }
    if let Some(path) = &global.client_key {
        auth.client_key = Some(path.clone());
        auth.client_key_data = None;
    }
    if let Some(user) = &global.as_user {
        auth.impersonate = Some(user.clone());
    }
    if !global.as_group.is_empty() {
        auth.impersonate_groups = Some(global.as_group.clone());
    }
    if let Some(uid) = &global.as_uid {
        auth.impersonate_uid = Some(uid.clone());
    }
    Ok(())
}

fn uri(server: &str) -> Result<http::Uri> {
    server.parse().with_context(|| format!("--server {server}: not a URL"))
}

fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.context("not a PEM certificate")?;
    anyhow::ensure!(!certificates.is_empty(), "there is no PEM certificate in it");
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// How the engine talks.
pub fn cluster_options(global: &Global) -> ClusterOptions {
    ClusterOptions {
        cache_dir: cache_dir(global),
        request_timeout: global.request_timeout.unwrap_or(REQUEST_TIMEOUT),
        concurrency: global.concurrency.into(),
    }
}

/// `--cache-dir`, `$XDG_CACHE_HOME/kubectl-addons`, `~/.cache/kubectl-addons`; `None` where there is no home.
fn cache_dir(global: &Global) -> Option<PathBuf> {
    if let Some(dir) = &global.cache_dir {
        return Some(dir.clone());
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(base.join("kubectl-addons"))
}
