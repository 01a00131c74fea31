//! What each page supposes: the catalogues, installations and files before the commands that it shows.

use addons_tests::control_plane::{ControlPlane, binaries};
use addons_tests::page::blocks;
use addons_tests::plugin::Plugin;
use addons_tests::scene;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{self, Charts};
use addons_tests::servers::registry::{Door, Registry};
use addons_tests::stage::{config_map, deployment};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

use super::{Reader, nothing};

const POLICIES: &str = include_str!("../../../kubectl-addons/docs/policies.md");
const CATALOGUE: &str = include_str!("../../../kubectl-addons/docs/write-a-catalogue.md");
/// An API that Kubernetes 1.37 removes, and that the cluster serves when it is told to.
pub const SERVED: &str = "--runtime-config=storage.k8s.io/v1beta1=true";

/// A page and what it supposes.
#[derive(Clone, Copy)]
pub enum Stage {
    /// A Helm release that is adopted.
    Adoption,
    /// Records from a backup.
    Backup,
    /// Revisions of two users.
    History,
    /// A pod that names a Secret which does not exist.
    Plan,
    /// A policy.
    Policy,
    /// Add-ons of which some do not fit the next release of Kubernetes.
    Preflight,
    /// A template with a mistake, and an add-on that waits for a type.
    Templates,
    /// Values from several layers, and a form.
    Values,
    /// The catalogue of the tutorial, first without its second manifest.
    Catalogue,
}

/// Every page with output, besides the README and the tutorial.
pub const ALL: [(&str, Stage); 9] = [
    // First: numbers of revisions go on while those of a former installation of this name are there.
    ("kubectl-addons/docs/history.md", Stage::History),
    ("kubectl-addons/docs/adopt.md", Stage::Adoption),
    ("kubectl-addons/docs/backups.md", Stage::Backup),
    ("kubectl-addons/docs/plans.md", Stage::Plan),
    ("kubectl-addons/docs/policies.md", Stage::Policy),
    ("kubectl-addons/docs/preflight.md", Stage::Preflight),
    (
        "kubectl-addons/docs/templates-and-charts.md",
        Stage::Templates,
    ),
    ("kubectl-addons/docs/values.md", Stage::Values),
    ("kubectl-addons/docs/write-a-catalogue.md", Stage::Catalogue),
];

/// A user with all rights whose plugin finds helm.
pub fn helmsman(cluster: &ControlPlane, name: &str) -> Result<Plugin> {
    let user = cluster.user(name, &["system:masters"])?;
    let helm = binaries::helm()?.to_string_lossy().into_owned();
    Ok(Plugin::new(cluster, &user.kubeconfig)?.variable("KUBECTL_ADDONS_HELM", &helm))
}

/// Sets a page's stage and runs its commands.
pub async fn play(
    stage: Stage,
    reader: &mut Reader,
    page: &str,
    cluster: &ControlPlane,
    tally: &mut Tally,
) -> Result<()> {
    match stage {
        Stage::Adoption => adoption(reader, cluster).await?,
        Stage::Backup => {
            backup(reader).await?;
            let followed = reader.follows(page, tally, restored).await;
            reader.done("adopt web --new-cluster --yes").await?;
            return followed;
        }
        Stage::History => history(reader, cluster).await?,
        Stage::Plan => plan(reader).await?,
        Stage::Policy => {
            policy(reader).await?;
            let followed = reader.follows(page, tally, closed).await;
            let delete = ["delete", "addonpolicies", "--all"];
            reader.user.kubectl(&delete).await?.done()?;
            return followed;
        }
        Stage::Preflight => preflight(reader).await?,
        Stage::Templates => templates(reader).await?,
        Stage::Values => {
            // Held while the commands run.
            let _charts = values(reader).await?;
            return reader.follows(page, tally, nothing).await;
        }
        Stage::Catalogue => {
            let registry = Registry::start(Door::Open).await?;
            catalogue(reader, &registry)?;
            return reader.follows(page, tally, completed).await;
        }
    }
    reader.follows(page, tally, nothing).await
}

