//! Converts flags and environment into a client configuration, with kubectl's precedence: flag, kubeconfig.

mod credential_plugins;

use std::path::{Path, PathBuf};
use std::time::Duration;

use addons_engine::ClusterOptions;
use addons_sources::platform;
use anyhow::{Context as _, Result, anyhow, bail};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::cli::GlobalArgs;

/// The timeout of a request without `--request-timeout`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the client configuration: from the kubeconfig, else from `--server`, else from the pod that this runs in.
///
/// # Errors
/// The kubeconfig or a certificate file cannot be read, the context is unknown, nothing names a server, or kubectl's preferences do not
/// allow the program that gets the credentials.
pub async fn client_config(global: &GlobalArgs) -> Result<Config> {
    let options = KubeConfigOptions {
        context: global.context.clone(),
        cluster: global.cluster.clone(),
        user: global.user.clone(),
    };
    let mut config = match find_kubeconfig(global)? {
        Some(kubeconfig) => {
            check_known_contexts(&kubeconfig, global.context.as_slice())?;
            Config::from_custom_kubeconfig(kubeconfig, &options)
                .await
                .context("cannot use the kubeconfig")?
        }
        None => match &global.server {
            Some(server) => Config::new(parse_server_url(server)?),
            None => Config::incluster().map_err(|_| {
                anyhow!("no kubeconfig; set KUBECONFIG, or use --kubeconfig FILE or --server URL")
            })?,
        },
    };
    override_by_flags(&mut config, global)?;
    if let Some(exec) = &config.auth_info.exec {
        credential_plugins::check(exec)?;
    }
    check_server_url(&config.cluster_url)?;
    Ok(config)
}

/// Checks that the URL is complete, because kube's client panics if a part is missing.
fn check_server_url(server: &http::Uri) -> Result<()> {
    let scheme = server.scheme_str();
    if matches!(scheme, Some("http" | "https")) && server.authority().is_some() {
        return Ok(());
    }
    let host = server
        .authority()
        .map_or("HOST:PORT", |authority| authority.as_str());
    bail!("the address of the server is {server}; it has to be a URL: https://{host}")
}

/// Checks that the kubeconfig has all of these contexts, without connecting.
///
/// # Errors
/// The kubeconfig cannot be read, or does not have a context.
pub fn check_contexts(global: &GlobalArgs, wanted: &[String]) -> Result<()> {
    check_known_contexts(&find_kubeconfig(global)?.unwrap_or_default(), wanted)
}

fn check_known_contexts(kubeconfig: &Kubeconfig, wanted: &[String]) -> Result<()> {
    let names: Vec<&str> = kubeconfig
        .contexts
        .iter()
        .map(|context| context.name.as_str())
        .collect();
    let mut wanted = wanted.iter();
    let Some(wanted) = wanted.find(|wanted| !names.contains(&wanted.as_str())) else {
        return Ok(());
    };
    bail!(
        "--context {wanted}: the kubeconfig has no such context; it has: {}",
        names.join(", ")
    )
}

/// Reads a kubeconfig. Keeps only the first line of a parser's error: the rest quotes the file, which holds credentials.
fn read_kubeconfig(path: &Path) -> Result<Kubeconfig> {
    Kubeconfig::read_from(path).map_err(|error| {
        let text = error.to_string();
        anyhow!(
            "kubeconfig {}: {}",
            path.display(),
            text.lines().next().unwrap_or_default()
        )
    })
}

/// Reads `--kubeconfig`, else the existing files of `KUBECONFIG`, merged as kubectl does, else `~/.kube/config`.
fn find_kubeconfig(global: &GlobalArgs) -> Result<Option<Kubeconfig>> {
    if let Some(path) = &global.kubeconfig {
        return Ok(Some(read_kubeconfig(Path::new(path))?));
    }
    let listed = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut paths: Vec<PathBuf> = std::env::split_paths(&listed)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if paths.is_empty() {
        paths.extend(platform::home().map(|home| home.join(".kube/config")));
    }
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|path| path.exists()) {
        let next = read_kubeconfig(path)?;
        merged = Some(match merged {
            None => next,
            Some(first) => first
                .merge(next)
                .with_context(|| format!("kubeconfig {}", path.display()))?,
        });
    }
    if merged.is_none() && !listed.is_empty() && global.server.is_none() {
        bail!(
            "KUBECONFIG names no file that exists: {}",
            listed.to_string_lossy()
        );
    }
    Ok(merged)
}

fn override_by_flags(config: &mut Config, global: &GlobalArgs) -> Result<()> {
    if let Some(server) = &global.server {
        config.cluster_url = parse_server_url(server)?;
    }
    if let Some(path) = &global.certificate_authority {
        let pem = std::fs::read(path).with_context(|| format!("--certificate-authority {path}"))?;
        config.root_cert_file = None;
        config.root_cert = Some(
            parse_certificates(&pem).with_context(|| format!("--certificate-authority {path}"))?,
        );
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

fn parse_server_url(server: &str) -> Result<http::Uri> {
    server
        .parse()
        .with_context(|| format!("--server {server}: not a URL"))
}

fn parse_certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.context("not a PEM certificate")?;
    anyhow::ensure!(
        !certificates.is_empty(),
        "there is no PEM certificate in it"
    );
    Ok(certificates
        .into_iter()
        .map(|certificate| certificate.to_vec())
        .collect())
}

/// Returns the options of the engine's client.
pub fn cluster_options(global: &GlobalArgs) -> ClusterOptions {
    ClusterOptions {
        cache_dir: cache_dir(global),
        // In kubectl, 0 means no timeout. This client always has one.
        request_timeout: global
            .request_timeout
            .filter(|bound| !bound.is_zero())
            .unwrap_or(REQUEST_TIMEOUT),
        concurrency: global.concurrency.into(),
    }
}

/// Returns `--cache-dir`, `$XDG_CACHE_HOME/kubectl-addons` or `~/.cache/kubectl-addons`; on Windows `%LOCALAPPDATA%\kubectl-addons`. `None`
/// without a home folder.
pub fn cache_dir(global: &GlobalArgs) -> Option<PathBuf> {
    if let Some(dir) = &global.cache_dir {
        return Some(dir.clone());
    }
    Some(platform::cache_home()?.join("kubectl-addons"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_whole_url() {
        for (server, expected) in [
            ("https://127.0.0.1:6443", Ok(())),
            ("http://localhost:8080/cluster", Ok(())),
            (
                "127.0.0.1:6443",
                Err(
                    "the address of the server is 127.0.0.1:6443; it has to be a URL: https://127.0.0.1:6443",
                ),
            ),
            (
                "/cluster",
                Err("the address of the server is /cluster; it has to be a URL: https://HOST:PORT"),
            ),
            (
                "ftp://a",
                Err("the address of the server is ftp://a/; it has to be a URL: https://a"),
            ),
        ] {
            let judged =
                check_server_url(&server.parse().unwrap()).map_err(|error| error.to_string());
            assert_eq!(judged, expected.map_err(str::to_owned), "{server}");
        }
    }
}
