//! The four programs with their flags, and what they read.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use rcgen::KeyPair;

use super::binaries::Binaries;
use super::pki::{Authority, Credentials, User, write_kubeconfig};
use crate::guard::{self, Guarded};

/// Only what clients do is of interest, and the log stays small.
const AUDIT_POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
  users: [kubelet, "system:apiserver", "system:kube-controller-manager", "system:kube-scheduler"]
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
- level: Metadata
"#;

/// One running program.
pub(super) struct Component {
    name: &'static str,
    process: Guarded,
    log: PathBuf,
}

/// Where everything of one cluster lies, and on which ports it listens.
pub(super) struct Layout<'a> {
    pub(super) binaries: &'a Binaries,
    pub(super) folder: &'a Path,
    pub(super) ports: Ports,
}

/// Ports on 127.0.0.1 that were free a moment ago.
pub(super) struct Ports {
    etcd: u16,
    etcd_peer: u16,
    pub(super) server: u16,
}

impl Ports {
    pub(super) fn free() -> Result<Self> {
        let bind = || TcpListener::bind(("127.0.0.1", 0)).context("no free port on 127.0.0.1");
        // Held together, for a port that is let go may be given out again.
        let held = (bind()?, bind()?, bind()?);
        Ok(Self {
            etcd: held.0.local_addr()?.port(),
            etcd_peer: held.1.local_addr()?.port(),
            server: held.2.local_addr()?.port(),
        })
    }
}

impl Component {
    /// The error of a program that is not there any more, with the end of its log.
    pub(super) fn check(&mut self) -> Result<()> {
        if let Some(status) = self.process.try_wait()? {
            bail!("{} ended with {status}:\n{}", self.name, self.tail());
        }
        Ok(())
    }

    /// The last lines of its log.
    pub(super) fn tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        let start = lines.len().saturating_sub(15);
        format!(
            "{} (end of its log):\n  {}",
            self.name,
            lines.get(start..).unwrap_or_default().join("\n  ")
        )
    }
}

