//! A catalogue whose entries come from real servers, in a system namespace of its own.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use addons_tests::control_plane::{ControlPlane, binaries, unique};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{self, Charts};
use addons_tests::servers::git::http::{self as git, GitHttp};
use addons_tests::servers::git::repository::Repository;
use addons_tests::servers::http::Server;
use addons_tests::servers::registry::front::Front;
use addons_tests::servers::registry::{Door, Layer, Registry, USER, tar};
use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::content::{files, map};

pub use addons_tests::servers::registry::PASSWORD;

const TAR: &str = "application/vnd.oci.image.layer.v1.tar";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const CHART_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const IMAGE_CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// One add-on of the matrix.
pub struct Addon {
    pub method: &'static str,
    pub source: &'static str,
}

impl Addon {
    /// Whether the record says what a name of the source stood for: a commit, a digest, a version.
    pub fn is_resolved(&self) -> bool {
        matches!(self.source, "git" | "docker" | "helm" | "oci")
    }
}

/// The matrix of the issue, and charts of a registry beside it.
pub const ADDONS: [Addon; 13] = [
    Addon {
        method: "manifest",
        source: "git",
    },
    Addon {
        method: "manifest",
        source: "docker",
    },
    Addon {
        method: "manifest",
        source: "url",
    },
    Addon {
        method: "manifest",
        source: "inline",
    },
    Addon {
        method: "go-template",
        source: "git",
    },
    Addon {
        method: "go-template",
        source: "docker",
    },
    Addon {
        method: "go-template",
        source: "url",
    },
    Addon {
        method: "go-template",
        source: "inline",
    },
    Addon {
        method: "helm",
        source: "helm",
    },
    Addon {
        method: "helm",
        source: "oci",
    },
    Addon {
        method: "helm",
        source: "git",
    },
    Addon {
        method: "helm",
        source: "docker",
    },
    Addon {
        method: "helm",
        source: "url",
    },
];

/// A catalogue, its Secrets, and the servers that they are for.
pub struct Rig {
    plugin: Plugin,
    /// The system namespace, and the target of all objects.
    pub namespace: String,
    helm: String,
    repository: Repository,
    git: GitHttp,
    registry: Registry,
    front: Front,
    shelf: Shelf,
    charts: Charts,
    files: Server,
    folder: std::path::PathBuf,
    /// Requests to `files` that were told.
    told: AtomicUsize,
}

impl Rig {
    pub async fn new() -> Result<Self> {
        let cluster = ControlPlane::shared().await?;
        let namespace = cluster.namespace("matrix").await?;
        let plugin = Plugin::admin(&cluster)?.system_namespace(&namespace);
        let repository = Repository::new()?;
        let account = Some((USER, PASSWORD));
        let options = git::Options {
            account,
            ..git::Options::default()
        };
        let git = GitHttp::start(repository.root(), options).await?;
        let registry = Registry::start(Door::Password).await?;
        let front = Front::start(Some(&registry), |_| None).await?;
        let shelf = Shelf::new()?;
        let options = charts::Options {
            basic: account.map(|(user, password)| (user, password.to_owned())),
            ..charts::Options::default()
        };
        let charts = Charts::serve(shelf.path(), &options)?;
        let folder = plugin.home().join("files");
        fs::create_dir_all(&folder)?;
        let files = files(folder.clone())?;
        let rig = Self {
            plugin,
            namespace,
            helm: binaries::helm()?.display().to_string(),
            repository,
            git,
            registry,
            front,
            shelf,
            charts,
            files,
            folder,
            told: AtomicUsize::new(0),
        };
        rig.publish("first").await?;
        rig.secrets(PASSWORD, None).await?;
        let file = rig.plugin.home().join("catalogue.json");
        fs::write(&file, rig.catalogue().to_string())?;
        let file = file.display().to_string();
        rig.run(&["catalogue", "add", &file]).await?.done()?;
        Ok(rig)
    }

