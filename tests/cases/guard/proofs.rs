//! A proof lies where the weaker party cannot write: what a record, a plan file or the Secrets of Helm say is compared with what only
//! the stronger one can have written.

use std::io::{Read as _, Write as _};

use addons_plan::file::{self, PlanFile};
use addons_tests::control_plane::{Own, binaries};
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map, tenant};
use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// Every user of a cluster sees the namespaces of its tenants.
static CLUSTER: Own = Own::new();

/// The namespace of a tenant of the cluster, which stands for it.
async fn team(stage: &Stage) -> Result<String> {
    let team = format!("{}-team", stage.namespace);
    let items = tenant(&team);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let args = ["apply", "-f", "-"];
    let applied = stage.plugin.kubectl_with_input(&args, &list).await?;
    applied.done().map(|_| team)
}

/// A record that a tenant writes by hand, with any status.
async fn forge(stage: &Stage, team: &str, addon: &str, status: &Value) -> Result<()> {
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": addon, "namespace": team},
        "spec": {"addonRef": {"name": addon, "index": "https://tenant.invalid/index.yaml"}},
    });
    let args = ["apply", "-f", "-"];
    let record = record.to_string();
    let applied = stage.plugin.kubectl_with_input(&args, &record).await?;
    applied.done()?;
    let patch = json!({"status": status}).to_string();
    let args = ["patch", "addoninstallation", addon, "-n", team];
    let how = ["--subresource=status", "--type=merge", "-p", &patch];
    let args = [&args[..], &how].concat();
    stage.plugin.kubectl(&args).await?.done().map(drop)
}

/// An installed add-on, as a status says it.
fn installed(version: &str, requires: &Value) -> Value {
    json!({"version": version, "requires": requires})
}

#[tokio::test]
async fn g13_a_forged_inventory_keeps_nothing_of_the_platform() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "forged-inventory").await?;
    let own = &stage.namespace;
    stage.run("init").await?.done()?;
    let team = team(&stage).await?;
    let names = ["kept", "dropped", "late"];
    let objects = names.map(|name| json!({"name": name, "uid": "0123"}));
    let status = json!({
        "phase": "Ready",
        "installed": installed("1.0.0", &json!([{"name": "web"}])),
        "inventory": [{"version": "v1", "kind": "ConfigMap", "namespace": own, "objects": objects}],
    });
    forge(&stage, &team, "forged", &status).await?;

    let first = [config_map("kept", "1"), config_map("dropped", "1")].concat();
    let second = [config_map("kept", "2"), config_map("late", "2")].concat();
    let first = stage.index("first.yaml", &[("web", "1.0.0", &first)])?;
    let second = stage.index("second.yaml", &[("web", "2.0.0", &second)])?;
    let install = format!("install web --channel {first} --yes");
    stage.run(&install).await?.done()?;
    let upgrade = format!("upgrade web -n {own} --channel {second} --yes");
    let said = stage.run(&upgrade).await?.done()?.stderr;
    ensure!(!said.contains("wants it, too"), "{said}");
    ensure!(!stage.has("configmap", "dropped").await?, "{said}");
    let uninstall = format!("uninstall web -n {own} --yes");
    let said = stage.run(&uninstall).await?.done()?.stderr;
    let warned = format!("warning: {team}/forged requires web, and stays without it");
    ensure!(said.contains(&warned), "{said}");
    for name in names {
        ensure!(!stage.has("configmap", name).await?, "{name}: {said}");
    }
    Ok(())
}

/// A tenant that owns an object keeps it: its label and its uid are on the object itself.
#[tokio::test]
async fn g13_what_live_objects_confirm_is_claimed() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "proven-inventory").await?;
    let own = &stage.namespace;
    stage.run("init").await?.done()?;
    let team = team(&stage).await?;
    let map = config_map("shared", "1");
    let map = map.replace(
        "{name: shared}",
        &format!("{{name: shared, namespace: {own}}}"),
    );
    let index = stage.index("index.yaml", &[("web", "1.0.0", &map)])?;
    let theirs = stage.index("theirs.yaml", &[("theirs", "1.0.0", &map)])?;
    let line = format!("install theirs -n {team} --channel {theirs} --yes");
    stage.run(&line).await?.done()?;
    let install = format!("install web --channel {index} --yes");
    let said = stage.run(&install).await?.ended(4)?.stderr;
    ensure!(said.contains(&format!("{team}/theirs")), "{said}");
    Ok(())
}