/// A version of an add-on in the namespace `shop`.
fn version(number: &str, manifest: &str, more: &Value) -> Value {
    let mut version = scene::version(number, more.clone());
    version["defaultNamespace"] = json!("shop");
    version["source"]["inline"]["manifest"] = json!(manifest);
    version
}

fn addon(name: &str, versions: &[Value]) -> Value {
    json!({"name": name, "versions": versions})
}

/// A release of helm in two revisions, and a catalogue with its objects.
async fn adoption(reader: &Reader, cluster: &ControlPlane) -> Result<()> {
    let manifest = config_map("web", "1");
    let shelf = Shelf::new()?;
    let chart = shelf.chart("web", "1.0.0", &[("templates/all.yaml", &manifest)])?;
    let chart = chart.to_string_lossy();
    let kubeconfig = cluster.kubeconfig().to_string_lossy();
    let helm = binaries::helm()?;
    for verb in ["install", "upgrade"] {
        let args = [
            verb,
            "web",
            &chart,
            "-n",
            "shop",
            "--kubeconfig",
            &kubeconfig,
        ];
        let args = match verb {
            "install" => [&args[..], &["--create-namespace"]].concat(),
            _ => args.to_vec(),
        };
        reader.user.program(&helm, &args).await?.done()?;
    }
    let index = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "web"},
        "spec": {"addons": [addon("web", &[version("1.0.0", &manifest, &Value::Null)])]},
    });
    reader.writes("index.yaml", &index.to_string())
}

/// An add-on that was upgraded after a backup was made of it.
async fn backup(reader: &Reader) -> Result<()> {
    let two = ["1.0.0", "1.1.0"].map(|number| {
        let manifest = deployment("web", 1, None).replace("web:1", &format!("web:{number}"));
        version(number, &manifest, &Value::Null)
    });
    reader.adds("own", json!([addon("web", &two)])).await?;
    reader.done("install web@1.0.0 --yes").await?;
    reader.writes("backup.json", &record(reader).await?.to_string())?;
    reader.done("upgrade web@1.1.0 --yes").await
}

async fn record(reader: &Reader) -> Result<Value> {
    let get = [
        "get",
        "addoninstallation",
        "web",
        "-n",
        SYSTEM_NAMESPACE,
        "-o",
        "json",
    ];
    let found = reader.user.kubectl(&get).await?.done()?;
    Ok(serde_json::from_str(&found.stdout)?)
}

/// First the record of the backup, then one that names another cluster.
async fn restored(reader: &Reader, number: usize) -> Result<()> {
    let status = if number == 0 {
        let backup = std::fs::read_to_string(reader.user.home().join("backup.json"))?;
        let mut status = serde_json::from_str::<Value>(&backup)?["status"].take();
        let long_ago = json!("2026-03-01T02:00:00Z");
        status["installed"]["at"] = long_ago.clone();
        for revision in status["history"].as_array_mut().into_iter().flatten() {
            revision["installed"]["at"] = long_ago.clone();
        }
        status
    } else {
        reader.done("adopt web --yes").await?;
        let mut status = record(reader).await?["status"].take();
        status["cluster"] = json!({"kubeSystemUid": "0f8d5d2c-0000-4000-8000-000000000000"});
        status
    };
    let mut restored = record(reader).await?;
    restored["status"] = status;
    let replace = ["replace", "--subresource=status", "-f", "-"];
    let text = restored.to_string();
    let sent = reader.user.kubectl_with_input(&replace, &text);
    sent.await?.done().map(drop)
}