    /// Puts an edition of everything onto the servers.
    pub async fn publish(&self, edition: &str) -> Result<()> {
        let plain = |source: &str| self.plain(source, edition);
        let template = |source: &str| self.template(source, edition);
        let values = "who: nobody\n";
        let chart = self.chart(edition);
        let version = if edition == "first" { "1.0.0" } else { "1.1.0" };
        let about = format!("apiVersion: v2\nname: chart\nversion: {version}\n");

        self.repository.write("plain/map.yaml", plain("git"))?;
        self.repository
            .write("templates/map.yaml", template("git"))?;
        self.repository.write("templates/values.yaml", values)?;
        self.repository.write("chart/Chart.yaml", &about)?;
        self.repository.write("chart/values.yaml", values)?;
        self.repository.write("chart/templates/map.yaml", &chart)?;
        self.repository.commit(edition)?;

        let files = [
            ("plain/map.yaml", plain("docker")),
            ("templates/map.yaml", template("docker")),
            ("templates/values.yaml", values.to_owned()),
            ("chart/Chart.yaml", about.clone()),
            ("chart/values.yaml", values.to_owned()),
            ("chart/templates/map.yaml", chart.clone()),
        ];
        let layer = |media_type, bytes| Layer {
            media_type,
            bytes,
            title: None,
        };
        let layers = [layer(TAR, tar(&files)?)];
        self.registry
            .push("addons", "stable", IMAGE_CONFIG, &layers)
            .await?;

        let files = [
            ("values.yaml", values),
            ("templates/map.yaml", chart.as_str()),
        ];
        let archive = fs::read(self.shelf.chart("chart", version, &files)?)?;
        self.shelf.index(None)?;
        let layers = [layer(CHART, archive.clone())];
        self.registry
            .push("charts/chart", version, CHART_CONFIG, &layers)
            .await?;

        fs::write(self.folder.join("plain.yaml"), plain("url"))?;
        fs::write(self.folder.join("template.yaml"), template("url"))?;
        fs::write(self.folder.join("chart.tgz"), archive)?;
        Ok(())
    }

    /// The Secrets beside the catalogue, for the hosts of the servers or for another one.
    pub async fn secrets(&self, password: &str, host: Option<&str>) -> Result<()> {
        let server = self.files.host();
        let hosts = [
            ("git", self.git.url.trim_start_matches("http://")),
            ("docker", self.front.host.as_str()),
            ("helm", self.charts.host()),
            ("url", server.as_str()),
        ];
        for (name, own) in hosts {
            let auth = STANDARD.encode(format!("{USER}:{password}"));
            let docker = json!({"auths": {own: {"auth": auth}}}).to_string();
            let (kind, data) = match name {
                "docker" => (
                    "kubernetes.io/dockerconfigjson",
                    json!({".dockerconfigjson": docker}),
                ),
                _ => (
                    "kubernetes.io/basic-auth",
                    json!({"username": USER, "password": password}),
                ),
            };
            let secret = json!({
                "apiVersion": "v1", "kind": "Secret", "type": kind, "stringData": data,
                "metadata": {"name": name, "namespace": self.namespace, "annotations": {
                    "kubectl-addons.dev/allowed-hosts": host.unwrap_or(own)}},
            });
            let apply = ["apply", "-f", "-"];
            let secret = secret.to_string();
            let said = self.plugin.kubectl_with_input(&apply, &secret);
            said.await?.done()?;
        }
        Ok(())
    }

    /// The name of an add-on, which is also that of its object.
    pub fn name(&self, addon: &Addon) -> String {
        self.named(addon.method, addon.source)
    }

    /// Other tests have installations in the same cluster.
    fn named(&self, method: &str, source: &str) -> String {
        format!("{}-{method}-{source}", self.namespace)
    }

    pub async fn run(&self, args: &[&str]) -> Result<Output> {
        let mut all = vec![
            "--system-namespace",
            &self.namespace,
            "--helm-bin",
            &self.helm,
        ];
        all.extend(args);
        self.plugin.run(&all).await
    }

