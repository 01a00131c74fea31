//! One Pod: a process, its probes and its status.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, Probe, Secret, ServiceAccount};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};

use super::network;
use crate::guard::{self, Folder, Guarded};

/// Port names of the Deployment.
const REVIEWS: &str = "https";

/// What Pods are started with.
pub(super) struct Server {
    pub(super) client: Client,
    pub(super) probes: reqwest::Client,
    pub(super) binary: PathBuf,
    pub(super) url: String,
    pub(super) authority: String,
}

/// A Pod that was started.
pub(super) struct Running {
    pub(super) name: String,
    /// Where it answers reviews.
    pub(super) address: SocketAddr,
    process: Guarded,
    folder: Folder,
    container: Container,
    ip: Ipv4Addr,
    begun: String,
    grace: Duration,
    ending: Option<Instant>,
    is_alive: bool,
    /// As the API server was told last.
    told: Option<bool>,
}

/// What is asked to know whether a Pod is ready.
pub(super) struct Probes(Vec<String>);

impl Running {
    pub(super) async fn start(server: &Server, pod: &Pod) -> Result<Self> {
        let spec = pod.spec.as_ref().context("no spec")?;
        let [container] = spec.containers.as_slice() else {
            bail!("one container is expected");
        };
        if !container
            .image
            .as_deref()
            .unwrap_or_default()
            .contains("addons-webhook")
        {
            bail!("image {:?} is not known here", container.image);
        }
        let folder = Folder::new("kubectl-addons-pod-")?;
        mount(server, pod, spec, folder.path()).await?;
        let account = spec.service_account_name.as_deref().unwrap_or("default");
        let accounts = Api::<ServiceAccount>::namespaced(
            server.client.clone(),
            &pod.namespace().unwrap_or_default(),
        );
        let request = TokenRequest::default();
        let token = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await?;
        let token = token.status.context("no token")?.token;
        let kubeconfig = folder.path().join("kubeconfig");
        super::kubeconfig(server, &kubeconfig, &token.context("an empty token")?)?;
        let ip = network::address();
        let process = spawn(&server.binary, container, folder.path(), ip)?;
        let port = port(container, &IntOrString::String(REVIEWS.to_owned()))?;
        let grace = spec.termination_grace_period_seconds.unwrap_or(30);
        Ok(Self {
            name: pod.name_any(),
            address: SocketAddr::from((ip, port)),
            process,
            folder,
            container: container.clone(),
            ip,
            begun: super::now(),
            grace: Duration::from_secs(grace.unsigned_abs()),
            ending: None,
            is_alive: false,
            told: None,
        })
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ending.is_none() && self.told == Some(true)
    }

    /// What to ask now; a process that has ended by itself is an error, for nothing here is meant to.
    pub(super) fn probes(&mut self) -> Result<Probes> {
        if let Some(status) = self.process.try_wait()? {
            bail!("the process ended with {status}: {}", self.log());
        }
        let mut probes = vec![&self.container.readiness_probe];
        if !self.is_alive {
            probes.extend([
                &self.container.startup_probe,
                &self.container.liveness_probe,
            ]);
        }
        let urls = probes.into_iter().flatten().map(|probe| self.url(probe));
        Ok(Probes(urls.collect::<Result<_>>()?))
    }

    fn url(&self, probe: &Probe) -> Result<String> {
        let get = probe.http_get.as_ref().context("a probe without httpGet")?;
        let port = port(&self.container, &get.port)?;
        let path = get.path.as_deref().unwrap_or("/");
        Ok(format!("http://{}:{port}{path}", self.ip))
    }

    /// The status to write, where it is not what the API server shows.
    pub(super) fn status(&mut self, is_ready: bool, shown: Option<bool>) -> Option<Value> {
        self.is_alive |= is_ready;
        if self.told == Some(is_ready) && shown == self.told {
            return None;
        }
        self.told = Some(is_ready);
        let condition = |name: &str, is_true: bool| {
            let status = if is_true { "True" } else { "False" };
            json!({"type": name, "status": status, "lastTransitionTime": super::now()})
        };
        let ip = network::there(self.ip).to_string();
        Some(json!({
            "phase": "Running",
            "podIP": ip,
            "podIPs": [{"ip": ip}],
            "hostIP": ip,
            "startTime": self.begun,
            "conditions": [
                condition("PodScheduled", true), condition("Initialized", true),
                condition("ContainersReady", is_ready), condition("Ready", is_ready),
            ],
            "containerStatuses": [{
                "name": self.container.name, "image": self.container.image, "imageID": "", "restartCount": 0,
                "ready": is_ready, "started": self.is_alive, "state": {"running": {"startedAt": self.begun}},
            }],
        }))
    }

    /// Sends SIGTERM once, and SIGKILL when the grace period is over; whether the process has ended.
    pub(super) fn end(&mut self) -> Result<bool> {
        if self.process.try_wait()?.is_some() {
            return Ok(true);
        }
        match self.ending {
            None => {
                self.ending = Some(Instant::now());
                self.process.terminate()?;
            }
            Some(since) if since.elapsed() > self.grace => {
                self.process.kill()?;
            }
            Some(_) => {}
        }
        Ok(false)
    }
}

impl Probes {
    /// Whether all of them are answered with 200.
    pub(super) async fn ask(self, client: &reqwest::Client) -> bool {
        for url in self.0 {
            match client.get(url).send().await {
                Ok(answer) if answer.status() == 200 => {}
                _ => return false,
            }
        }
        true
    }
}

/// Writes the Secrets that the Pod mounts; one that is not there is an error, and the Pod waits.
async fn mount(server: &Server, pod: &Pod, spec: &PodSpec, folder: &Path) -> Result<()> {
    let namespace = pod.namespace().unwrap_or_default();
    let secrets = Api::<Secret>::namespaced(server.client.clone(), &namespace);
    for volume in spec.volumes.iter().flatten() {
        let Some(name) = volume
            .secret
            .as_ref()
            .and_then(|it| it.secret_name.as_ref())
        else {
            continue;
        };
        let secret = secrets.get(name).await?;
        let folder = folder.join(&volume.name);
        fs::create_dir(&folder)?;
        for (key, value) in secret.data.unwrap_or_default() {
            fs::write(folder.join(key), value.0)?;
        }
    }
    Ok(())
}

/// The container's process. Its addresses are those of the Pod, as Pods here share a network.
fn spawn(binary: &Path, container: &Container, folder: &Path, ip: Ipv4Addr) -> Result<Guarded> {
    let args = container.args.iter().flatten();
    let mounts: Vec<_> = container.volume_mounts.iter().flatten().collect();
    let args = args.map(|arg| {
        let mut arg = arg.replace("=0.0.0.0:", &format!("={ip}:"));
        for mount in &mounts {
            let here = folder.join(&mount.name);
            arg = arg.replace(
                &format!("={}/", mount.mount_path),
                &format!("={}/", here.display()),
            );
        }
        arg
    });
    let log = File::create(folder.join("log"))?;
    let mut command = guard::command(binary);
    command
        .args(args)
        .env("KUBECONFIG", folder.join("kubeconfig"))
        .stdout(log.try_clone()?)
        .stderr(log);
    guard::spawn(&mut command, b"").context("cannot start the webhook")
}

fn port(container: &Container, port: &IntOrString) -> Result<u16> {
    let number = match port {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let found = ports.find(|port| port.name.as_ref() == Some(name));
            found
                .with_context(|| format!("no port {name}"))?
                .container_port
        }
    };
    Ok(u16::try_from(number)?)
}
