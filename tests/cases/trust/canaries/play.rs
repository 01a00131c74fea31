//! Plays a case and looks at all that is left of it.

mod search;

use std::path::PathBuf;

use addons_tests::proxy::{Action, Fault, Proxy};
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{Charts, Options};
use addons_tests::stage::Stage;
use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::draw::{Case, Method, Outcome, Place, Store};
use super::marks::Marks;
use super::scene::{self, VERSION};

/// What all cases share.
pub(super) struct World {
    /// The user, behind the proxy.
    pub(super) stage: Stage,
    pub(super) proxy: Proxy,
    pub(super) helm: String,
    /// Their folder for temporary files.
    pub(super) temporary: PathBuf,
}

/// One case on the way.
pub(super) struct Play<'a> {
    world: &'a World,
    case: &'a Case,
    marks: Marks,
    /// What was found and should not be, and what was missing.
    pub(super) faults: Vec<String>,
    /// The chart repository with a password.
    charts: Option<(Shelf, Charts)>,
}

impl<'a> Play<'a> {
    pub(super) fn new(world: &'a World, case: &'a Case) -> Self {
        Self {
            world,
            case,
            marks: Marks::of(case),
            faults: Vec::new(),
            charts: None,
        }
    }

    /// The whole case.
    pub(super) async fn play(&mut self) -> Result<()> {
        let before = self.world.proxy.requests().len();
        self.store(0).await?;
        let source = self.package(0)?;
        self.catalogue(&source)?;
        self.record().await?;
        self.act().await?;
        self.world.proxy.heal();
        self.read_all().await?;
        let uninstalled = self
            .run(&format!("uninstall {} --yes --timeout 20s", self.case.name))
            .await?;
        if uninstalled.code != 0 {
            self.odd("uninstall", &uninstalled);
        }
        self.search_requests(before);
        self.search_files()?;
        self.world
            .stage
            .kubectl(&[
                "delete",
                "secret",
                "--ignore-not-found",
                "addon-template-data",
            ])
            .await
            .map(drop)
    }

    /// Writes the value into its store.
    async fn store(&self, turn: usize) -> Result<()> {
        let (case, stage) = (self.case, &self.world.stage);
        let text = &case.texts[turn];
        let values = scene::values(case, text, &stage.namespace);
        let (name, data) = match case.store {
            Store::File | Store::Set => {
                return stage.write("values.json", &values.to_string()).map(drop);
            }
            Store::TemplateData => {
                let data = json!({"Credentials": {"AWS": {"SecretAccessKey": text}}});
                (
                    "addon-template-data",
                    json!({"data.json": data.to_string()}),
                )
            }
            Store::Values | Store::NestedValues => {
                ("values", json!({"values.yaml": values.to_string()}))
            }
            Store::Credentials | Store::Manifest | Store::Generated | Store::Live => return Ok(()),
        };
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        stage.apply(&secret.to_string()).await
    }

    /// Makes the package; returns its source in the catalogue.
    fn package(&mut self, turn: usize) -> Result<Value> {
        let case = self.case;
        let text = scene::manifest(case, &case.texts[turn]);
        if case.method == Method::Templates {
            return Ok(json!({"inline": {"manifest": text}}));
        }
        let schema = scene::schema(case);
        let mut files = vec![("templates/all.yaml", text.as_str())];
        files.extend(schema.as_deref().map(|text| ("values.schema.json", text)));
        let shelf = Shelf::new()?;
        let archive = shelf.chart(&case.name, VERSION, &files)?;
        if case.store != Store::Credentials {
            let file = self
                .world
                .stage
                .plugin
                .home()
                .join(format!("{}.tgz", case.name));
            std::fs::copy(&archive, &file)?;
            return Ok(json!({"url": {"manifest": file}}));
        }
        shelf.index(None)?;
        let options = Options {
            basic: Some(("reader", case.texts[0].clone())),
            ..Options::default()
        };
        let charts = Charts::serve(shelf.path(), &options)?;
        let source = json!({"helm": {"url": charts.url(), "chart": case.name, "version": VERSION,
            "auth": {"secretRef": {"name": "reader"}}}});
        self.charts = Some((shelf, charts));
        Ok(source)
    }

