//! Commands that messages print are followed to the end: they do what the user said, and no harm (semantics 17).

use std::path::Path;
use std::process::Command;

use addons_tests::plugin::Output;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// The command behind a label of what was said, without what follows it in the sentence.
pub(super) fn printed(said: &str, label: &str) -> Result<String> {
    let mut lines = said.lines().filter_map(|line| {
        let (_, rest) = line.split_once(label)?;
        let command = rest.trim_start();
        command.starts_with("kubectl ").then_some(command)
    });
    let line = lines.next();
    let line = line.with_context(|| format!("no command behind {label:?}: {said}"))?;
    let ends = [
        " continues where this ended",
        "    (",
        ", which ",
        ", once ",
        ", or ",
    ];
    let mut command = line;
    for end in ends {
        command = command.split(end).next().unwrap_or(command);
    }
    Ok(command.to_owned())
}

/// Types a printed command into a shell. What the user would be asked is agreed to.
pub(super) async fn follow(stage: &Stage, command: &str) -> Result<Output> {
    let is_asked = command.starts_with("kubectl addons ") && !command.contains(" --yes");
    let yes = if is_asked { " --yes" } else { "" };
    let command = format!("{command}{yes}");
    let shell = Path::new("/bin/sh");
    let ended = stage.plugin.program(shell, &["-c", &command]).await?;
    ended.done().with_context(|| command)
}

fn group(stage: &Stage) -> String {
    format!("{}.example.test", stage.namespace)
}

fn crd(stage: &Stage) -> String {
    format!("jars.{}", group(stage))
}

fn definition(stage: &Stage) -> String {
    let group = group(stage);
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: jars.{group}}}\nspec:\n  group: {group}\n  \
         scope: Namespaced\n  names: {{kind: Jar, plural: jars, singular: jar}}\n  versions:\n  - name: v1\n    served: true\n    \
         storage: true\n    schema: {{openAPIV3Schema: {{type: object}}}}\n---\n"
    )
}

async fn uid(stage: &Stage, kind: &str, name: &str) -> Result<String> {
    let object = stage.must(kind, name).await?;
    let uid = object["metadata"]["uid"].as_str();
    Ok(uid.context("no uid")?.to_owned())
}

/// Lets an object go, or holds it.
async fn hold(stage: &Stage, name: &str, holds: bool) -> Result<()> {
    let finalizers = if holds {
        json!(["example.test/hold"])
    } else {
        Value::Null
    };
    let patch = json!({"metadata": {"finalizers": finalizers}});
    stage.patch("configmap", name, &patch).await
}

/// How an uninstallation comes to an early end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// Its time is over.
    Late,
    /// Ctrl-C.
    Interrupted,
    /// The client is killed; `status` tells what to do.
    Killed,
}

/// An uninstallation that also deletes definitions, and ends early: the commands that are printed then delete them, too.
#[tokio::test]
async fn n15_what_was_to_be_deleted_is_deleted_when_it_is_continued() -> Result<()> {
    for end in [End::Late, End::Interrupted, End::Killed] {
        let stage = Stage::new("n15-uninstall").await?;
        let manifest = definition(&stage) + &config_map("held", "1");
        let index = stage.index("index.yaml", &[("jars", "1.0.0", &manifest)])?;
        stage
            .run(&format!("install jars --channel {index} --yes"))
            .await?
            .done()?;
        hold(&stage, "held", true).await?;
        let uninstall = "uninstall jars --delete-crds --yes";
        let command = match end {
            End::Late => {
                let said = stage.run(&format!("{uninstall} --timeout 6s")).await?;
                let command = printed(&said.ended(3)?.stderr, "again")?;
                ensure!(command.contains(" --timeout 6s"), "{command}");
                command
            }
            End::Interrupted | End::Killed => {
                let line = format!("{uninstall} --timeout 120s");
                let mut process = stage.plugin.start(&line.split(' ').collect::<Vec<_>>())?;
                until("an object is held", async || {
                    let held = stage.get("configmap", "held").await?.unwrap_or_default();
                    let is_going = held["metadata"]["deletionTimestamp"].is_string();
                    Ok(if is_going {
                        Ok(())
                    } else {
                        Err(held.to_string())
                    })
                })
                .await?;
                let signal = if end == End::Killed { "-KILL" } else { "-INT" };
                let id = process.id().to_string();
                let sent = Command::new("kill").args([signal, "--", &id]).status()?;
                ensure!(sent.success(), "kill failed");
                tokio::task::spawn_blocking(move || process.wait()).await??;
                if end == End::Interrupted {
                    let said = std::fs::read_to_string(stage.plugin.home().join("stderr"))?;
                    printed(&said, "continue:")?
                } else {
                    let said = until("the lock is over", async || {
                        let said = stage.run("status jars").await?.stdout;
                        Ok(match said.contains("Interrupted: uninstall") {
                            true => Ok(said),
                            false => Err(said),
                        })
                    })
                    .await?;
                    printed(&said, "to continue:")?
                }
            }
        };
        ensure!(command.contains(" --delete-crds"), "{end:?}: {command}");
        hold(&stage, "held", false).await?;
        follow(&stage, &command).await?;
        let crd = crd(&stage);
        ensure!(
            !stage.has("customresourcedefinition", &crd).await?,
            "{end:?}: {crd} stays after {command}"
        );
        ensure!(!stage.has("addoninstallation", "jars").await?, "{end:?}");
    }
    Ok(())
}

