//! One command on many clusters: namespaces with a label that stand for them, or several contexts.

use super::*;

use std::path::Path;

use addons_tests::until::until;

/// A cluster without a loop, which would work on the records as well, and without users who name no namespace.
static HOME: Own = Own::new();

/// Namespaces that stand for clusters, with a label that selects them.
struct Fleet {
    pair: Pair,
}

impl Fleet {
    /// `a` stands for the other cluster, `b` for this one.
    async fn new(what: &str) -> Result<Self> {
        let fleet = Self {
            pair: Pair::of(Stage::of_module(&HOME, what).await?).await?,
        };
        let kubeconfig = fleet.pair.kubeconfig()?;
        fleet.member("a", Some(&kubeconfig)).await?;
        fleet.member("b", None).await?;
        Ok(fleet)
    }

    /// Adds a namespace that stands for the cluster of a kubeconfig, or for this one.
    async fn member(&self, name: &str, kubeconfig: Option<&str>) -> Result<()> {
        let (key, value) = match kubeconfig {
            Some(_) => ("kubectl-addons.dev/kubeconfig-secret", "other"),
            None => ("kubectl-addons.dev/cluster", "local"),
        };
        let name = self.name(name);
        let labels = json!({"fleet": self.pair.stage.namespace, key: value});
        let mut items = vec![json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels},
        })];
        items.extend(kubeconfig.map(|kubeconfig| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": name},
                "data": {"value": STANDARD.encode(kubeconfig)},
            })
        }));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let plugin = &self.pair.stage.plugin;
        let applied = plugin.kubectl_with_input(&["apply", "-f", "-"], &list);
        applied.await?.done().map(drop)
    }

    /// A kubeconfig whose server does not answer.
    fn unreachable(&self) -> Result<String> {
        let mut kubeconfig: Value = serde_json::from_str(&self.pair.kubeconfig()?)?;
        kubeconfig["clusters"][0]["cluster"]["server"] = json!("https://127.0.0.1:1");
        Ok(kubeconfig.to_string())
    }

    fn name(&self, member: &str) -> String {
        format!("{}-{member}", self.pair.stage.namespace)
    }

    async fn run(&self, line: &str) -> Result<Output> {
        let label = &self.pair.stage.namespace;
        let line = format!("{line} --clusters fleet={label}");
        self.pair.stage.run(&line).await
    }

    /// Whether the result of each cluster, as the last table of a command has it, is this one.
    fn ended(&self, said: &Output, expected: &[(&str, &str)]) -> Result<()> {
        for (member, expected) in expected {
            let name = self.name(member);
            let mut lines = said.stderr.lines();
            let row = lines.rfind(|line| line.split_whitespace().next() == Some(&name));
            let row = row.unwrap_or_default();
            ensure!(
                row.ends_with(expected),
                "{member}: {row:?}\n{}",
                said.stderr
            );
        }
        Ok(())
    }
}

/// A cluster whose maintenance windows are closed is left out, and the others are changed. The command that continues names it.
#[tokio::test]
async fn a_cluster_outside_its_windows_is_left_out() -> Result<()> {
    let fleet = Fleet::new("windows").await?;
    let pair = &fleet.pair;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    let closed = fleet.name("a");
    // Both have to be open, and never are.
    let windows = |schedule: &str| json!([{"schedule": schedule, "duration": "1m"}]);
    for (number, schedule) in ["0 0 1 1 *", "0 0 1 7 *"].into_iter().enumerate() {
        let policy = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonPolicy",
            "metadata": {"name": format!("{closed}-{number}")},
            "spec": {
                "action": "Enforce",
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": closed}},
                "maintenance": {"windows": windows(schedule)},
            },
        });
        pair.stage.apply(&policy.to_string()).await?;
    }
    let said = fleet.run("install web -y").await?.ended(6)?;
    fleet.ended(&said, &[("a", "denied"), ("b", "done")])?;
    for part in ["never open together", " --outside-window"] {
        ensure!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    ensure!(pair.there("configmap", "web").await?.is_none());
    ensure!(pair.here("configmap", "web").await?.is_some());
    let said = fleet.run("install web -y --outside-window").await?.done()?;
    fleet.ended(&said, &[("a", "done")])?;
    ensure!(pair.there("configmap", "web").await?.is_some());
    fleet
        .run("uninstall web -y --outside-window")
        .await?
        .done()
        .map(drop)
}