/// Four revisions: bob installed, and alice changed a value, failed to upgrade, and went back.
async fn history(reader: &Reader, cluster: &ControlPlane) -> Result<()> {
    let two = [("1.0.0", None), ("1.1.0", Some("nowhere"))].map(|(number, node)| {
        let manifest = deployment("web", 1, node)
            .replace("replicas: 1", "replicas: {{ .Variables.replicas }}");
        let more = json!({"template": {"method": "go-template"}, "values": {"replicas": 1}});
        version(number, &manifest, &more)
    });
    reader.adds("own", json!([addon("web", &two)])).await?;
    let bob = helmsman(cluster, "bob")?;
    let alice = helmsman(cluster, "alice")?;
    bob.run(&["install", "web@1.0.0", "--yes"]).await?.done()?;
    let set = ["upgrade", "web@1.0.0", "--set", "replicas=2", "--yes"];
    alice.run(&set).await?.done()?;
    let failing = ["upgrade", "web@1.1.0", "--yes", "--timeout", "3s"];
    let failed = alice.run(&failing).await?;
    anyhow::ensure!(failed.code != 0, "{}", failed.stderr);
    alice
        .run(&["rollback", "web", "2", "--yes"])
        .await?
        .done()?;
    Ok(())
}

async fn plan(reader: &Reader) -> Result<()> {
    let volume = "spec: {volumes: [{name: tls, secret: {secretName: web-tls}}], containers:";
    let manifest = deployment("web", 1, None).replace("spec: {containers:", volume);
    let web = addon("web", &[version("1.0.0", &manifest, &Value::Null)]);
    reader.adds("own", json!([web])).await
}

async fn policy(reader: &mut Reader) -> Result<()> {
    let (_, policy) = blocks(POLICIES).next().context("no policy")?;
    let apply = ["apply", "-f", "-"];
    reader
        .user
        .kubectl_with_input(&apply, policy)
        .await?
        .done()?;
    let index = "kind: Addons\nmetadata:\n  name: addons\nspec:\n  addons:\n  - name: log-shipper\n    version: 1.0.0\n    manifest: log-shipper.yaml\n";
    reader.writes("index.yaml", index)?;
    reader.writes("log-shipper.yaml", &config_map("log-shipper", "1"))?;
    let index = reader.user.home().join("index.yaml");
    let shown = "https://addons.example.net/index.yaml";
    reader
        .names
        .push((shown, index.to_string_lossy().into_owned()));
    Ok(())
}

/// Once the first policy has refused, another one has a window, which opens in three days.
async fn closed(reader: &Reader, number: usize) -> Result<()> {
    if number == 0 {
        return Ok(());
    }
    let delete = ["delete", "addonpolicies", "--all"];
    reader.user.kubectl(&delete).await?.done()?;
    let mut versions = vec![version("1.0.0", &config_map("web", "1"), &Value::Null)];
    reader.adds("own", json!([addon("web", &versions)])).await?;
    reader.done("install web --yes").await?;
    versions.push(version("1.1.0", &config_map("web", "2"), &Value::Null));
    reader.adds("own", json!([addon("web", &versions)])).await?;
    let day = jiff::Zoned::now().weekday().wrapping_add(3);
    let day = day.to_sunday_zero_offset();
    let window = json!({"schedule": format!("0 2 * * {day}"), "duration": "4h", "timeZone": "Europe/Berlin"});
    let policy = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonPolicy", "metadata": {"name": "weekend"},
        "spec": {"action": "Enforce", "maintenance": {"windows": [window]}},
    });
    let apply = ["apply", "-f", "-"];
    let text = policy.to_string();
    let applied = reader.user.kubectl_with_input(&apply, &text);
    applied.await?.done().map(drop)
}