/// A failure tells the same in `status`, long after the command has ended.
#[tokio::test]
async fn n15_status_continues_as_it_was_begun() -> Result<()> {
    let stage = Stage::new("n15-status").await?;
    let manifest = definition(&stage) + &config_map("held", "1");
    let index = stage.index("index.yaml", &[("jars", "1.0.0", &manifest)])?;
    stage
        .run(&format!("install jars --channel {index} --yes"))
        .await?
        .done()?;
    hold(&stage, "held", true).await?;
    let line = "uninstall jars --delete-crds --yes --timeout 6s";
    stage.run(line).await?.ended(3)?;
    let record = stage.record("jars").await?;
    let recorded = &record["status"]["choices"]["delete"];
    ensure!(
        *recorded == json!(["CustomResourceDefinition"]),
        "{record:#}"
    );
    let said = stage.run("status jars").await?.stdout;
    let command = printed(&said, "to continue:")?;
    hold(&stage, "held", false).await?;
    follow(&stage, &command).await?;
    ensure!(!stage.has("customresourcedefinition", &crd(&stage)).await?);
    Ok(())
}

/// What failed is what is continued, and not the newest version.
#[tokio::test]
async fn n15_the_version_that_failed_is_named() -> Result<()> {
    let stage = Stage::new("n15-version").await?;
    let one = config_map("zone", "1");
    let two = config_map("zone", "2") + &deployment("zone", 1, Some(&stage.namespace));
    let three = config_map("zone", "3");
    let entries = [
        ("zones", "1.0.0", one.as_str()),
        ("zones", "2.0.0", &two),
        ("zones", "2.1.0", &three),
    ];
    let index = stage.index("index.yaml", &entries)?;
    stage
        .run(&format!("install zones@1.0.0 --channel {index} --yes"))
        .await?
        .done()?;
    let line = "upgrade zones@2.0.0 --yes --timeout 5s";
    let said = stage.run(line).await?.ended(3)?.stderr;
    let again = printed(&said, "again")?;
    let status = stage.run("status zones").await?.stdout;
    let continued = printed(&status, "to continue:")?;
    let back = printed(&said, "go back")?;
    for command in [&again, &continued] {
        ensure!(command.contains("upgrade zones@2.0.0 "), "{command}");
    }
    // The Deployment finds a node now.
    let patch = json!({"spec": {"template": {"spec": {"nodeSelector": null}}}});
    stage.patch("deployment", "zone", &patch).await?;
    follow(&stage, &format!("{continued} --wait=false")).await?;
    let record = stage.record("zones").await?;
    ensure!(
        record["status"]["installed"]["version"] == "2.0.0",
        "{record:#}"
    );
    ensure!(record["status"]["choices"].is_null(), "{record:#}");
    follow(&stage, &back).await?;
    let record = stage.record("zones").await?;
    ensure!(
        record["status"]["installed"]["version"] == "1.0.0",
        "{record:#}"
    );
    Ok(())
}

/// Who names a kubeconfig and a namespace need not name them again.
#[tokio::test]
async fn n15_the_cluster_that_was_named_is_named_again() -> Result<()> {
    let mut stage = Stage::new("n15-cluster").await?;
    let kubeconfig = stage.plugin.kubeconfig().display().to_string();
    stage.plugin = stage.plugin.variable("KUBECONFIG", "/nonexistent");
    let never = deployment("web", 1, Some(&stage.namespace));
    let index = stage.index("index.yaml", &[("web", "1.0.0", &never)])?;
    let line = format!(
        "install web --channel {index} --kubeconfig {kubeconfig} -n {} --yes --timeout 5s",
        stage.namespace
    );
    let said = stage.run(&line).await?.ended(3)?.stderr;
    let again = printed(&said, "again")?;
    for flag in [
        format!(" --kubeconfig {kubeconfig}"),
        format!(" -n {}", stage.namespace),
        format!(" --channel {index}"),
        " --timeout 5s".to_owned(),
        " --yes".to_owned(),
    ] {
        ensure!(again.matches(&flag).count() == 1, "{flag}: {again}");
    }
    let status = format!("status web --kubeconfig {kubeconfig}");
    let said = stage.run(&status).await?.stdout;
    let continued = printed(&said, "to continue:")?;
    follow(&stage, &format!("{continued} --wait=false")).await?;
    // And a refusal that only reads.
    let refused = format!("upgrade web@9.9.9 --channel {index} --kubeconfig {kubeconfig}");
    let said = stage.run(&refused).await?.stderr;
    let look = printed(&said, "look:")?;
    ensure!(
        look.contains(&format!(" --kubeconfig {kubeconfig}")),
        "{look}"
    );
    let shell = Path::new("/bin/sh");
    stage.plugin.program(shell, &["-c", &look]).await?.done()?;
    Ok(())
}

