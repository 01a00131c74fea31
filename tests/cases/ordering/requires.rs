//! `requires` of a catalogue's entries: checked before the first write, kept while it is installed, and in the way of an
//! uninstallation.

use addons_tests::chaos::rig::Rig;
use addons_tests::control_plane::audit::Requests;
use addons_tests::plugin::Output;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::sent::Sent;
use super::{config_map, deployment, locked, manifest, unlock};

const PLUGIN: &str = "kubectl-addons";

/// A user whose namespace is the system namespace, with a catalogue of their own.
struct Catalogue {
    rig: Rig,
}

impl Catalogue {
    /// `base` in two versions, of which the second cannot become ready by itself; `app` requires the second; `extra`
    /// requires `app`; `left` and `right` require each other;
    /// `needs-away` requires `away`, which cannot be fetched, and `lost` what there is not.
    async fn new(what: &str) -> Result<Self> {
        let rig = Rig::new(what).await?;
        let namespace = rig.stage.namespace.clone();
        // What other tests install in the same cluster may meet a requirement.
        let named = |addon: &str| format!("{namespace}-{addon}");
        let entry = |version: &str, objects: &[Value], requires: Value| {
            json!({"version": version, "defaultNamespace": namespace, "requires": requires,
                "source": {"inline": {"manifest": manifest(objects)}}})
        };
        let base = config_map("base");
        let workload = locked(&rig.stage, deployment("base", &[]));
        let apps = [config_map("app"), deployment("app", &["app"])];
        let object = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": namespace},
            "spec": {"addons": [
                {"name": named("base"), "versions": [
                    entry("1.0.0", std::slice::from_ref(&base), json!([])),
                    entry("2.0.0", &[base.clone(), workload], json!([])),
                ]},
                {"name": named("app"), "versions": [entry("1.0.0", &apps, json!([{"name": named("base"), "version": ">=2.0.0"}]))]},
                {"name": named("extra"), "versions": [entry("1.0.0", &[config_map("extra")], json!([{"name": named("app")}]))]},
                {"name": named("left"), "versions": [entry("1.0.0", &[config_map("left")], json!([{"name": named("right")}]))]},
                {"name": named("right"), "versions": [entry("1.0.0", &[config_map("right")], json!([{"name": named("left")}]))]},
                {"name": named("away"), "versions": [
                    {"version": "1.0.0", "source": {"url": {"manifest": "http://127.0.0.1:1/away.yaml"}}},
                ]},
                {"name": named("needs-away"), "versions": [
                    entry("1.0.0", &[config_map("needs-away")], json!([{"name": named("away")}])),
                ]},
                {"name": named("lost"), "versions": [entry("1.0.0", &[config_map("lost")], json!([{"name": "nowhere", "version": "1.x"}]))]},
            ]},
        });
        let file = rig.stage.write("catalogue.yaml", &object.to_string())?;
        let catalogue = Self { rig };
        catalogue.run("init").await?.done()?;
        let add = format!("catalogue add {}", file.display());
        catalogue.run(&add).await?.done()?;
        Ok(catalogue)
    }

    /// Runs a command in which `%app` stands for the name of add-on `app`.
    async fn run(&self, line: &str) -> Result<Output> {
        let namespace = &self.rig.stage.namespace;
        let line = self.named(line);
        self.rig
            .run(&format!("{line} --system-namespace {namespace}"))
            .await
    }

    fn named(&self, text: &str) -> String {
        text.replace('%', &format!("{}-", self.rig.stage.namespace))
    }

    /// That a command is refused with these words, and wrote nothing.
    async fn refused(&self, line: &str, words: &str) -> Result<()> {
        let stage = &self.rig.stage;
        let words = &self.named(words);
        let mark = stage.cluster.audit().mark()?;
        let said = self.run(line).await?.ended(1)?.stderr;
        // Lines of an error stand under its first word.
        let lines: Vec<&str> = said.lines().map(str::trim_start).collect();
        let typed = format!(" --system-namespace {}", stage.namespace);
        let said = lines.join("\n").replace(&typed, "");
        ensure!(said.contains(words), "{line}: {said}\ninstead of\n{words}");
        let writes = stage.requests(mark)?.writes(PLUGIN);
        ensure!(writes == 0, "{line}: {writes} writes");
        Ok(())
    }
}

/// A refusal.
fn refusal(problem: &str, look: &str, fix: &str) -> String {
    format!("error: {problem}\nlook:   {look}\nfix:    {fix}")
}

