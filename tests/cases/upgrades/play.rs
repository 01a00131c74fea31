//! Plays a chain step by step and compares what the API server saw and holds with what is expected.

use std::convert::Infallible;
use std::sync::Arc;

use addons_tests::control_plane::ControlPlane;
use addons_tests::control_plane::audit::Mark;
use addons_tests::plugin::Output;
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::api::names::owner_hash;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::chain::{Balanced, Chain, Keys, Step};
use super::corpus;
use super::seen::{Kinds, inventory};

/// What is installed so far, as the data of the steps played tell it.
#[derive(Default)]
struct Installed {
    /// Objects that are ours.
    owned: Keys,
    /// Those of them that are not wanted any more.
    retained: Keys,
    /// Those of them that the cluster itself deletes.
    vanished: Keys,
    /// Whether there is a record.
    is_recorded: bool,
}

struct Player {
    stage: Stage,
    addon: &'static str,
    chain: Chain,
    kinds: Kinds,
    installed: Installed,
}

/// Plays the chain `tests/data/upgrades/ADDON.yaml`.
pub async fn play(
    addon: &'static str,
    cluster: impl AsyncFnOnce() -> Result<Arc<ControlPlane>>,
) -> Result<()> {
    let mut tally = Tally::new(addon);
    let chain = Chain::read(addon)?;
    if !corpus::is_there(&chain) {
        for step in &chain.steps {
            tally.left_out(format!(
                "{}: its corpus is not beside the checkout",
                step.what
            ));
        }
        return Ok(());
    }
    let mut player = Player {
        stage: Stage::on(cluster().await?, addon).await?,
        addon,
        chain,
        kinds: Kinds::default(),
        installed: Installed::default(),
    };
    let mut left_out = Keys::new();
    for version in player.chain.versions.keys() {
        let manifest = corpus::manifest(&player.chain, version)?;
        player.kinds.add(&manifest.documents);
        left_out.extend(manifest.left_out);
    }
    for left in &player.chain.left_out {
        ensure!(
            left_out.contains(&left.what),
            "{addon} has no {}",
            left.what
        );
        tally.left_out(format!("{}: {}", left.what, left.why));
    }
    for replaced in &player.chain.replaced {
        tally.left_out(format!(
            "{:?} of {}: {}",
            replaced.from, replaced.version, replaced.why
        ));
    }
    if let Some(label) = &player.chain.node_label {
        let label = ["label", "nodes", "--all", "--overwrite", label];
        player.stage.plugin.kubectl(&label).await?.done()?;
    }
    let steps = std::mem::take(&mut player.chain.steps);
    for step in &steps {
        let played = player.step(step).await;
        played.with_context(|| format!("{addon}: {}", step.what))?;
        tally.ran();
    }
    Ok(())
}

impl Installed {
    /// What a step deletes, for good or to create it again.
    fn deleted_by(&self, step: &Step) -> Keys {
        if step.to.is_none() {
            let stays = self.retained.union(&step.retained).cloned().collect();
            return without(&without(&self.owned, &stays), &self.vanished);
        }
        step.pruned.union(&step.recreated).cloned().collect()
    }

    /// What is installed after a step.
    fn follow(&mut self, step: &Step) {
        self.retained.extend(step.retained.iter().cloned());
        self.retained = without(&self.retained, &step.pruned);
        if step.to.is_none() {
            self.owned.clone_from(&self.retained);
        }
        self.owned.extend(step.created.iter().cloned());
        self.owned = without(&self.owned, &step.pruned);
        self.vanished.extend(step.vanishing.iter().cloned());
        self.is_recorded = step.to.is_some() && !self.owned.is_empty();
    }
}

impl Player {
    async fn step(&mut self, step: &Step) -> Result<()> {
        if !step.live.is_empty() {
            let apply = ["apply", "-f", "-"];
            let applied = self.stage.plugin.kubectl_with_input(&apply, &step.live);
            applied.await?.done()?;
        }
        let line = self.line(step)?;
        if self.installed.is_recorded && step.exit == 0 && step.flags.is_empty() {
            self.preview(step).await?;
        }
        let mark = self.stage.cluster.audit().mark()?;
        let output = self.run(&line).await?.ended(step.exit)?;
        let told = || {
            format!(
                "$ kubectl addons {line}\n{}{}",
                output.stdout, output.stderr
            )
        };
        self.check(step, &output, mark).await.with_context(told)?;
        if step.exit == 0 && step.to.is_some() {
            let mark = self.stage.cluster.audit().mark()?;
            // There is nothing left to recreate, which would be refused.
            let words = line.split(' ');
            let again: Vec<&str> = words
                .filter(|word| !word.starts_with("--recreate"))
                .collect();
            let again = self.run(&again.join(" ")).await?.done()?;
            ensure!(
                again.stderr.contains("nothing to do"),
                "again: {}",
                again.stderr
            );
            let requests = self.stage.requests(mark)?;
            let verbs = requests.by_verb("kubectl-addons");
            ensure!(requests.writes("kubectl-addons") == 0, "again: {verbs:?}");
        }
        Ok(())
    }

