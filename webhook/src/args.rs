//! The command-line flags.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use addons_admission::AdmissionSettings;
use anyhow::ensure;
use certs::reload::CertificateFiles;
use certs::rotation::Lifetimes;
use clap::Parser;
use common::api::names;

use crate::clients::Clients;
use crate::tls::MinimumTls;

/// The admission webhook of kubectl addons.
#[derive(Debug, Parser)]
#[command(name = "addons-webhook", version)]
pub struct Args {
    /// Address for /mutate and /validate (HTTPS)
    #[arg(long, default_value = "0.0.0.0:8443")]
    pub bind: SocketAddr,
    /// Address for /healthz, /readyz and /metrics (HTTP)
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub health_bind: SocketAddr,
    /// Issue the certificate, renew it, and tell the API server which authority to trust; all replicas share one Secret
    #[arg(long, conflicts_with_all = ["tls_cert", "tls_key", "tls_ca", "tls_name"])]
    pub manage_certificates: bool,
    /// How long a managed certificate is valid, e.g. 24h, 90m; it is renewed when two thirds have passed
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    pub leaf_lifetime: Duration,
    /// How long the managed authority is valid; at least three times as long
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = duration)]
    pub ca_lifetime: Duration,
    /// Certificate chain, leaf first; re-read while serving
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "manage_certificates",
        requires = "tls_key"
    )]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Authority that the API server trusts: the chain is verified against it before it is served
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
    /// Name that the API server dials; the certificate must hold it (repeatable; default: not checked)
    #[arg(long, value_name = "NAME")]
    pub tls_name: Vec<String>,
    /// How often the certificate files are read
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub tls_poll_seconds: u64,
    /// Oldest version of TLS
    #[arg(long, value_enum, value_name = "VERSION", default_value = "1.3")]
    pub tls_min: MinimumTls,
    /// Authorities of clients: only who shows a certificate of them and a --client-name is served; re-read while serving
    #[arg(long, value_name = "FILE", requires = "client_name")]
    pub client_ca: Option<PathBuf>,
    /// Common name or DNS name of a client (repeatable)
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    pub client_name: Vec<String>,
    /// Kubeconfig for the watches; default: as kubectl, then the pod's ServiceAccount
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the source catalogues and of this cluster's installations
    #[arg(long, value_name = "NAMESPACE", default_value = names::SYSTEM_NAMESPACE)]
    pub system_namespace: String,
    /// Group that may write core catalogues and core installations (repeatable)
    #[arg(long, value_name = "GROUP", default_value = names::CORE_GROUP)]
    pub core_group: Vec<String>,
    /// User that may do the same, as the reconciler's ServiceAccount (repeatable)
    #[arg(long, value_name = "USER")]
    pub core_user: Vec<String>,
    /// How long a watch may be silent before reviews are refused; the API server sends a bookmark every minute
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub stale_seconds: u64,
    /// How long reviews are served after SIGTERM, while endpoints still name this pod
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=300))]
    pub drain_delay_seconds: u64,
    /// Connections for reviews; at the limit, one of the address with the most is closed for a new one
    #[arg(long, value_name = "COUNT", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_connections: u16,
    /// Worker threads; default: the CPUs that this process may use
    #[arg(long, value_name = "COUNT")]
    pub workers: Option<NonZeroUsize>,
}

impl Args {
    /// Returns the paths of the certificate and the names that it must have; `None` if it is managed.
    pub fn files(&self) -> Option<CertificateFiles> {
        Some(CertificateFiles {
            certificate: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            authority: self.tls_ca.clone(),
            names: self.tls_name.clone(),
        })
    }

    /// Returns how long managed certificates are valid.
    pub fn lifetimes(&self) -> anyhow::Result<Lifetimes> {
        let lifetimes = Lifetimes {
            leaf: self.leaf_lifetime,
            authority: self.ca_lifetime,
        };
        // The authority is replaced in its last third, and signs until then.
        ensure!(
            lifetimes.leaf.saturating_mul(3) <= lifetimes.authority,
            "--ca-lifetime: {:?} is less than three times --leaf-lifetime ({:?})",
            lifetimes.authority,
            lifetimes.leaf
        );
        Ok(lifetimes)
    }

    /// Returns the clients that are served; `None` if all are.
    pub fn clients(&self) -> anyhow::Result<Option<Arc<Clients>>> {
        let path = self.client_ca.as_deref();
        path.map(|path| Clients::new(path, self.client_name.clone()))
            .transpose()
    }

    /// Returns the names that verdicts depend on.
    pub fn settings(&self) -> AdmissionSettings {
        AdmissionSettings {
            system_namespace: self.system_namespace.clone(),
            core_groups: self.core_group.clone(),
            core_users: self.core_user.clone(),
        }
    }

    /// Returns the number of worker threads: by default the CPUs that the process may use, including the quota of a container.
    pub fn workers(&self) -> usize {
        self.workers
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get)
    }
}

/// Parses a duration: `24h`, `90m`, `1h30m`, `3s`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = text.parse();
    let duration = parsed
        .ok()
        .and_then(|duration| Duration::try_from(duration).ok());
    duration
        .filter(|duration| *duration >= Duration::from_secs(1))
        .ok_or_else(|| {
            format!("{text:?} is not a duration of a second or more; write it as 24h, 90m or 30s")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_files_or_managed() {
        let parse = |flags: &str| {
            let flags = flags.split_whitespace();
            Args::try_parse_from(["addons-webhook"].into_iter().chain(flags))
        };
        for (flags, is_managed) in [
            ("--manage-certificates", true),
            (
                "--manage-certificates --leaf-lifetime=3s --ca-lifetime=9s",
                true,
            ),
            ("--tls-cert=a --tls-key=b", false),
        ] {
            let args = parse(flags).unwrap();
            assert_eq!(args.files().is_none(), is_managed, "{flags}");
            args.lifetimes().unwrap();
        }
        for flags in [
            "",
            "--tls-cert=a",
            "--tls-key=b",
            "--manage-certificates --tls-cert=a --tls-key=b",
            "--manage-certificates --tls-name=a",
            "--manage-certificates --leaf-lifetime=10",
            "--manage-certificates --leaf-lifetime=0s",
            "--manage-certificates --leaf-lifetime=-1h",
        ] {
            assert!(parse(flags).is_err(), "{flags}");
        }
        let short = parse("--manage-certificates --leaf-lifetime=1h --ca-lifetime=2h").unwrap();
        let error = short.lifetimes().unwrap_err().to_string();
        assert!(error.starts_with("--ca-lifetime: "), "{error}");
    }

    #[test]
    fn the_deployment_says_what_is_understood() {
        let deployed = include_str!("../../deploy/base/deployment.yaml");
        let flags = deployed
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("- --"))
            .map(|flag| format!("--{flag}"));
        let args = Args::try_parse_from(["addons-webhook".to_owned()].into_iter().chain(flags));
        let args = args.unwrap();
        let reconciler = "system:serviceaccount:kubectl-addons-reconciler:addons-reconciler";
        let settings = AdmissionSettings {
            core_users: vec![reconciler.to_owned()],
            ..AdmissionSettings::default()
        };
        assert_eq!(args.settings(), settings);
        assert!(args.manage_certificates);
        // The pod is killed only after draining and the last reviews.
        let grace = deployed
            .lines()
            .find_map(|line| line.trim().strip_prefix("terminationGracePeriodSeconds: "))
            .unwrap();
        assert!(grace.parse::<u64>().unwrap() >= args.drain_delay_seconds + 10);
    }
}