    /// The data of the only object of an add-on.
    pub async fn data(&self, name: &str) -> Result<Value> {
        let args = [
            "get",
            "configmap",
            name,
            "-n",
            &self.namespace,
            "-o",
            "json",
        ];
        let object = self.plugin.kubectl(&args).await?.done()?.stdout;
        let object: Value = serde_json::from_str(&object)?;
        Ok(object["data"].clone())
    }

    pub async fn record(&self, name: &str) -> Result<Value> {
        let args = ["get", "ainst", name, "-n", &self.namespace, "-o", "json"];
        let object = self.plugin.kubectl(&args).await?.done()?.stdout;
        Ok(serde_json::from_str(&object)?)
    }

    /// All records.
    pub async fn records(&self) -> Result<Value> {
        let args = ["get", "ainst", "-n", &self.namespace, "-o", "json"];
        let list = self.plugin.kubectl(&args).await?.done()?.stdout;
        let list: Value = serde_json::from_str(&list)?;
        Ok(list["items"].clone())
    }

    /// Requests to all servers since this was last asked.
    pub fn requests(&self) -> usize {
        let files = self.files.requests().len();
        let before = self.told.swap(files, Ordering::Relaxed);
        let registry = self.front.requests().len();
        self.git.seen().len() + registry + self.charts.seen().len() + files - before
    }

    fn catalogue(&self) -> Value {
        let versions = ADDONS.iter().map(|addon| {
            let template = json!({"method": addon.method});
            let values = match addon.method {
                "manifest" => Value::Null,
                _ => json!({"who": "world"}),
            };
            let version = json!({
                "version": "1.0.0", "template": template, "values": values,
                "source": self.source(addon),
            });
            json!({"name": self.name(addon), "versions": [version]})
        });
        json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
            "metadata": {"name": unique("matrix")},
            "spec": {"addons": versions.collect::<Vec<_>>()},
        })
    }

    fn source(&self, addon: &Addon) -> Value {
        let path = match addon.method {
            "manifest" => "plain",
            "helm" => "chart",
            _ => "templates",
        };
        let file = match addon.method {
            "manifest" => "/plain.yaml",
            "helm" => "/chart.tgz",
            _ => "/template.yaml",
        };
        let auth = |name: &str| json!({"secretRef": {"name": name}});
        match addon.source {
            "git" => json!({"git": {
                "remote": self.git.remote(), "path": path, "ref": {"branch": "main"}, "auth": auth("git")}}),
            "docker" => json!({"docker": {
                "image": format!("{}/addons:stable", self.front.host), "path": path, "plainHTTP": true,
                "auth": auth("docker")}}),
            "url" => json!({"url": {"manifest": self.files.url(file), "auth": auth("url")}}),
            "helm" => {
                json!({"helm": {"url": self.charts.url(), "chart": "chart", "auth": auth("helm")}})
            }
            "oci" => json!({"helm": {
                "url": format!("oci://{}/charts", self.front.host), "chart": "chart", "plainHTTP": true,
                "auth": auth("docker")}}),
            _ if addon.method == "manifest" => {
                json!({"inline": {"manifest": self.plain("inline", "first")}})
            }
            _ => json!({"inline": {"manifest": self.template("inline", "first")}}),
        }
    }

    fn plain(&self, source: &str, edition: &str) -> String {
        map(
            &self.named("manifest", source),
            &json!({"who": "nobody", "edition": edition}),
        )
    }

    fn template(&self, source: &str, edition: &str) -> String {
        map(
            &self.named("go-template", source),
            &json!({
                "who": "{{ .Variables.who }}", "edition": edition,
                "version": "{{ .Cluster.Version }}",
            }),
        )
    }

    fn chart(&self, edition: &str) -> String {
        map(
            "{{ .Release.Name }}",
            &json!({
                "who": "{{ .Values.who }}", "edition": edition,
                "version": "{{ .Values.templateData.Cluster.Version }}",
            }),
        )
    }
}
