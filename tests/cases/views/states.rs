//! Records, catalogues and policies go through random states that their schemas allow; then they are as in the beginning. The loop is at
//! work all the time, and hears of some states only when it looks again.

use std::time::Duration;

use addons_tests::chaos::rig::get;
use addons_tests::chaos::seed::{Chance, seed};
use addons_tests::chaos::state;
use addons_tests::proxy::Proxy;
use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map};
use addons_tests::states::States;
use addons_tests::tally::Tally;
use addons_tests::until::within;
use anyhow::{Context as _, Result, bail, ensure};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::api::names::API_VERSION;
use common::api::policy::AddonPolicy;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::sleep;

/// Sequences, and the states of each.
const SEQUENCES: u64 = 3;
const STATES: usize = 20;
/// What the loop has for a state at most: many are the next one before it has ended with them.
const MOMENT: usize = 900;
/// How long it may take until the loop has gone back to the beginning.
const LONGEST: Duration = Duration::from_secs(120);
/// The name of the record, the catalogue, the policy and the add-on.
const NAME: &str = "web";

/// A user, and the loop.
struct World {
    stage: Stage,
    proxy: Proxy,
    client: Client,
    process: Running,
    /// A ConfigMap of another client.
    foreign: Value,
    /// Writes of the catalogue: each is heard of.
    written: usize,
}

/// The kinds, and where their objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Installation,
    Catalogue,
    Policy,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Installation, Self::Catalogue, Self::Policy];

    fn plural(self) -> &'static str {
        match self {
            Self::Installation => "addoninstallations",
            Self::Catalogue => "addoncatalogues",
            Self::Policy => "addonpolicies",
        }
    }

    fn states(self, namespace: &str) -> Result<States> {
        let objects = [
            config_map("a", "1"),
            config_map("b", "1") + &config_map("c", "1"),
        ];
        let all = json!(objects.concat());
        let manifests = vec![json!(objects[0]), json!(objects[1]), all, json!("kind: [")];
        let versions = vec![json!("1.0.0"), json!("2.0.0")];
        // What never goes back, and what this test has no server for.
        let kept = [
            "coreAddon",
            "docker",
            "from",
            "git",
            "helm",
            "index",
            "needsPKI",
            "signature",
            "url",
        ];
        Ok(match self {
            Self::Installation => States::of::<AddonInstallation>()?
                .know("catalogue", vec![json!(NAME), json!("nowhere")])
                .know("version", versions),
            Self::Catalogue => States::of::<AddonCatalogue>()?
                .know("manifest", manifests)
                .know("name", vec![json!(NAME), json!("other")])
                .know("version", versions)
                .know("id", vec![json!("")]),
            Self::Policy => States::of::<AddonPolicy>()?
                .know("catalogues", vec![json!([NAME]), json!(["other"])])
                .know(
                    "matchLabels",
                    vec![json!({}), json!({"kubernetes.io/metadata.name": namespace})],
                ),
        }
        .keep(&kept))
    }

    /// The state in the beginning; `None` where there is no such object then.
    fn beginning(self, namespace: &str) -> Option<Value> {
        let version = |version: &str, objects: &[&str]| {
            let manifest: String = objects
                .iter()
                .map(|name| config_map(name, version))
                .collect();
            json!({"version": version, "defaultNamespace": namespace, "source": {"inline": {"manifest": manifest}}})
        };
        match self {
            Self::Installation => Some(json!({
                "addonRef": {"name": NAME, "catalogue": NAME}, "targetNamespace": namespace, "reconcile": "Ensure",
            })),
            Self::Catalogue => {
                let versions = [
                    version("1.0.0", &["a", "b"]),
                    version("2.0.0", &["a", "b", "c"]),
                ];
                Some(json!({"addons": [{"name": NAME, "versions": versions}]}))
            }
            Self::Policy => None,
        }
    }
}

impl World {
    async fn new(sequence: u64) -> Result<Self> {
        let stage = Stage::alone(&format!("views-states-{sequence}")).await?;
        let client = stage.cluster.client().await?;
        stage.apply(&config_map("foreign", "mine")).await?;
        let foreign = stage.must("configmap", "foreign").await?;
        let proxy = Proxy::start(&stage.cluster)?;
        let args = ["reconcile", "--watch", "--interval", "2s"];
        let process = Running::with(&stage, proxy.kubeconfig(), &args)?;
        Ok(Self {
            stage,
            proxy,
            client,
            process,
            foreign,
            written: 0,
        })
    }

    /// Writes a specification as a whole. Whether the API server takes it: a schema does not say all that it refuses.
    async fn write(&mut self, kind: Kind, spec: &Value) -> Result<bool> {
        self.written += 1;
        let api = format!("/apis/{API_VERSION}");
        let namespace = &self.stage.namespace;
        let collection = match kind {
            Kind::Policy => format!("{api}/{}", kind.plural()),
            _ => format!("{api}/namespaces/{namespace}/{}", kind.plural()),
        };
        let path = format!("{collection}/{NAME}");
        loop {
            let found = get(&self.client, &path).await?;
            let request = match found {
                Some(_) => http::Request::put(&path),
                None => http::Request::post(&collection),
            };
            let mut object = found.unwrap_or_else(|| {
                json!({"apiVersion": API_VERSION, "kind": format!("Addon{kind:?}"), "metadata": {"name": NAME}})
            });
            let written = json!({"example.test/written": self.written.to_string()});
            let more = json!({"metadata": {"annotations": written}});
            json_patch::merge(&mut object, &more);
            object["spec"] = spec.clone();
            let request = request.header("content-type", "application/json");
            let request = request.body(object.to_string().into_bytes())?;
            match self.client.request::<Value>(request).await {
                Ok(_) => return Ok(true),
                Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => {
                    return Ok(false);
                }
                // The loop was faster.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => bail!("{kind:?}: {error}: {spec}"),
            }
        }
    }