    /// The counts of `diff` are those of what happens then.
    async fn preview(&self, step: &Step) -> Result<()> {
        let Some(index) = self.index(step)? else {
            return Ok(());
        };
        let (addon, namespace) = (self.addon, &self.stage.namespace);
        let line = format!("diff {addon} -n {namespace} --channel {index}");
        let shown = self.run(&line).await?.ended(1)?;
        let (changed, added, pruned) = (step.changed.len(), step.created.len(), step.pruned.len());
        let counts = format!("{changed} changed, {added} added, {pruned} pruned");
        ensure!(
            shown.stdout.contains(&counts),
            "not {counts}: {}",
            shown.stdout
        );
        Ok(())
    }

    fn line(&self, step: &Step) -> Result<String> {
        let (addon, namespace) = (self.addon, &self.stage.namespace);
        let flags = [
            &["--yes".to_owned(), "--timeout=60s".to_owned()],
            &step.flags[..],
        ]
        .concat();
        let flags = flags.join(" ");
        let Some(index) = self.index(step)? else {
            return Ok(format!("uninstall {addon} -n {namespace} {flags}"));
        };
        Ok(if self.installed.is_recorded {
            format!("upgrade {addon} -n {namespace} --channel {index} {flags}")
        } else {
            format!("install {addon} --channel {index} {flags}")
        })
    }

    /// The index with the version that a step leads to.
    fn index(&self, step: &Step) -> Result<Option<String>> {
        let Some(to) = &step.to else {
            return Ok(None);
        };
        let manifest = corpus::manifest(&self.chain, to)?;
        let version = to.split(' ').next().unwrap_or_default();
        let entry = (self.addon, version, manifest.text.as_str());
        self.stage.index("index.yaml", &[entry]).map(Some)
    }

    /// Runs the plugin; meanwhile load balancers get their addresses.
    async fn run(&self, line: &str) -> Result<Output> {
        tokio::select! {
            output = self.stage.run(line) => output,
            error = self.balance() => match error? {},
        }
    }

    async fn balance(&self) -> Result<Infallible> {
        let client = self.stage.cluster.client().await?;
        for Balanced { namespace, name } in &self.chain.balanced {
            let services = Api::<Service>::namespaced(client.clone(), namespace);
            until("the Service", async || {
                let found = services.get_opt(name).await?;
                Ok(found.ok_or_else(|| "it is not there".to_owned()))
            })
            .await?;
            let address = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
            let params = PatchParams::default();
            services
                .patch_status(name, &params, &Patch::Merge(address))
                .await?;
        }
        std::future::pending().await
    }

    async fn check(&mut self, step: &Step, output: &Output, mark: Mark) -> Result<()> {
        let said = format!("{}{}", output.stdout, output.stderr);
        for words in &step.says {
            ensure!(said.contains(words), "it does not say {words:?}");
        }
        let sent = [&step.created, &step.changed, &step.recreated];
        let applied: Keys = sent.into_iter().flatten().cloned().collect();
        let writes = self.kinds.writes(&self.stage, mark)?;
        same("applied", &applied, &writes.applied())?;
        let deleted = self.installed.deleted_by(step);
        same("deleted", &deleted, &writes.deleted())?;
        let late = writes.applied_after(&step.pruned);
        ensure!(late.is_empty(), "applied after the first prune: {late:?}");

        self.installed.follow(step);
        let installed = &self.installed;
        let live = without(&installed.owned, &installed.vanished);
        let owner = owner_hash(&self.stage.namespace, self.addon);
        let (kinds, stage) = (&self.kinds, &self.stage);
        until("the live objects", async || {
            let found = kinds.owned(stage, &owner).await?;
            Ok(same("live", &live, &found).map_err(|error| error.to_string()))
        })
        .await?;
        let record = self.stage.get("addoninstallation", self.addon).await?;
        if !installed.is_recorded {
            ensure!(record.is_none(), "there is a record: {record:?}");
            return Ok(());
        }
        let (recorded, retained) = inventory(&record.context("no record")?);
        same("recorded", &installed.owned, &recorded)?;
        same("retained", &installed.retained, &retained)
    }
}

fn without(keys: &Keys, others: &Keys) -> Keys {
    keys.difference(others).cloned().collect()
}

/// Two sets that have to be equal.
fn same(what: &str, expected: &Keys, found: &Keys) -> Result<()> {
    let (missing, surplus) = (without(expected, found), without(found, expected));
    ensure!(
        missing.is_empty() && surplus.is_empty(),
        "{what}: expected and not so: {missing:?}; so and not expected: {surplus:?}"
    );
    Ok(())
}
