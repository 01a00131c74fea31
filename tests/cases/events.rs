//! `--events`: each line is what the page says, and the counts are those of the summary for people.

mod elsewhere;

use std::collections::{BTreeMap, BTreeSet};

use addons_tests::denial::{When, deny};
use addons_tests::plugin::Output;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../kubectl-addons/docs/events.md");
/// Of the Secret that is installed.
const SECRET: &str = "hunter2-of-events";
/// Only a cluster without our definitions gets them: [`elsewhere`].
const ELSEWHERE: [&str; 1] = ["defined"];

/// The fields of each type: by name, and whether one may be missing.
fn schema() -> BTreeMap<&'static str, BTreeMap<&'static str, bool>> {
    let rows = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("| type | fields |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let row = |row: &'static str| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let fields = cells[2].split('`').skip(1).step_by(2);
        let fields = fields.map(|field| (field.trim_end_matches('?'), field.ends_with('?')));
        (cells[1].trim_matches('`'), fields.collect())
    };
    rows.map(row).collect()
}

/// A user, and the types of events that came.
struct Watched {
    stage: Stage,
    seen: BTreeSet<String>,
}

/// The events of one command, in their order.
struct Events(Vec<Value>);

impl Watched {
    /// Runs a command with `--events`, and checks each line.
    async fn run(&mut self, line: &str, code: i32) -> Result<(Events, Output)> {
        let said = self.stage.run(&format!("{line} --yes --events")).await?;
        let said = said.ended(code)?;
        ensure!(!said.stdout.contains(SECRET), "{}", said.stdout);
        let lines = said.stdout.lines().map(serde_json::from_str);
        let events: Vec<Value> = lines.collect::<Result<_, _>>()?;
        let schema = schema();
        for event in &events {
            let kind = event["type"].as_str().context("no type")?;
            let known = schema
                .get(kind)
                .with_context(|| format!("{kind} is not on the page"))?;
            let fields = event.as_object().context("no object")?;
            for field in fields.keys().map(String::as_str) {
                let of_all = ["time", "type", "cluster"].contains(&field);
                let is_known = known.contains_key(field) || of_all;
                ensure!(is_known, "{field} is not on the page: {event}");
            }
            let missing = known
                .iter()
                .find(|(field, is_optional)| !**is_optional && !fields.contains_key(**field));
            ensure!(missing.is_none(), "{missing:?} is missing: {event}");
            let time = event["time"].as_str().context("no time")?;
            time.parse::<jiff::Timestamp>()?;
            self.seen.insert(kind.to_owned());
        }
        let last = events.last().context("no event")?;
        ensure!(
            last["type"] == "ended" && last["exitCode"] == code,
            "{last}"
        );
        Ok((Events(events), said))
    }
}

impl Events {
    fn of(&self, kind: &str) -> Vec<&Value> {
        self.0
            .iter()
            .filter(|event| event["type"] == kind)
            .collect()
    }

    /// The names of the objects of all events of a type.
    fn objects(&self, kind: &str) -> BTreeSet<&str> {
        let events = self.of(kind).into_iter();
        events
            .filter_map(|event| event["object"]["name"].as_str())
            .collect()
    }

    /// Checks the counts of the only installation against the summary and against the events of single objects.
    fn agree(&self, said: &Output) -> Result<()> {
        let finished = self.of("finished");
        ensure!(finished.len() == 1, "{finished:?}");
        let counts = finished[0]["counts"].as_object().context("no counts")?;
        for (count, words) in [
            ("created", &["created"][..]),
            ("changed", &["changed"]),
            ("pruned", &["pruned", "deleted"]),
            ("unchanged", &["unchanged"]),
            ("failed", &["failed"]),
            ("skipped", &["skipped"]),
            ("notReady", &["not ready"]),
        ] {
            let number = counts[count].as_u64().context("no number")?;
            let words = words.iter().map(|word| format!(" {number} {word}"));
            let is_said = words.into_iter().any(|words| said.stderr.contains(&words));
            ensure!(is_said == (number > 0), "{number} {count}: {}", said.stderr);
        }
        for (kind, count) in [
            ("deleted", "pruned"),
            ("failed", "failed"),
            ("skipped", "skipped"),
            ("notReady", "notReady"),
        ] {
            ensure!(counts[count] == self.of(kind).len(), "{kind}: {counts:?}");
        }
        let applied = counts["created"].as_u64().zip(counts["changed"].as_u64());
        let applied = applied.map(|(created, changed)| created + changed);
        let applied = applied.context("no number")?;
        // What is refreshed may be as it was before.
        let sent = self.of("applied");
        let surely = sent.iter().filter(|one| one["action"] != "refresh").count() as u64;
        ensure!(
            (surely..=sent.len() as u64).contains(&applied),
            "{counts:?}"
        );
        Ok(())
    }
}