    /// Everything as it is in the beginning. The catalogue comes last: with it, everything is looked at.
    async fn begin(&mut self) -> Result<()> {
        self.stage
            .plugin
            .kubectl(&["delete", "addonpolicies", "--all"])
            .await?
            .done()?;
        for kind in [Kind::Installation, Kind::Catalogue] {
            let spec = kind
                .beginning(&self.stage.namespace)
                .context("a beginning")?;
            ensure!(self.write(kind, &spec).await?, "{kind:?} is refused");
        }
        Ok(())
    }

    /// Waits until the cluster is as it is in the beginning, and returns what is installed then. Where a protection asks a person, that
    /// person agrees.
    async fn is_back(&self) -> Result<Value> {
        within(LONGEST, "it goes back to the beginning", async || {
            let record = self.stage.record(NAME).await?;
            let status = &record["status"];
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let mut raised = conditions.filter(|one| {
                let is_bad = one["type"] == "Stalled" || one["type"] == "NeedsConfirmation";
                is_bad && one["status"] == "True"
            });
            let is_ready = status["phase"] == "Ready"
                && status["operation"].is_null()
                && status["installed"]["version"] == "2.0.0"
                && status["observedGeneration"] == record["metadata"]["generation"];
            match raised.next() {
                None if is_ready => {}
                None => return Ok(Err(format!("{status}\n{}", self.process.said()))),
                Some(raised) => {
                    let message = raised["message"].as_str().unwrap_or_default();
                    // What was said of a former spec is not agreed to: it would be written into the record again.
                    let is_current =
                        raised["observedGeneration"] == record["metadata"]["generation"];
                    if let Some((_, accept)) = message.split_once("accept: kubectl addons ")
                        && is_current
                    {
                        // It may have gone by itself meanwhile.
                        self.stage.run(&format!("{accept} --yes")).await?;
                    }
                    return Ok(Err(format!("{raised}\n{}", self.process.said())));
                }
            }
            let mut found = state::of(&self.stage, NAME).await?;
            let objects = found["objects"].take();
            let count = objects.as_array().map_or(0, Vec::len);
            Ok((count == 3)
                .then_some(objects.clone())
                .ok_or(objects.to_string()))
        })
        .await
    }

    /// That nothing leaks, and nothing of others was changed.
    async fn is_well(&self) -> Result<()> {
        state::nothing_leaks(&self.stage, NAME).await?;
        let foreign = self.stage.must("configmap", "foreign").await?;
        ensure!(foreign == self.foreign, "{foreign:#}");
        Ok(())
    }

    /// Goes through random states and back to the beginning.
    async fn sequence(&mut self, chance: &mut Chance, tally: &mut Tally) -> Result<()> {
        self.begin().await?;
        let undisturbed = self.is_back().await?;
        let namespace = self.stage.namespace.clone();
        let mut all = Vec::new();
        for kind in Kind::ALL {
            let policy = json!({"action": "Warn", "allowed": {"catalogues": [NAME]}});
            let spec = kind.beginning(&namespace).unwrap_or(policy);
            all.push((kind, kind.states(&namespace)?, spec));
        }
        let (mut changes, mut refused) = (Vec::new(), 0);
        for _ in 0..STATES {
            let index = chance.below(all.len());
            let (kind, states, spec) = &mut all[index];
            let mut next = spec.clone();
            let path = states.change(&mut next, chance);
            let is_hidden = chance.below(3) == 0;
            if is_hidden {
                let path = format!("/{}", kind.plural());
                self.proxy.hide(&path, &["ADDED", "MODIFIED"], NAME);
            }
            changes.push(format!("{kind:?}{path}"));
            if self
                .write(*kind, &next)
                .await
                .with_context(|| changes.join(" "))?
            {
                *spec = next;
                let moment = u64::try_from(chance.below(MOMENT))?;
                sleep(Duration::from_millis(moment)).await;
            } else {
                refused += 1;
            }
            self.proxy.heal();
            tally.ran();
        }
        tally.note(format!("{refused} of {STATES} states were refused"));
        self.begin().await?;
        let found = self.is_back().await.with_context(|| changes.join(" "))?;
        let difference = || state::difference(&found, &undisturbed);
        ensure!(
            found == undisturbed,
            "{}\n{}",
            changes.join(" "),
            difference()
        );
        self.is_well().await.with_context(|| changes.join(" "))
    }
}

/// Semantics 12, 13, 20: whatever was asked for meanwhile, the end is that of a record that was never changed.
#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: random states for minutes")]
async fn the_loop_comes_back_from_whatever_was_asked_for() -> Result<()> {
    let mut tally = Tally::new("views::states");
    let seed = seed();
    tally.note(format!("SEED={seed}"));
    for sequence in 0..SEQUENCES {
        let mut chance = Chance::of(seed.wrapping_mul(1000).wrapping_add(sequence));
        let mut world = World::new(sequence).await?;
        let ended = world.sequence(&mut chance, &mut tally).await;
        ended.with_context(|| format!("sequence {sequence} of SEED={seed}"))?;
    }
    Ok(())
}