/// Installed on three clusters, of which one does not answer: that one fails alone, by its name.
#[tokio::test]
async fn a_cluster_that_does_not_answer_fails_alone() -> Result<()> {
    let fleet = Fleet::new("fleet").await?;
    let pair = &fleet.pair;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    fleet.member("c", Some(&fleet.unreachable()?)).await?;
    // One question is about all of them.
    let said = fleet.run("install web").await?.ended(1)?;
    let asked = said.stderr.matches("without a terminal").count();
    ensure!(asked == 1, "{}", said.stderr);
    ensure!(pair.there("configmap", "web").await?.is_none());
    let said = fleet.run("install web -y").await?.ended(1)?;
    fleet.ended(&said, &[("a", "done"), ("b", "done"), ("c", "failed")])?;
    let dead = fleet.name("c");
    let failure = format!("[{dead}] error: ");
    ensure!(said.stderr.contains(&failure), "{}", said.stderr);
    let again = format!("--clusters kubernetes.io/metadata.name={dead}");
    ensure!(said.stderr.contains(&again), "{}", said.stderr);
    ensure!(pair.there("configmap", "web").await?.is_some());
    ensure!(pair.here("configmap", "web").await?.is_some());

    let said = fleet.run("list -o json").await?.done()?;
    let listed: Value = serde_json::from_str(&said.stdout)?;
    for (at, member) in ["a", "b"].into_iter().enumerate() {
        let item = &listed["items"][at];
        ensure!(item["cluster"] == fleet.name(member), "{listed}");
        ensure!(item["status"] == "Ready", "{listed}");
    }
    let table = fleet.run("list").await?.done()?;
    ensure!(table.stdout.starts_with("CLUSTER "), "{}", table.stdout);

    let said = fleet.run("upgrade web -y").await?.ended(1)?;
    fleet.ended(
        &said,
        &[("a", "unchanged"), ("b", "unchanged"), ("c", "failed")],
    )?;
    let said = fleet.run("uninstall web -y").await?.ended(1)?;
    fleet.ended(&said, &[("a", "done"), ("b", "done"), ("c", "failed")])?;
    ensure!(pair.there("configmap", "web").await?.is_none());
    ensure!(pair.here("configmap", "web").await?.is_none());
    Ok(())
}

/// A set is a template for each cluster that is selected, changed in waves; a second run changes none of them.
#[tokio::test]
async fn each_cluster_gets_a_set() -> Result<()> {
    let fleet = Fleet::new("template").await?;
    let pair = &fleet.pair;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    let set = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "front"}, "spec": {"addonRef": {"name": "web"}},
    });
    let path = pair.stage.write("set.yaml", &set.to_string())?;
    let apply = format!("apply -f {} -y", path.display());
    fleet.run(&format!("{apply} --dry-run")).await?.done()?;
    ensure!(pair.there("configmap", "web").await?.is_none());
    let waves = format!("{apply} --canary 1 --soak 1s");
    let said = fleet.run(&waves).await?.done()?;
    fleet.ended(&said, &[("a", "done"), ("b", "done")])?;
    ensure!(said.stderr.contains("wave 2 of 2"), "{}", said.stderr);
    ensure!(pair.there("configmap", "web").await?.is_some());
    ensure!(pair.here("configmap", "web").await?.is_some());
    let said = fleet.run(&apply).await?.done()?;
    fleet.ended(&said, &[("a", "unchanged"), ("b", "unchanged")])?;
    let said = pair.stage.run(&waves).await?.ended(2)?;
    ensure!(
        said.stderr.contains("require several clusters"),
        "{}",
        said.stderr
    );
    fleet.run("uninstall front -y").await?.done().map(drop)
}

/// A canary that does not get ready stops the second wave, and the command that is printed goes on.
#[tokio::test]
async fn a_canary_that_is_not_ready_stops_the_others() -> Result<()> {
    let fleet = Fleet::new("canary").await?;
    let pair = &fleet.pair;
    let broken = config_map("web", "1") + &deployment("web", 1, Some("nowhere"));
    pair.offer("1.0.0", &broken).await?;
    let said = fleet
        .run("install web -y --canary 1 --soak 1s --timeout 8s")
        .await?
        .ended(3)?;
    fleet.ended(&said, &[("a", "timed out"), ("b", "not begun")])?;
    ensure!(pair.there("configmap", "web").await?.is_some());
    ensure!(pair.here("configmap", "web").await?.is_none());
    let stopped = format!("stopped; not begun: {}", fleet.name("b"));
    ensure!(said.stderr.contains(&stopped), "{}", said.stderr);
    let mut lines = said.stderr.lines();
    let again = lines.find_map(|line| line.trim().strip_prefix("continue: kubectl addons install"));
    let again = again.context("no command that goes on")?;

    let whole = config_map("web", "1") + &deployment("web", 1, None);
    pair.offer("1.0.1", &whole).await?;
    let again = format!("kubectl addons install{again}");
    let plugin = &pair.stage.plugin;
    let said = plugin
        .program(Path::new("/bin/sh"), &["-c", &again])
        .await?;
    let said = said.done()?;
    fleet.ended(&said, &[("a", "done"), ("b", "done")])?;
    ensure!(said.stderr.contains("stay ready for 1s"), "{}", said.stderr);
    ensure!(pair.here("deployment", "web").await?.is_some());
    Ok(())
}