    fn catalogue(&self, source: &Value) -> Result<()> {
        let version = scene::version(self.case, source);
        self.world
            .stage
            .catalogue(&self.case.name, &version)
            .map(drop)
    }

    /// The installation, as its owner writes it.
    async fn record(&self) -> Result<()> {
        let (case, stage) = (self.case, &self.world.stage);
        if let Some((_, charts)) = &self.charts {
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/basic-auth",
                "metadata": {"name": "reader", "annotations": {"kubectl-addons.dev/allowed-hosts": charts.host()}},
                "stringData": {"username": "reader", "password": case.texts[0]}});
            stage.apply(&secret.to_string()).await?;
        }
        let file = stage.plugin.home().join(format!("{}.json", case.name));
        let values_from = match case.store {
            Store::Values | Store::NestedValues => {
                json!([{"secretKeyRef": {"name": "values", "key": "values.yaml"}}])
            }
            _ => json!([]),
        };
        let record = json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation", "metadata": {"name": case.name},
            "spec": {
                "addonRef": {"name": case.name, "index": format!("file://{}", file.display())},
                "targetNamespace": stage.namespace, "valuesFrom": values_from,
            },
        });
        stage.apply(&record.to_string()).await
    }

    /// Another value in the same store.
    async fn change(&mut self) -> Result<()> {
        self.store(1).await?;
        if self.case.store == Store::Manifest {
            let source = self.package(1)?;
            self.catalogue(&source)?;
        }
        Ok(())
    }

    /// The flags that enter a value.
    fn entered(&self, turn: usize) -> Vec<String> {
        match self.case.store {
            Store::File => vec!["-f".to_owned(), "values.json".to_owned()],
            Store::Set => {
                let text = self.case.texts[turn]
                    .replace('\\', "\\\\")
                    .replace(',', "\\,");
                vec!["--set".to_owned(), format!("canary={text}")]
            }
            _ => Vec::new(),
        }
    }

    async fn act(&mut self) -> Result<()> {
        let is_objects = self.case.method != Method::Release;
        match self.case.outcome {
            Outcome::Success => self.upgrade(0, "", &[0]).await,
            Outcome::Conflict => {
                self.upgrade(0, "", &[0]).await?;
                self.edit().await?;
                self.change().await?;
                self.upgrade(1, "--repair --conflicts fail", &[4]).await?;
                self.read_all().await?;
                self.upgrade(1, "--repair --conflicts yield", &[0]).await?;
                self.upgrade(1, "--repair --conflicts take", &[0]).await
            }
            Outcome::Rejected | Outcome::Malformed | Outcome::Failing | Outcome::Schema => {
                let any = [1, 2, 6];
                if is_objects {
                    self.upgrade(0, "--dry-run=server", &any).await?;
                }
                self.upgrade(0, "", &any).await
            }
            Outcome::Denied if is_objects => self.upgrade(0, "", &[6]).await,
            Outcome::Denied => self.upgrade(0, "", &[1, 6]).await,
            Outcome::TimedOut => self.upgrade(0, "--timeout 2s", &[1, 3]).await,
            Outcome::Cut => {
                let fault = Fault::always(Action::Cut { delivered: true }).method("PATCH");
                let path = format!("/{}?", self.case.name);
                self.world.proxy.fault(fault.path(&path).writes());
                self.upgrade(0, "--timeout 2s", &[1, 3]).await
            }
            Outcome::Fixed => {
                self.upgrade(0, "--wait=false", &[0]).await?;
                self.change().await?;
                self.upgrade(1, "", &[4]).await?;
                let asked = format!("upgrade {} --helm-bin {}", self.case.name, self.world.helm);
                self.on_terminal(&asked).await
            }
            Outcome::DryRun => {
                self.upgrade(0, "--dry-run=client", &[0]).await?;
                self.upgrade(0, "--dry-run=server", &[0]).await
            }
            Outcome::Planned | Outcome::Moved => self.applied_from_a_file().await,
            Outcome::Compared => {
                self.upgrade(0, "", &[0]).await?;
                match self.case.store {
                    Store::Live => self.edit().await?,
                    _ => self.change().await?,
                }
                for format in ["", " -o wide", " -o json"] {
                    let line = format!("diff {}{format}", self.case.name);
                    let flags = self.entered(1);
                    self.expect(&line, flags, &[0, 1]).await?;
                }
                self.on_terminal(&format!(
                    "diff {} --helm-bin {}",
                    self.case.name, self.world.helm
                ))
                .await
            }
        }
    }

    async fn applied_from_a_file(&mut self) -> Result<()> {
        let flags = self.entered(0);
        let line = format!("plan {} -o plan.json", self.case.name);
        self.expect(&line, flags, &[0]).await?;
        self.plan_file()?;
        if self.case.outcome == Outcome::Planned {
            return self.expect("apply plan.json --yes", Vec::new(), &[0]).await;
        }
        self.change().await?;
        if self.case.is_entered() {
            // Entered values are part of the plan, so something else moves.
            let patch = json!({"metadata": {"labels": {"moved": "yes"}}});
            let stage = &self.world.stage;
            stage
                .patch("addoninstallation", &self.case.name, &patch)
                .await?;
        }
        self.expect("apply plan.json --yes", Vec::new(), &[4]).await
    }

    /// Another manager writes into our field.
    async fn edit(&self) -> Result<()> {
        let (case, stage) = (self.case, &self.world.stage);
        let text = match case.store {
            Store::Live => case.texts[0].as_str(),
            _ => "by hand",
        };
        let value = match case.place {
            Place::Secret => BASE64_STANDARD.encode(text),
            _ => text.to_owned(),
        };
        let patch = json!([{"op": "replace", "path": scene::field(case.place), "value": value}])
            .to_string();
        let args = [
            "patch",
            scene::kind(case.place),
            &case.name,
            "--type=json",
            "-p",
            &patch,
        ];
        stage.kubectl(&args).await.map(drop)
    }

    async fn upgrade(&mut self, turn: usize, flags: &str, codes: &[i32]) -> Result<()> {
        let timeout = if flags.contains("--timeout") {
            ""
        } else {
            "--timeout 20s"
        };
        let line = format!("upgrade {} --yes {timeout} {flags}", self.case.name);
        let entered = self.entered(turn);
        self.expect(&line, entered, codes).await
    }

    async fn expect(&mut self, line: &str, more: Vec<String>, codes: &[i32]) -> Result<()> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.extend(more.iter().map(String::as_str));
        words.extend(["--helm-bin", &self.world.helm]);
        let said = self.world.stage.plugin.run(&words).await?;
        self.learn().await?;
        self.hear(line, &said);
        if !codes.contains(&said.code) {
            self.odd(&format!("{line}: not {codes:?}"), &said);
        }
        let is_objects = self.case.method != Method::Release;
        let names_the_object = matches!(
            self.case.outcome,
            Outcome::Rejected | Outcome::Malformed | Outcome::Denied | Outcome::TimedOut
        );
        let bad = format!("{}-bad", self.case.name);
        if is_objects && names_the_object && !said.stderr.contains(&bad) {
            self.odd(&format!("{line}: {bad} is not named"), &said);
        }
        if line.starts_with("upgrade") && !said.stderr.contains(&self.case.name) {
            self.odd(&format!("{line}: {} is not named", self.case.name), &said);
        }
        Ok(())
    }
}