#[tokio::test]
async fn g13_a_forged_status_meets_no_requirement() -> Result<()> {
    let stage = Stage::of_module(&CLUSTER, "forged-requirement").await?;
    stage.run("init").await?.done()?;
    let team = team(&stage).await?;
    let status = json!({"phase": "Ready", "installed": installed("1.0.0", &json!([]))});
    forge(&stage, &team, "forged-certs", &status).await?;
    let version = json!({"version": "1.0.0", "requires": [{"name": "forged-certs"}],
        "source": {"inline": {"manifest": config_map("web", "1")}}});
    let file = stage.catalogue("web", &version)?;
    let add = format!("catalogue add {}", file.display());
    stage.run(&add).await?.done()?;
    let said = stage.run("install web --yes").await?.ended(1)?.stderr;
    ensure!(said.contains("web 1.0.0 requires forged-certs"), "{said}");
    ensure!(!stage.has("configmap", "web").await?, "{said}");
    Ok(())
}

/// A status that names an application of kapp hides nothing from kapp that is not of this installation.
#[tokio::test]
async fn g13_a_forged_application_of_kapp_is_not_set_aside() -> Result<()> {
    let stage = Stage::new("forged-kapp").await?;
    let own = &stage.namespace;
    let label = format!("{own}-1");
    let spec = json!({"labelKey": "kapp.k14s.io/app", "labelValue": label,
        "usedGKs": [{"Group": "", "Kind": "ConfigMap"}]});
    let items = json!([
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"spec": spec.to_string()},
            "metadata": {"name": "theirs", "namespace": own, "labels": {"kapp.k14s.io/is-app": ""}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {},
            "metadata": {"name": "till", "namespace": own, "labels": {"kapp.k14s.io/app": label}}},
    ]);
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let args = ["apply", "-f", "-"];
    let applied = stage.plugin.kubectl_with_input(&args, &list).await?;
    applied.done()?;
    let before = stage.must("configmap", "theirs").await?;
    let index = |version: &str| {
        let manifest = config_map("web", version);
        stage.index(&format!("{version}.yaml"), &[("web", version, &manifest)])
    };
    let install = format!("install web --channel {} --yes", index("1.0.0")?);
    stage.run(&install).await?.done()?;
    let uid = before["metadata"]["uid"].as_str().context("no uid")?;
    let former = json!([{"tool": "kapp", "namespace": own, "name": "theirs",
        "objects": [{"kind": "ConfigMap", "name": "theirs", "uid": uid}]}]);
    let status = json!({"former": former});
    stage
        .patch_status("addoninstallation", "web", &status)
        .await?;
    let upgrade = format!("upgrade web -n {own} --channel {} --yes", index("2.0.0")?);
    let said = stage.run(&upgrade).await?.done()?.stderr;
    let why = format!("not taken over: {own}/ConfigMap till");
    ensure!(said.contains(&why), "{said}");
    let after = stage.must("configmap", "theirs").await?;
    for field in ["/metadata/labels", "/data"] {
        ensure!(after.pointer(field) == before.pointer(field), "{after:#}");
    }
    Ok(())
}

/// A plan of an upgrade of `web` in `plan.json`.
async fn planned(stage: &Stage) -> Result<PlanFile> {
    let own = &stage.namespace;
    let index = |version: &str| {
        let manifest = config_map("web", version);
        stage.index(&format!("{version}.yaml"), &[("web", version, &manifest)])
    };
    let install = format!("install web --channel {} --yes", index("1.0.0")?);
    stage.run(&install).await?.done()?;
    let next = index("2.0.0")?;
    let plan = format!("plan web -n {own} --channel {next} -o plan.json");
    stage.run(&plan).await?.done()?;
    let text = std::fs::read(stage.plugin.home().join("plan.json"))?;
    match file::read(&text, None)? {
        file::Plans::One(plan) => Ok(*plan),
        file::Plans::Fleet(_) => bail!("it is not the plan of one cluster"),
    }
}

/// Writes a plan file with a digest of its own, as whoever edits it can.
fn edited(stage: &Stage, plan: &PlanFile) -> Result<()> {
    let (value, _) = file::write(plan)?;
    stage.write("edited.json", &value.to_string()).map(drop)
}