/// An old annotation of a pod template, which the API server warns of.
fn warned(name: &str) -> String {
    deployment(name, 1, None).replace(
        "metadata: {labels: {app: ",
        "metadata: {annotations: {scheduler.alpha.kubernetes.io/critical-pod: ''}, labels: {app: ",
    )
}

fn secret() -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: key}}\nstringData: {{key: {SECRET}}}\n---\n"
    )
}

/// A ConfigMap that a policy denies where it is no dry run, and another that waits for it.
fn broken(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: broken}}\ndata: {{key: '1'}}\n---\napiVersion: v1\nkind: ConfigMap\n\
         metadata: {{name: behind, annotations: {{config.kubernetes.io/depends-on: /namespaces/{namespace}/ConfigMap/broken}}}}\n---\n"
    )
}

/// The versions of an add-on, each an index of its own.
struct Versions {
    first: String,
    /// One object changes, and one is gone.
    second: String,
    /// What never gets ready.
    late: String,
    /// What is refused.
    failing: String,
}

impl Versions {
    fn new(stage: &Stage) -> Result<Self> {
        let index = |version: &str, objects: &[String]| {
            let file = format!("{version}/index.yaml");
            stage.index(&file, &[("web", version, &objects.concat())])
        };
        let one = config_map("a", "1");
        let two = config_map("a", "2");
        let late = deployment("web", 1, Some("nowhere"));
        Ok(Self {
            first: index(
                "1.0.0",
                &[one, config_map("b", "1"), secret(), warned("web")],
            )?,
            second: index("1.1.0", &[two.clone(), secret(), warned("web")])?,
            late: index("1.2.0", &[two.clone(), secret(), late])?,
            failing: index("1.3.0", &[two, broken(&stage.namespace)])?,
        })
    }
}

/// What is installed is planned, applied, waited for and counted.
async fn installed(watched: &mut Watched, versions: &Versions) -> Result<()> {
    let first = &versions.first;
    let install = format!("install web --channel {first}");
    let (events, said) = watched.run(&format!("{install} --dry-run"), 0).await?;
    let planned = &events.of("planned")[0]["counts"];
    ensure!(planned["create"] == 4, "{}", said.stdout);
    ensure!(events.of("started").is_empty(), "{}", said.stdout);
    let (events, said) = watched.run(&install, 0).await?;
    events.agree(&said)?;
    let all = BTreeSet::from(["a", "b", "key", "web"]);
    ensure!(events.objects("applied") == all, "{}", said.stdout);
    for kind in ["ready", "warning"] {
        ensure!(events.objects(kind).contains("web"), "{}", said.stdout);
    }
    let to = &events.of("planned")[0]["to"]["version"];
    ensure!(to == "1.0.0", "{}", said.stdout);
    let name = json!({"namespace": watched.stage.namespace, "name": "web"});
    let finished = &events.of("finished")[0]["installation"];
    ensure!(*finished == name, "{}", said.stdout);
    let upgrade = format!("upgrade web --channel {first}");
    watched.run(&upgrade, 0).await?;
    Ok(())
}