/// A Service with a fixed port of nodes and a fixed address is recreated: it holds both itself.
#[tokio::test]
async fn n15_a_service_with_a_fixed_port_is_recreated() -> Result<()> {
    let stage = Stage::new("n15-port").await?;
    let service = |address: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: gate}}\nspec:\n  type: NodePort\n  clusterIP: {address}\n  \
             selector: {{app: gate}}\n  ports: [{{name: http, port: 80, nodePort: 32117}}]\n---\n"
        )
    };
    let index = stage.index("1.yaml", &[("gate", "1.0.0", &service("100.64.217.11"))])?;
    stage
        .run(&format!("install gate --channel {index} --yes"))
        .await?
        .done()?;
    let before = uid(&stage, "service", "gate").await?;
    let index = stage.index("2.yaml", &[("gate", "2.0.0", &service("100.64.217.12"))])?;
    let line = format!(
        "upgrade gate -n {} --channel {index} --yes",
        stage.namespace
    );
    let refused = stage.run(&line).await?.ended(4)?.stderr;
    follow(&stage, &printed(&refused, "accept:")?).await?;
    let gate = stage.must("service", "gate").await?;
    ensure!(gate["spec"]["clusterIP"] == "100.64.217.12", "{gate:#}");
    ensure!(gate["spec"]["ports"][0]["nodePort"] == 32117, "{gate:#}");
    ensure!(uid(&stage, "service", "gate").await? != before, "{gate:#}");
    Ok(())
}

/// Nothing is accepted that has no effect.
#[tokio::test]
async fn n15_an_object_that_nothing_recreates_is_refused() -> Result<()> {
    let stage = Stage::new("n15-needless").await?;
    let manifest = |value: &str| config_map("changed", value) + &config_map("same", "1");
    let index = stage.index("1.yaml", &[("set", "1.0.0", &manifest("1"))])?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;
    let up_to_date = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    let two = manifest("2") + &config_map("new", "1");
    let index = stage.index("2.yaml", &[("set", "2.0.0", &two)])?;
    let due = format!("upgrade set -n {} --channel {index} --yes", stage.namespace);
    for (line, object, why) in [
        (&up_to_date, "ConfigMap/same", "it is up to date"),
        (&due, "ConfigMap/same", "it is up to date"),
        (&due, "ConfigMap/changed", "it is changed in place"),
        (&due, "ConfigMap/new", "it does not exist, and is created"),
    ] {
        let mark = stage.cluster.audit().mark()?;
        let refused = stage.run(&format!("{line} --recreate {object}")).await?;
        let refused = refused.ended(2)?.stderr;
        let told = format!("{object} is not recreated: {why}; leave out --recreate {object}");
        ensure!(refused.contains(&told), "{refused}");
        let writes = stage.requests(mark)?.writes("kubectl-addons");
        ensure!(writes == 0, "{object}: {writes} writes");
    }
    stage.run(&due).await?.done().map(drop)
}