impl Layout<'_> {
    pub(super) fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.server)
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// A user with a kubeconfig for the API server itself.
    pub(super) fn user(&self, authority: &Authority, name: &str, groups: &[&str]) -> Result<User> {
        user(authority, self.folder, &self.server(), name, groups)
    }

    /// Writes every certificate, key and policy that the programs read.
    pub(super) fn write(&self, authority: &Authority) -> Result<()> {
        let serving = [
            "127.0.0.1",
            "100.64.0.1",
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ];
        authority
            .serving("kube-apiserver", &serving)?
            .write(self.folder, "apiserver")?;
        authority
            .client("front-proxy", &[])?
            .write(self.folder, "front-proxy")?;
        let key = KeyPair::generate()?;
        fs::write(self.folder.join("sa.key"), key.serialize_pem())?;
        fs::write(self.folder.join("sa.pub"), key.public_key_pem())?;
        fs::write(self.folder.join("ca.crt"), &authority.certificate)?;
        fs::write(self.folder.join("audit-policy.yaml"), AUDIT_POLICY)?;
        Ok(())
    }

    pub(super) fn etcd(&self) -> Result<Component> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        let mut command = guard::command(&self.binaries.etcd);
        command
            .arg("--name=test")
            .arg(self.flag("--data-dir", "etcd"))
            .arg(format!("--listen-client-urls={client}"))
            .arg(format!("--advertise-client-urls={client}"))
            .arg(format!("--listen-peer-urls={peer}"))
            .arg(format!("--initial-advertise-peer-urls={peer}"))
            .arg(format!("--initial-cluster=test={peer}"))
            .arg("--unsafe-no-fsync")
            .arg("--log-level=warn");
        self.start("etcd", command)
    }

    pub(super) fn apiserver(&self, extra: &[String]) -> Result<Component> {
        let mut command = guard::command(&self.binaries.apiserver);
        command
            .arg(format!(
                "--etcd-servers=http://127.0.0.1:{}",
                self.ports.etcd
            ))
            .arg(format!("--secure-port={}", self.ports.server))
            .args([
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                "--service-cluster-ip-range=100.64.0.0/16",
                "--allow-privileged=true",
                "--authorization-mode=RBAC",
                "--enable-aggregator-routing=true",
                "--endpoint-reconciler-type=none",
                "--requestheader-allowed-names=front-proxy",
                "--requestheader-username-headers=X-Remote-User",
                "--audit-log-mode=blocking",
                "--audit-log-format=json",
                // In MB: never rotated, for a count must not lose its beginning.
                "--audit-log-maxsize=100000",
            ])
            .arg(format!("--service-account-issuer={}", self.server()))
            .arg(self.flag("--cert-dir", "."))
            .arg(self.flag("--tls-cert-file", "apiserver.crt"))
            .arg(self.flag("--tls-private-key-file", "apiserver.key"))
            .arg(self.flag("--client-ca-file", "ca.crt"))
            .arg(self.flag("--requestheader-client-ca-file", "ca.crt"))
            .arg(self.flag("--proxy-client-cert-file", "front-proxy.crt"))
            .arg(self.flag("--proxy-client-key-file", "front-proxy.key"))
            .arg(self.flag("--service-account-key-file", "sa.pub"))
            .arg(self.flag("--service-account-signing-key-file", "sa.key"))
            .arg(self.flag("--audit-policy-file", "audit-policy.yaml"))
            .arg(self.flag("--audit-log-path", "audit.log"))
            .args(extra);
        self.start("kube-apiserver", command)
    }

    pub(super) fn controller_manager(&self, authority: &Authority) -> Result<Component> {
        let user = self.user(authority, "system:kube-controller-manager", &[])?;
        let mut command = guard::command(&self.binaries.controller_manager);
        command
            .arg(format!("--kubeconfig={}", user.kubeconfig.display()))
            .arg(self.flag("--service-account-private-key-file", "sa.key"))
            .arg(self.flag("--root-ca-file", "ca.crt"))
            .args([
                "--use-service-account-credentials",
                "--leader-elect=false",
                "--secure-port=0",
                // A machine that stands still for a while makes no node unready.
                "--node-monitor-grace-period=10m",
            ]);
        self.start("kube-controller-manager", command)
    }

    pub(super) fn scheduler(&self, authority: &Authority) -> Result<Component> {
        let user = self.user(authority, "system:kube-scheduler", &[])?;
        let mut command = guard::command(&self.binaries.scheduler);
        command
            .arg(format!("--kubeconfig={}", user.kubeconfig.display()))
            .args(["--leader-elect=false", "--secure-port=0"]);
        self.start("kube-scheduler", command)
    }

    fn flag(&self, flag: &str, file: &str) -> String {
        format!("{flag}={}", self.folder.join(file).display())
    }

    fn start(&self, name: &'static str, mut command: Command) -> Result<Component> {
        let log = self.folder.join(format!("{name}.log"));
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        command
            // Nothing here should depend on who runs it.
            .env("HOME", self.folder)
            // Short lives and memory enough: collected less often, an API server takes a fifth less CPU to start.
            .env("GOGC", "400")
            .current_dir(self.folder)
            .stdout(file.try_clone()?)
            .stderr(file);
        let process =
            guard::spawn(&mut command, b"").with_context(|| format!("cannot start {name}"))?;
        Ok(Component { name, process, log })
    }
}

/// A user with a client certificate and a kubeconfig in `folder`.
pub(super) fn user(
    authority: &Authority,
    folder: &Path,
    server: &str,
    name: &str,
    groups: &[&str],
) -> Result<User> {
    let pair = authority.client(name, groups)?;
    // Two users of one name differ in their groups.
    let file: String = std::iter::once(name)
        .chain(groups.iter().copied())
        .collect::<Vec<_>>()
        .join("+")
        .replace(['/', ':'], "-");
    let kubeconfig = folder.join(format!("{file}.kubeconfig"));
    write_kubeconfig(
        &kubeconfig,
        server,
        &authority.certificate,
        &Credentials::Certificate(&pair),
    )?;
    Ok(User {
        name: name.to_owned(),
        pair,
        kubeconfig,
    })
}