#[tokio::test]
async fn g14_a_plan_that_shows_something_else_is_not_run() -> Result<()> {
    let stage = Stage::new("plan-shows").await?;
    let plan = planned(&stage).await?;
    ensure!(plan.changes.len() == 1, "{:?}", plan.changes);
    let mut harmless = plan.clone();
    for field in harmless.changes.iter_mut().flat_map(|it| &mut it.fields) {
        field.new = Some(json!("harmless"));
    }
    let mut silent = plan.clone();
    silent.changes.clear();
    let mut warned = plan.clone();
    for one in &mut warned.installations {
        one.warnings.push("reviewed already".to_owned());
    }
    let other = "other changes would be made than the plan shows";
    for (plan, words) in [
        (harmless, other),
        (silent, other),
        (warned, "no longer holds: reviewed already"),
    ] {
        edited(&stage, &plan)?;
        let said = stage.run("apply edited.json --yes").await?.ended(4)?.stderr;
        ensure!(said.contains(words), "{words}: {said}");
        let map = stage.must("configmap", "web").await?;
        ensure!(map["data"]["key"] == "1.0.0", "{map:#}");
    }
    stage.run("apply plan.json --yes").await?.done()?;
    Ok(())
}

#[tokio::test]
async fn g14_only_the_plan_with_the_expected_digest_is_run() -> Result<()> {
    let stage = Stage::new("plan-digest").await?;
    let plan = planned(&stage).await?;
    let (_, digest) = file::write(&plan)?;
    let mut other = plan.clone();
    other.choices.allow_downgrade = true;
    edited(&stage, &other)?;
    let apply = |file: &str, digest: &str| format!("apply {file} --expect-digest {digest} --yes");
    let mark = stage.cluster.audit().mark()?;
    let said = stage.run(&apply("edited.json", &digest)).await?.ended(1)?;
    let said = said.stderr;
    ensure!(said.contains("not the plan that was reviewed"), "{said}");
    let requests = stage.requests(mark)?;
    ensure!(requests.writes("kubectl-addons") == 0, "{requests:?}");
    stage
        .run(&apply("plan.json", "sha256:12"))
        .await?
        .ended(2)?;
    stage.run(&apply("plan.json", &digest)).await?.done()?;
    let map = stage.must("configmap", "web").await?;
    ensure!(map["data"]["key"] == "2.0.0", "{map:#}");
    Ok(())
}

/// An add-on that helm installs itself, and an object that is no part of it.
struct Released {
    stage: Stage,
    flags: String,
}

impl Released {
    /// `web` 1.0.0 is installed, and 1.1.0 is listed.
    async fn new(what: &str) -> Result<Self> {
        let stage = Stage::new(what).await?;
        let shelf = Shelf::new()?;
        let mut versions = Vec::new();
        for version in ["1.0.0", "1.1.0"] {
            let map = config_map("web-map", version);
            let archive = shelf.chart("web", version, &[("templates/map.yaml", map.as_str())])?;
            let file = stage.plugin.home().join(format!("web-{version}.tgz"));
            std::fs::copy(archive, &file)?;
            versions.push(json!({
                "version": version, "defaultNamespace": stage.namespace,
                "template": {"method": "helm", "helm": {"mode": "release"}},
                "source": {"url": {"manifest": file.display().to_string()}},
            }));
        }
        let catalogue = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "web"},
            "spec": {"addons": [{"name": "web", "versions": versions}]},
        });
        let file = stage.write("catalogue.json", &catalogue.to_string())?;
        let flags = format!("--helm-bin {} --yes", binaries::helm()?.display());
        let install = format!("install web@1.0.0 --channel {} {flags}", file.display());
        stage.run(&install).await?.done()?;
        stage.apply(&config_map("precious", "1")).await?;
        Ok(Self { stage, flags })
    }

    fn revision(number: u32) -> String {
        format!("sh.helm.release.v1.web.v{number}")
    }

    /// The Secret of the first revision, and the release in it with `precious` in its manifest.
    async fn forged(&self) -> Result<(Value, Value)> {
        let secret = self.stage.must("secret", &Self::revision(1)).await?;
        let text = secret["data"]["release"].as_str().context("no release")?;
        let bytes = STANDARD.decode(STANDARD.decode(text)?)?;
        let mut text = String::new();
        GzDecoder::new(bytes.as_slice()).read_to_string(&mut text)?;
        let mut release: Value = serde_json::from_str(&text)?;
        let manifest = release["manifest"].as_str().context("no manifest")?;
        let forged = format!("{manifest}\n---\n{}", config_map("precious", "1"));
        release["manifest"] = json!(forged);
        Ok((secret, release))
    }

    async fn upgrade(&self) -> Result<addons_tests::plugin::Output> {
        let line = format!(
            "upgrade web@1.1.0 -n {} {}",
            self.stage.namespace, self.flags
        );
        self.stage.run(&line).await
    }

    async fn value(&self) -> Result<Value> {
        let mut map = self.stage.must("configmap", "web-map").await?;
        Ok(map["data"]["key"].take())
    }
}