#[tokio::test]
async fn missing_and_mismatched_requirements_are_named_with_the_way_out() -> Result<()> {
    let catalogue = Catalogue::new("required").await?;
    for (line, or) in [
        ("install %app --yes", "add --with-required"),
        ("install %app --dry-run", "add --with-required"),
        ("plan %app -o plan.json", "name it in the same command"),
    ] {
        let missing = refusal(
            "%app 1.0.0 requires %base >=2.0.0, which is not installed",
            "kubectl addons show %base",
            &format!("kubectl addons install %base@2.0.0, or {or}"),
        );
        catalogue.refused(line, &missing).await?;
    }
    let named = "%app 1.0.0 requires %base >=2.0.0, found 1.0.0";
    catalogue
        .refused("install %base@1.0.0 %app --yes", named)
        .await?;
    let nowhere = refusal(
        "%lost 1.0.0 requires nowhere 1.x, which is not installed",
        "kubectl addons show nowhere",
        "add a catalogue with a version of nowhere that fits",
    );
    catalogue.refused("install %lost --yes", &nowhere).await?;

    let cause = "http://127.0.0.1:1/away.yaml";
    let line = "install %needs-away %away --yes";
    catalogue.refused(line, cause).await?;

    catalogue.run("install %base@1.0.0 --yes").await?.done()?;
    let wrong = refusal(
        named,
        "kubectl addons show %base",
        "kubectl addons upgrade %base@2.0.0, or name it in the same command",
    );
    catalogue.refused("install %app --yes", &wrong).await?;
    let ring = "these add-ons require each other: ";
    for (line, names) in [
        ("install %left %right --yes", "%left → %right → %left"),
        ("plan %right %left -o dot", "%right → %left → %right"),
    ] {
        catalogue.refused(line, &format!("{ring}{names}")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_required_add_on_is_installed_first_and_uninstalled_last() -> Result<()> {
    let catalogue = Catalogue::new("ordered").await?;
    let (rig, stage) = (&catalogue.rig, &catalogue.rig.stage);
    let before = rig.proxy.requests().len();
    let drawn = catalogue
        .run("plan %extra %app %base -o dot")
        .await?
        .done()?;
    ensure!(
        drawn
            .stdout
            .contains(&catalogue.named("%base is installed"))
            && drawn.stdout.contains("label=\"requires\""),
        "{}",
        drawn.stdout
    );
    let unlocking = async {
        until("a pod without a node", async || {
            let pods = stage.kubectl(&["get", "pods", "-o", "json"]).await?.stdout;
            Ok(pods.contains("Unschedulable").then_some(()).ok_or(pods))
        })
        .await?;
        let sent = Sent::after(rig, before);
        unlock(stage).await?;
        Ok::<_, anyhow::Error>(sent)
    };
    let line = "install %extra %app %base --yes --timeout 60s";
    let (installed, sent) = tokio::join!(catalogue.run(line), unlocking);
    let (said, sent) = (installed?.done()?.stderr, sent?);
    ensure!(
        sent.objects().len() == 2 && sent.has("configmaps/base") && sent.has("deployments/base"),
        "while base was not ready: {:?}\n{said}",
        sent.objects()
    );
    let sent = Sent::after(rig, before);
    for object in ["configmaps/app", "deployments/app"] {
        sent.ensure("deployments/base", object)?;
        sent.ensure(object, "configmaps/extra")?;
    }

    let namespace = &stage.namespace;
    let stays =
        format!("{namespace}/%app requires %base >=2.0.0\n{namespace}/%extra requires %app");
    let look = "kubectl addons list";
    let accept = "kubectl addons uninstall %base %app %extra, which removes all of them";
    let words = refusal(&stays, look, accept);
    catalogue.refused("uninstall %base --yes", &words).await?;
    let words = format!("{namespace}/%extra requires %app");
    catalogue
        .refused("uninstall %base %app --yes", &words)
        .await?;

    let mark = stage.cluster.audit().mark()?;
    catalogue
        .run("uninstall %base %app %extra --yes --timeout 60s")
        .await?
        .done()?;
    let deleted = deleted(&stage.requests(mark)?);
    // Admission is asked first whether the record may go.
    let expected = [
        "%extra", "extra", "%extra", "%app", "app", "app", "%app", "%base", "base", "base", "%base",
    ];
    let expected = expected.map(|name| catalogue.named(name));
    ensure!(deleted == expected, "{deleted:?}");
    Ok(())
}

/// Names of what was deleted: records have those of their add-ons.
fn deleted(requests: &Requests) -> Vec<String> {
    let deleted = requests
        .of(PLUGIN)
        .filter(|request| request.verb == "delete" && request.is_write());
    let named = deleted.map(|request| request.object.name.clone());
    named.collect()
}
