//! One tool, its rows, and the cluster that a sequence of steps runs on.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::{Output, Plugin};
use anyhow::{Context as _, Result, ensure};

use super::set::Set;

/// Without a write for so long, the controllers have nothing to do.
const QUIET: Duration = Duration::from_secs(1);
/// How often that is waited for: leases are written for ever.
const LONGEST_SETTLING: usize = 10;

/// What is measured, in the order in which it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Install,
    Nothing,
    One,
    Prune,
}

/// What one step of one tool took.
pub(crate) struct Row {
    pub(crate) output: Output,
    /// By verb.
    pub(crate) requests: BTreeMap<String, usize>,
}

/// One tool; it may leave steps out.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    /// As it says itself; empty where it was not found.
    pub(crate) version: String,
    rows: BTreeMap<Step, Vec<Row>>,
}

/// A fresh control plane and its only user.
pub(crate) struct Bench {
    cluster: ControlPlane,
    pub(crate) plugin: Plugin,
}

impl Step {
    /// The steps of a tool that prunes.
    pub(crate) const ALL: [Self; 4] = [Self::Install, Self::Nothing, Self::One, Self::Prune];

    /// The manifest that the step brings.
    pub(crate) fn manifest(self, set: &Set) -> String {
        match self {
            Self::Install | Self::Nothing => set.all(),
            Self::One => set.one_changed(),
            Self::Prune => set.pruned(),
        }
    }

    /// The add-on's version in this step: it changes with the manifest.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Install | Self::Nothing => "1.0.0",
            Self::One => "1.0.1",
            Self::Prune => "1.0.2",
        }
    }
}

impl Tool {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            version: String::new(),
            rows: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, step: Step, row: Row) {
        self.rows.entry(step).or_default().push(row);
    }

    /// The median of the peak memory of all runs: from one run to the next it differs by a tenth.
    pub(crate) fn memory(&self, step: Step) -> u64 {
        let rows = self.rows.get(&step).into_iter().flatten();
        let mut peaks: Vec<u64> = rows.map(|row| row.output.max_rss).collect();
        peaks.sort_unstable();
        peaks.get(peaks.len() / 2).copied().unwrap_or_default()
    }

    /// The run with the median wall time.
    pub(crate) fn median(&self, step: Step) -> Option<&Row> {
        let mut rows: Vec<_> = self.rows.get(&step)?.iter().collect();
        rows.sort_by_key(|row| row.output.elapsed);
        rows.get(rows.len() / 2).copied()
    }
}

impl Row {
    /// Of all verbs.
    pub(crate) fn requests(&self) -> usize {
        self.requests.values().sum()
    }
}

/// Puts a program into the page cache as it is where it was run before: written out, evicted, and read in by a run. How much of a
/// program a kernel maps at once, and counts as memory of the process, depends on how its file came into the cache: one that was just
/// linked seems to need 5 MiB less than its copy.
pub(crate) fn warm(program: &Path) -> Result<()> {
    let file = program.display().to_string();
    let input = format!("if={file}");
    for (command, args) in [
        ("sync", vec![file.as_str()]),
        ("dd", vec![input.as_str(), "iflag=nocache", "count=0"]),
        (file.as_str(), vec!["--help"]),
    ] {
        let done = Command::new(command).args(&args).output();
        let done = done.with_context(|| format!("cannot start {command}"))?;
        ensure!(done.status.success(), "{command} {args:?}: {done:?}");
    }
    Ok(())
}

impl Bench {
    /// Starts a control plane with the plugin's definitions, and then asks the API server about every object without writing
    /// one: the first server-side apply of a kind after its start, or after definitions came, costs seconds of its time, which
    /// would be measured as the client's.
    pub(crate) async fn start(set: &Set) -> Result<Self> {
        let cluster = ControlPlane::start(Options::default()).await?;
        let user = cluster.user("bench", &["system:masters"])?;
        let plugin = Plugin::new(&cluster, &user.kubeconfig)?;
        plugin.run(&["init"]).await?.done()?;
        let file = plugin.home().join("warm-up.yaml");
        std::fs::write(&file, set.all())?;
        let file = file.to_string_lossy();
        let dry_run = ["apply", "--server-side", "--dry-run=server", "--filename"];
        plugin
            .kubectl(&[&dry_run[..], &[&file]].concat())
            .await?
            .done()?;
        Ok(Self { cluster, plugin })
    }

    /// Waits until the controllers have nothing to do: what the step before left to them is no part of this one.
    async fn settle(&self) -> Result<()> {
        for _ in 0..LONGEST_SETTLING {
            let mark = self.cluster.audit().mark()?;
            tokio::time::sleep(QUIET).await;
            if self.cluster.audit().since(mark)?.writes("") == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Waits for a program to end well; the row has the requests that came meanwhile.
    pub(crate) async fn measure(
        &self,
        program: impl Future<Output = Result<Output>>,
    ) -> Result<Row> {
        self.settle().await?;
        let mark = self.cluster.audit().mark()?;
        let output = program.await?.done()?;
        let requests = self.cluster.audit().since(mark)?.by("bench").by_verb("");
        Ok(Row { output, requests })
    }
}
