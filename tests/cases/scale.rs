//! 5,000 objects in 50 namespaces: memory grows slowly with the set, and requests follow the change.

use std::time::{Duration, Instant};

use addons_tests::plugin::Output;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

const MANY: usize = 5_000;
const FEW: usize = 500;
const NAMESPACES: usize = 50;
/// Peak memory that one more object may take.
const BYTES_AN_OBJECT: u64 = 20 * 1024;
/// Of the record as JSON (semantics 13).
const BUDGET: usize = 800_000;
/// The requests of a run that have nothing to do with the objects: version, discovery, records, lock and end.
const AROUND: usize = 20;
/// How often the lock is renewed, each time twice where the server is slow.
const RENEWAL: Duration = Duration::from_secs(5);
/// Nobody reads more.
const LINES: usize = 100;

/// An add-on of ConfigMaps in 50 namespaces.
struct Set {
    stage: Stage,
    count: usize,
}

/// What one command took and asked for.
struct Ran {
    output: Output,
    patches: usize,
    deletes: usize,
    total: usize,
    took: Duration,
}

/// Peak memory of the four commands.
type Peaks = [(&'static str, u64); 4];

impl Set {
    async fn new(count: usize) -> Result<Self> {
        let stage = Stage::new("scale").await?;
        let api = Api::<Namespace>::all(stage.cluster.client().await?);
        for i in 0..NAMESPACES {
            let metadata = json!({"name": format!("{}-{i}", stage.namespace)});
            let namespace = serde_json::from_value(json!({"metadata": metadata}))?;
            api.create(&PostParams::default(), &namespace).await?;
        }
        stage.run("init").await?.done()?;
        Ok(Self { stage, count })
    }

    /// The first `count` objects, of which one has another value.
    fn write(&self, version: &str, count: usize, value: &str) -> Result<String> {
        let mut manifest = String::new();
        for i in 0..count {
            let namespace = format!("{}-{}", self.stage.namespace, i % NAMESPACES);
            let value = if i == 7 { value } else { "same" };
            // As long as names, labels and a line of settings are.
            manifest.push_str(&format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings-of-component-{i:05}, namespace: {namespace}, \
                 labels: {{app.kubernetes.io/name: component-{i:05}}}}}\ndata: {{mode: {value}, endpoint: \
                 'https://component-{i:05}.example.test:8443/v1'}}\n---\n"
            ));
        }
        self.stage
            .index("index.yaml", &[("scale", version, &manifest)])
    }

    async fn run(&self, line: &str) -> Result<Ran> {
        let mark = self.stage.cluster.audit().mark()?;
        let begun = Instant::now();
        let output = self.stage.run(line).await?.done()?;
        let took = begun.elapsed();
        let requests = self.stage.requests(mark)?;
        let lines = output.stderr.lines().count();
        ensure!(lines <= LINES, "{lines} lines on stderr");
        Ok(Ran {
            output,
            patches: requests.count("patch", "kubectl-addons"),
            deletes: requests.count("delete", "kubectl-addons"),
            total: requests.total("kubectl-addons"),
            took,
        })
    }

    /// How many of the objects are there.
    async fn there(&self) -> Result<usize> {
        let args = ["get", "configmap", "-A", "-o", "name"];
        let label = format!(
            "kubectl-addons.dev/owner={}",
            common::api::names::owner_hash(&self.stage.namespace, "scale")
        );
        let args = [&args[..], &["-l", &label]].concat();
        let listed = self.stage.plugin.kubectl(&args).await?.done()?;
        Ok(listed.stdout.lines().count())
    }

    /// Install, the same again, one object changed, two fifths dropped.
    async fn life(&self) -> Result<Peaks> {
        let Self { stage, count } = self;
        let namespace = &stage.namespace;
        let lists = NAMESPACES * count.div_ceil(NAMESPACES * 500);

        let index = self.write("1.0.0", *count, "before")?;
        let install = format!("install scale --channel {index} --yes");
        let installed = self.run(&install).await?;
        // For each object one dry run, and the apply.
        installed.asked(2 * count, 0, lists)?;
        ensure!(self.there().await? == *count);
        let record: Value = stage.record("scale").await?;
        let bytes = record.to_string().len();
        ensure!(bytes < BUDGET, "a record of {bytes} bytes");

        let again = self.run(&install).await?;
        again.asked(0, 0, lists)?;

        self.write("2.0.0", *count, "after")?;
        let upgrade = format!("upgrade scale -n {namespace} --channel {index} --yes");
        let changed = self.run(&upgrade).await?;
        changed.asked(2, 0, lists)?;

        let left = count * 3 / 5;
        self.write("3.0.0", left, "after")?;
        let pruned = self.run(&upgrade).await?;
        pruned.asked(0, 2 * (count - left), lists)?;
        ensure!(self.there().await? == left);
        let again = self.run(&upgrade).await?;
        again.asked(0, 0, lists)?;
        Ok([
            ("install", installed.output.max_rss),
            ("the same again", again.output.max_rss),
            ("one object changed", changed.output.max_rss),
            ("prune", pruned.output.max_rss),
        ])
    }
}

impl Ran {
    fn asked(&self, patches: usize, deletes: usize, lists: usize) -> Result<()> {
        ensure!(
            (self.patches, self.deletes) == (patches, deletes),
            "{} PATCH and {} DELETE instead of {patches} and {deletes}",
            self.patches,
            self.deletes
        );
        // The last one may be on its way when the run ends.
        let renewals = 2 * usize::try_from(self.took.as_secs() / RENEWAL.as_secs() + 1)?;
        let most = patches + deletes + lists + AROUND + renewals;
        ensure!(
            self.total <= most,
            "{} requests, more than {most}",
            self.total
        );
        Ok(())
    }
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: thousands of objects")]
async fn memory_and_requests() -> Result<()> {
    let mut tally = Tally::new("scale::memory_and_requests");
    let few = Set::new(FEW).await?.life().await?;
    tally.ran();
    let many = Set::new(MANY).await?.life().await?;
    tally.ran();
    for ((what, few), (_, many)) in few.into_iter().zip(many) {
        let growth = many.saturating_sub(few) / (MANY - FEW) as u64;
        tally.note(format!(
            "{what}: {} KiB at {FEW} objects, {} KiB at {MANY}: {growth} bytes an object",
            few / 1024,
            many / 1024
        ));
        ensure!(growth < BYTES_AN_OBJECT, "{what}: {growth} bytes an object");
    }
    Ok(())
}