/// What is taken from others, pruned, late and refused.
async fn upgraded(watched: &mut Watched, versions: &Versions) -> Result<()> {
    let edit = json!({"data": {"key": "edited"}});
    watched.stage.patch("configmap", "a", &edit).await?;
    watched.stage.lock("web", "jane@laptop (test)", 0).await?;
    let Versions {
        second,
        late,
        failing,
        ..
    } = versions;
    let upgrade = format!("upgrade web --channel {second}");
    let (events, said) = watched.run(&upgrade, 0).await?;
    events.agree(&said)?;
    let b = BTreeSet::from(["b"]);
    ensure!(events.objects("deleted") == b, "{}", said.stdout);
    let manager = &events.of("conflict")[0]["manager"];
    ensure!(manager == "kubectl-patch", "{}", said.stdout);
    let holder = &events.of("waitingForLock")[0]["holder"];
    ensure!(holder == "jane@laptop (test)", "{}", said.stdout);
    deny(
        &watched.stage,
        When::Executed,
        &["CREATE"],
        "broken",
        "it is broken",
    )
    .await?;
    for (index, code, kind, name, outcome) in [
        (late, 3, "notReady", "web", "timedOut"),
        (failing, 6, "failed", "broken", "denied"),
    ] {
        let upgrade = format!("upgrade web --channel {index} --timeout 3s");
        let (events, said) = watched.run(&upgrade, code).await?;
        events.agree(&said)?;
        let objects = BTreeSet::from([name]);
        ensure!(events.objects(kind) == objects, "{}", said.stdout);
        let finished = events.of("finished")[0];
        ensure!(finished["outcome"] == outcome, "{}", said.stdout);
    }
    Ok(())
}

#[tokio::test]
async fn every_line_is_as_the_page_says_and_counts_as_the_summary() -> Result<()> {
    let mut tally = Tally::new("events::every_line");
    let stage = Stage::new("events").await?;
    let versions = Versions::new(&stage)?;
    let mut watched = Watched {
        stage,
        seen: BTreeSet::new(),
    };
    installed(&mut watched, &versions).await?;
    tally.ran();
    upgraded(&mut watched, &versions).await?;
    tally.ran();

    let suspend = async |stage: &Stage, value: bool| {
        let patch = json!({"spec": {"suspend": value}});
        stage.patch("addoninstallation", "web", &patch).await
    };
    suspend(&watched.stage, true).await?;
    watched.run("upgrade", 0).await?;
    suspend(&watched.stage, false).await?;
    watched.run("upgrade nothing", 1).await?;
    let (events, said) = watched.run("uninstall web", 0).await?;
    events.agree(&said)?;
    tally.ran();

    let known = schema().into_keys();
    let known = known.filter(|kind| !ELSEWHERE.contains(kind));
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    ensure!(watched.seen == known, "came: {:?}", watched.seen);
    Ok(())
}

/// An upgrade that goes back by itself: the way back is planned and started before the upgrade is finished, and has its own end.
#[tokio::test]
async fn a_way_back_has_events_of_its_own() -> Result<()> {
    let stage = Stage::new("events-back").await?;
    let versions = Versions::new(&stage)?;
    let mut watched = Watched {
        stage,
        seen: BTreeSet::new(),
    };
    let install = format!("install web --channel {}", versions.first);
    watched.run(&install, 0).await?;
    let late = &versions.late;
    let upgrade = format!("upgrade web --channel {late} --atomic --timeout 6s");
    let (events, said) = watched.run(&upgrade, 3).await?;
    for kind in ["planned", "started"] {
        let verbs: Vec<_> = events.of(kind).iter().map(|one| &one["verb"]).collect();
        ensure!(verbs == ["upgrade", "rollback"], "{}", said.stdout);
    }
    let ends = events.of("finished").into_iter();
    let ends: Vec<_> = ends.map(|one| [&one["verb"], &one["outcome"]]).collect();
    let expected = [["upgrade", "timedOut"], ["rollback", "done"]];
    ensure!(ends == expected, "{}", said.stdout);
    Ok(())
}

#[tokio::test]
async fn events_ask_nothing_and_are_the_only_output() -> Result<()> {
    let stage = Stage::new("events-alone").await?;
    let said = stage.run("upgrade --events").await?.ended(2)?;
    ensure!(
        said.stderr.contains("--yes") && said.stdout.is_empty(),
        "{}",
        said.stderr
    );
    let folder = stage.write("set/web.yaml", &config_map("web", "1"))?;
    let folder = folder.parent().context("no folder")?.display().to_string();
    let sync = format!("sync {folder} --all --yes --events");
    let said = stage.run(&format!("{sync} -o json")).await?.ended(2)?;
    ensure!(
        said.stderr
            .contains("--events cannot be combined with --output"),
        "{}",
        said.stderr
    );
    let said = stage.run(&sync).await?.done()?;
    let lines: Vec<Value> = said
        .stdout
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    ensure!(
        lines
            .iter()
            .any(|event| event["type"] == "finished" && event["counts"]["created"] == 1),
        "{}",
        said.stdout
    );
    Ok(())
}