/// A release as a Secret of helm has it.
fn stored(release: &Value) -> Result<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(release.to_string().as_bytes())?;
    Ok(STANDARD.encode(STANDARD.encode(encoder.finish()?)))
}

#[tokio::test]
async fn g13_helm_does_not_go_on_from_a_forged_release() -> Result<()> {
    let web = Released::new("forged-release").await?;
    let stage = &web.stage;
    let record = stage.record("web").await?;
    let known = &record["status"]["helmRecords"];
    ensure!(known[0]["name"] == Released::revision(1), "{record:#}");
    ensure!(known[0]["digest"].is_string(), "{record:#}");
    let (genuine, forged) = web.forged().await?;
    let name = Released::revision(1);
    let write = async |data: &Value| stage.patch("secret", &name, &json!({"data": data})).await;
    write(&json!({"release": stored(&forged)?})).await?;
    let uninstall = format!("uninstall web -n {} {}", stage.namespace, web.flags);
    for ended in [web.upgrade().await?, stage.run(&uninstall).await?] {
        let said = ended.ended(4)?.stderr;
        let accept = format!("upgrade web -n {} --repair --adopt", stage.namespace);
        for words in ["not as the last operation left it", &name, &accept] {
            ensure!(said.contains(words), "{words}: {said}");
        }
        ensure!(stage.has("configmap", "precious").await?, "{said}");
        ensure!(web.value().await? == "1.0.0", "{said}");
    }
    // The same release as before: whatever else is written on its Secret says nothing of it.
    write(&genuine["data"]).await?;
    web.upgrade().await?.done()?;
    ensure!(web.value().await? == "1.1.0");
    let record = stage.record("web").await?;
    let known = record["status"]["helmRecords"].as_array();
    ensure!(known.is_some_and(|all| all.len() == 2), "{record:#}");
    stage.run(&uninstall).await?.done()?;
    ensure!(stage.has("configmap", "precious").await?);
    ensure!(!stage.has("configmap", "web-map").await?);
    Ok(())
}

/// What an interrupted helm left cannot be told from what someone else wrote.
#[tokio::test]
async fn g13_an_unrecorded_revision_is_not_rolled_back() -> Result<()> {
    let web = Released::new("forged-pending").await?;
    let stage = &web.stage;
    let (mut secret, mut release) = web.forged().await?;
    release["version"] = json!(2);
    release["info"]["status"] = json!("pending-upgrade");
    let mut labels = secret["metadata"]["labels"].take();
    labels["version"] = json!("2");
    labels["status"] = json!("pending-upgrade");
    let pending = json!({"apiVersion": "v1", "kind": "Secret", "type": secret["type"],
        "metadata": {"name": Released::revision(2), "namespace": stage.namespace, "labels": labels},
        "data": {"release": stored(&release)?}});
    let args = ["create", "-f", "-"];
    let pending = pending.to_string();
    let created = stage.plugin.kubectl_with_input(&args, &pending).await?;
    created.done()?;
    let said = web.upgrade().await?.ended(4)?.stderr;
    ensure!(said.contains(&Released::revision(2)), "{said}");
    stage.begin("upgrade", "web", "ann@desk (test)", 60).await?;
    web.upgrade().await?.done()?;
    ensure!(web.value().await? == "1.1.0");
    ensure!(stage.has("configmap", "precious").await?);
    let record = stage.record("web").await?;
    let known = record["status"]["helmRecords"].as_array();
    ensure!(known.is_some_and(|all| all.len() == 2), "{record:#}");
    Ok(())
}