/// Add-ons that fit the next release of Kubernetes or not, and a webhook without its Service.
async fn preflight(reader: &Reader) -> Result<()> {
    let ranges: [(&str, &[(&str, &str)]); 5] = [
        ("early", &[("1.0.0", "<1.37.0"), ("1.1.0", ">=1.30.0")]),
        ("fits", &[("1.0.0", ">=1.30.0")]),
        ("late", &[("1.0.0", "<1.37.0"), ("2.0.0", ">=1.37.0")]),
        ("never", &[("1.0.0", "<1.37.0")]),
        ("gone", &[("1.0.0", "")]),
    ];
    let addons = ranges.map(|(name, versions)| {
        let manifest = match name {
            "gone" => "apiVersion: storage.k8s.io/v1beta1\nkind: VolumeAttributesClass\nmetadata: {name: gone}\n\
                       driverName: example.org\nparameters: {speed: high}\n"
                .to_owned(),
            _ => config_map(name, "1"),
        };
        let versions = versions.iter().map(|(number, range)| {
            let more = json!({"constraints": {"kubernetesVersion": range}});
            version(number, &manifest, &more)
        });
        addon(name, &versions.collect::<Vec<_>>())
    });
    reader.adds("own", json!(addons)).await?;
    reader
        .done("install early@1.0.0 fits late@1.0.0 never gone --yes")
        .await?;
    let guard = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard"},
        "webhooks": [{
            "name": "guard.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            "clientConfig": {"service": {"namespace": "ops", "name": "guard"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}],
        }],
    });
    let create = ["create", "-f", "-"];
    let text = guard.to_string();
    let created = reader.user.kubectl_with_input(&create, &text);
    created.await?.done().map(drop)
}

async fn templates(reader: &Reader) -> Result<()> {
    let delete = ["delete", "validatingwebhookconfiguration", "guard"];
    reader.user.kubectl(&delete).await?.done()?;
    let mistaken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, namespace: {{ defualt \"shop\" }}}\n";
    reader.writes("mistaken/10-config.yaml", mistaken)?;
    reader.writes("data.yaml", "{}\n")?;
    let types =
        json!([{"group": "monitoring.coreos.com", "version": "v1", "kind": "ServiceMonitor"}]);
    let more = json!({"template": {"requiredResourceTypes": types}});
    let web = version("1.0.0", &config_map("web", "1"), &more);
    reader.adds("own", json!([addon("web", &[web])])).await
}

/// The third add-on of the catalogue is a chart with values of its own.
async fn values(reader: &Reader) -> Result<Charts> {
    let shelf = Shelf::new()?;
    let template = config_map("web", "{{ .Values.image }} {{ .Values.replicas }}");
    let files = [
        ("values.yaml", "image: nginx\nreplicas: 1\n"),
        ("templates/all.yaml", &*template),
    ];
    shelf.chart("web", "1.0.0", &files)?;
    shelf.index(None)?;
    let charts = Charts::serve(shelf.path(), &charts::Options::default())?;
    let echo = json!({
        "template": {"method": "go-template", "formSpec": [
            {"displayName": "Greeting", "internalName": "greeting", "required": true}]},
    });
    let mut web = version(
        "1.0.0",
        "",
        &json!({"template": {"method": "helm"}, "values": {"image": "mirror.example/nginx:1.27"}}),
    );
    web["source"] = json!({"helm": {"url": charts.url(), "chart": "web", "version": "1.0.0"}});
    let addons = [
        addon(
            "echo",
            &[version(
                "1.0.0",
                &config_map("echo", "{{ .Variables.greeting }}"),
                &echo,
            )],
        ),
        addon(
            "filler",
            &[version("1.0.0", &config_map("filler", "1"), &Value::Null)],
        ),
        addon("web", &[web]),
    ];
    reader.adds("platform", json!(addons)).await?;
    reader.done("install web --yes").await?;
    Ok(charts)
}

/// The file of the page, and the first of its manifests.
fn catalogue(reader: &mut Reader, registry: &Registry) -> Result<()> {
    let file = blocks(CATALOGUE).find(|(language, _)| *language == "yaml");
    let (_, file) = file.context("no catalogue")?;
    reader.writes("catalogue.yaml", file)?;
    reader.writes(
        "manifests/log-shipper-1.0.0.yaml",
        &config_map("log-shipper", "1"),
    )?;
    let home = reader.user.home().to_string_lossy().into_owned();
    reader.names.push(("/srv", home));
    reader
        .names
        .push(("registry.example.org", registry.host.clone()));
    Ok(())
}

/// Once its second manifest is there, the catalogue is published.
async fn completed(reader: &Reader, number: usize) -> Result<()> {
    match number {
        0 => Ok(()),
        _ => reader.writes(
            "manifests/log-shipper-1.1.0.yaml",
            &config_map("log-shipper", "2"),
        ),
    }
}