/// A canary that was ready and breaks while it soaks stops the second wave.
#[tokio::test]
async fn a_canary_that_breaks_while_it_soaks_stops_the_others() -> Result<()> {
    let fleet = Fleet::new("soaking").await?;
    let pair = &fleet.pair;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    let canary = fleet.name("a");
    let breaking = async {
        until("the canary is ready", async || {
            let home = &pair.stage.cluster;
            let record = read(home, "addoninstallation", &canary, "web").await?;
            let status = record.unwrap_or_default()["status"].take();
            let is_ready = status["phase"] == "Ready";
            Ok(is_ready.then_some(()).ok_or_else(|| status.to_string()))
        })
        .await?;
        let path = objects::path("configmap", &pair.target(), "web").context("known")?;
        let delete = http::Request::delete(&path).body(Vec::new())?;
        pair.other.client().await?.request::<Value>(delete).await?;
        Ok(())
    };
    let install = fleet.run("install web -y --canary 1 --soak 5m");
    let (said, ()) = tokio::try_join!(install, breaking)?;
    let said = said.ended(3)?;
    fleet.ended(&said, &[("a", "not ready"), ("b", "not begun")])?;
    let why = format!("[{canary}] not ready: web Degraded: ConfigMap web");
    ensure!(said.stderr.contains(&why), "{}", said.stderr);
    ensure!(pair.here("configmap", "web").await?.is_none());
    Ok(())
}

/// A plan file of two clusters: one moved and is refused by its name, the other is changed; run again, what is done is skipped.
#[tokio::test]
async fn a_plan_file_is_refused_only_where_a_cluster_moved() -> Result<()> {
    let fleet = Fleet::new("fleetplan").await?;
    let (pair, moved) = (&fleet.pair, fleet.name("b"));
    let stage = &pair.stage;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    let file = stage.plugin.home().join("plan.json");
    let file = file.display();
    fleet.run(&format!("plan web -o {file}")).await?.done()?;
    let text = std::fs::read_to_string(file.to_string())?;
    for hidden in ["LS0t", "BEGIN", "key-data", "https://"] {
        ensure!(!text.contains(hidden), "{hidden} is in the plan file");
    }
    let page = fleet.run("plan web -o html").await?.done()?.stdout;
    for cluster in ["a", "b"].map(|member| fleet.name(member)) {
        ensure!(page.contains(&cluster), "{cluster} is not on the page");
    }
    let other = format!("install web -y --conflicts fail -n {moved}");
    stage.run(&other).await?.done()?;
    let apply = format!("apply {file} -y");
    let said = stage.run(&apply).await?.ended(4)?;
    fleet.ended(&said, &[("a", "done"), ("b", "conflict")])?;
    let refused = format!("[{moved}] error: ");
    ensure!(said.stderr.contains(&refused), "{}", said.stderr);
    ensure!(pair.there("configmap", "web").await?.is_some());
    let again = stage.run(&apply).await?.ended(4)?;
    fleet.ended(&again, &[("a", "unchanged"), ("b", "conflict")])?;
    let skipped = format!("[{}] the plan is done already", fleet.name("a"));
    ensure!(again.stderr.contains(&skipped), "{}", again.stderr);

    let status = fleet.run("status web").await?.done()?;
    let ready = status.stdout.lines().filter(|line| line.ends_with("Ready"));
    ensure!(ready.count() == 2, "{}", status.stdout);
    pair.offer("1.1.0", &config_map("web", "2")).await?;
    let diff = fleet.run("diff web -o json").await?.ended(1)?;
    let diff: Value = serde_json::from_str(&diff.stdout)?;
    ensure!(diff["items"][0]["cluster"] == fleet.name("a"), "{diff}");
    ensure!(diff["items"][1]["cluster"] == moved, "{diff}");
    Ok(())
}