/// What Flux applies is taken over once that is suspended: deleted as it is, it would delete everything.
#[tokio::test]
async fn n15_what_reconciles_an_object_is_suspended_and_not_deleted() -> Result<()> {
    let stage = Stage::new("n15-flux").await?;
    let at = stage.namespace.as_str();
    for (group, kind, plural, stands) in [
        (
            "kustomize.toolkit.fluxcd.io",
            "Kustomization",
            "kustomizations",
            json!({"spec": {"prune": true, "suspend": true}}),
        ),
        (
            "argoproj.io",
            "Application",
            "applications",
            json!({"spec": {"syncPolicy": {}}}),
        ),
    ] {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
        });
        let name = format!("{plural}.{group}");
        if !stage.has("customresourcedefinition", &name).await? {
            stage.apply(&definition.to_string()).await?;
        }
        let crd = format!("crd/{name}");
        stage
            .kubectl(&["wait", "--for=condition=Established", &crd])
            .await?;
        let served = stage.must("customresourcedefinition", &name).await?;
        let version = served["spec"]["versions"][0]["name"].as_str();
        let version = version.context("no version")?.to_owned();
        let owner = json!({
            "apiVersion": format!("{group}/{version}"), "kind": kind,
            "metadata": {"name": "shop", "finalizers": ["example.test/deletes-everything"]},
            "spec": {"prune": true, "syncPolicy": {"automated": {"selfHeal": true}}},
        });
        let marks = match kind {
            "Application" => {
                format!(
                    "annotations: {{argocd.argoproj.io/tracking-id: '{at}_shop:/ConfigMap:{at}/settings'}}"
                )
            }
            _ => format!("labels: {{{group}/name: shop, {group}/namespace: {at}}}"),
        };
        let marked = config_map("settings", "1")
            .replace("name: settings", &format!("name: settings, {marks}"));
        stage.apply(&marked).await?;
        stage.apply(&owner.to_string()).await?;
        let index = stage.index(
            "index.yaml",
            &[("web", "1.0.0", &config_map("settings", "2"))],
        )?;
        let line = format!("install web --channel {index} --adopt --yes");
        let said = stage.run(&line).await?.ended(4)?.stderr;
        ensure!(!said.contains("; delete the"), "{said}");
        follow(&stage, &printed(&said, "fix:")?).await?;
        let owner = stage.must(&name, "shop").await?;
        for (field, value) in stands["spec"].as_object().into_iter().flatten() {
            ensure!(owner["spec"][field] == *value, "{owner:#}");
        }
        let is_argo = kind == "Application";
        ensure!(
            owner["metadata"]["finalizers"].is_null() == is_argo,
            "{owner:#}"
        );
        ensure!(said.contains("accept: --adopt --force-adopt"), "{said}");
        stage.run(&format!("{line} --force-adopt")).await?.done()?;
        stage.run("uninstall web --yes").await?.done()?;
        let free = json!({"metadata": {"finalizers": null}});
        stage.patch(&name, "shop", &free).await?;
        stage.kubectl(&["delete", &name, "shop"]).await?;
    }
    Ok(())
}

/// What a release of Helm has is taken over, and not installed a second time.
#[tokio::test]
async fn n15_what_helm_has_is_adopted_and_not_installed_beside_it() -> Result<()> {
    let stage = Stage::new("n15-second").await?;
    let at = stage.namespace.as_str();
    let version = |name: &str, manifest: &str, requires: Value| {
        json!({"name": name, "versions": [{
            "version": "1.0.0", "defaultNamespace": at, "requires": requires,
            "source": {"inline": {"manifest": manifest}},
        }]})
    };
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": at},
        "spec": {"addons": [
            version("base", &config_map("base", "1"), json!([])),
            version("top", &config_map("top", "1"), json!([{"name": "base"}])),
        ]},
    });
    let file = stage.write("catalogue.json", &catalogue.to_string())?;
    stage
        .run(&format!("catalogue add {}", file.display()))
        .await?
        .done()?;
    let marks = format!(
        "name: base, labels: {{app.kubernetes.io/managed-by: Helm, helm.sh/chart: base-1.0.0}}, \
         annotations: {{meta.helm.sh/release-name: deep, meta.helm.sh/release-namespace: {at}}}"
    );
    stage
        .apply(&config_map("base", "1").replace("name: base", &marks))
        .await?;
    let said = stage.run("install top --yes").await?;
    ensure!(said.code != 0, "{}", said.stderr);
    let fix = printed(&said.stderr, "fix:")?;
    ensure!(
        fix.starts_with("kubectl addons adopt base") && fix.contains(" --name deep"),
        "{fix}"
    );
    let before = uid(&stage, "configmap", "base").await?;
    follow(&stage, &fix).await?;
    ensure!(uid(&stage, "configmap", "base").await? == before);
    ensure!(stage.has("addoninstallation", "deep").await?);
    stage.run("install top --yes").await?.done().map(drop)
}

/// A claim that cannot change keeps its data: no command deletes it.
#[tokio::test]
async fn n15_no_one_is_told_to_delete_a_claim() -> Result<()> {
    let stage = Stage::new("n15-claim").await?;
    let claim = |class: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec: {{accessModes: [ReadWriteOnce], \
             storageClassName: {class}, resources: {{requests: {{storage: 1Gi}}}}}}\n---\n"
        )
    };
    let index = stage.index("1.yaml", &[("db", "1.0.0", &claim("a"))])?;
    stage
        .run(&format!("install db --channel {index} --yes --wait=false"))
        .await?
        .done()?;
    let index = stage.index("2.yaml", &[("db", "2.0.0", &claim("b"))])?;
    let line = format!(
        "upgrade db -n {} --channel {index} --yes --wait=false",
        stage.namespace
    );
    let said = stage.run(&line).await?.ended(1)?.stderr;
    ensure!(
        said.contains(
            "fix:    take the change out of the manifest, or give the object another name"
        ),
        "{said}"
    );
    ensure!(!said.contains("delete and create"), "{said}");
    Ok(())
}