/// An upgrade that is not ready in time goes back on each cluster, and every event says on which one it happened.
#[tokio::test]
async fn each_cluster_goes_back_by_itself() -> Result<()> {
    let fleet = Fleet::new("fleetback").await?;
    let pair = &fleet.pair;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    fleet.run("install web -y").await?.done()?;
    let late = config_map("web", "2") + &deployment("web", 1, Some("nowhere"));
    // No revision keeps a manifest that stands in the entry: the catalogue still lists it.
    let listed = pair.stage.must("addoncatalogue", "web").await?;
    let mut late_too = listed["spec"]["addons"][0]["versions"].clone();
    let mut version = late_too[0].clone();
    version["version"] = json!("1.1.0");
    version["source"]["inline"]["manifest"] = json!(late);
    late_too.as_array_mut().context("no list")?.push(version);
    let patch = json!({"spec": {"addons": [{"name": "web", "versions": late_too}]}});
    pair.stage.patch("addoncatalogue", "web", &patch).await?;
    let said = fleet
        .run("upgrade web -y --atomic --timeout 6s --events")
        .await?;
    let said = said.ended(3)?;
    let lines = said.stdout.lines().map(serde_json::from_str);
    let events: Vec<Value> = lines.collect::<Result<_, _>>()?;
    for member in ["a", "b"] {
        let name = fleet.name(member);
        let of_it = events.iter().filter(|event| event["cluster"] == name);
        let ends = of_it.filter(|event| event["type"] == "finished");
        let ends: Vec<_> = ends.map(|one| [&one["verb"], &one["outcome"]]).collect();
        let expected = [["upgrade", "timedOut"], ["rollback", "done"]];
        ensure!(ends == expected, "{member}: {}", said.stdout);
    }
    for live in [
        pair.here("configmap", "web").await?,
        pair.there("configmap", "web").await?,
    ] {
        let live = live.context("no ConfigMap")?;
        ensure!(live["data"]["key"] == "1", "{live}");
    }
    Ok(())
}

/// What a set names no more is uninstalled on each cluster, and nothing else is.
#[tokio::test]
async fn each_cluster_loses_what_its_set_has_no_more() -> Result<()> {
    let fleet = Fleet::new("fleetprune").await?;
    let pair = &fleet.pair;
    pair.offer("1.0.0", &config_map("web", "1")).await?;
    let entry = |name: &str| {
        let other = config_map(name, "1");
        json!({"version": "1.0.0", "defaultNamespace": pair.target(), "source": {"inline": {"manifest": other}}})
    };
    for name in ["more", "own"] {
        let file = pair.stage.catalogue(name, &entry(name))?;
        let add = format!("catalogue add {}", file.display());
        pair.stage.run(&add).await?.done()?;
    }
    let write = |names: &[&str]| {
        let set = names.iter().map(|name| {
            let one = json!({
                "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
                "metadata": {"name": name}, "spec": {"addonRef": {"name": name}},
            });
            format!("---\n{one}\n")
        });
        pair.stage.write("set.yaml", &set.collect::<String>())
    };
    let path = write(&["web", "more"])?;
    let apply = format!("apply -f {} --set-name base --prune -y", path.display());
    fleet.run(&apply).await?.done()?;
    fleet.run("install own -y").await?.done()?;
    write(&["web"])?;
    let said = fleet.run(&apply).await?.done()?;
    fleet.ended(&said, &[("a", "done"), ("b", "done")])?;
    for (name, stays) in [("web", true), ("more", false), ("own", true)] {
        let found = [
            pair.here("configmap", name).await?.is_some(),
            pair.there("configmap", name).await?.is_some(),
        ];
        ensure!(found == [stays; 2], "{name}: {found:?}");
    }
    Ok(())
}

/// Contexts of a kubeconfig: a mistyped one stops the command, one that does not answer fails alone.
#[tokio::test]
async fn contexts_are_clusters_as_well() -> Result<()> {
    let stage = Stage::new("contexts").await?;
    let user = std::fs::read_to_string(stage.plugin.kubeconfig())?;
    let mut kubeconfig: Value = serde_json::from_str(&user)?;
    let mut dead = kubeconfig["clusters"][0].clone();
    dead["name"] = json!("dead");
    dead["cluster"]["server"] = json!("https://127.0.0.1:1");
    let mut context = kubeconfig["contexts"][0].clone();
    context["name"] = json!("live");
    let mut other = context.clone();
    other["name"] = json!("dead");
    other["context"]["cluster"] = json!("dead");
    for (list, entries) in [("clusters", vec![dead]), ("contexts", vec![context, other])] {
        let list = kubeconfig[list].as_array_mut().context("no list")?;
        list.extend(entries);
    }
    let file = stage.write("contexts.json", &kubeconfig.to_string())?;
    let index = stage.index("index.yaml", &[("web", "1.0.0", &config_map("web", "1"))])?;
    let file = file.display();
    let said = stage
        .run(&format!(
            "install web --channel {index} -y --context live,daed --kubeconfig {file}"
        ))
        .await?
        .ended(1)?;
    ensure!(
        said.stderr.contains("has no such context"),
        "{}",
        said.stderr
    );
    ensure!(!stage.has("configmap", "web").await?);
    let said = stage
        .run(&format!(
            "install web --channel {index} -y --context live,dead --kubeconfig {file}"
        ))
        .await?
        .ended(1)?;
    ensure!(said.stderr.contains("[dead] error: "), "{}", said.stderr);
    ensure!(said.stderr.contains(" --context dead "), "{}", said.stderr);
    ensure!(stage.has("configmap", "web").await?);
    Ok(())
}
