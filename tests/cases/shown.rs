//! What the pages show is what the commands print: every command with a prompt is run as it stands, in the order of its page, on the
//! stage that the page describes.

mod stages;

use std::fs;
use std::path::Path;

use addons_tests::control_plane::{ControlPlane, Options, definitions};
use addons_tests::page::{Page, ROOT, blocks};
use addons_tests::plugin::Plugin;
use addons_tests::scene;
use addons_tests::tally::Tally;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::Value;

const DOCS: &str = "kubectl-addons/docs";
const TUTORIAL: &str = "kubectl-addons/docs/first-install.md";

/// Someone who follows a page.
struct Reader {
    user: Plugin,
    /// What stands in pages, and what it is on this machine.
    names: Vec<(&'static str, String)>,
}

impl Reader {
    fn new(user: Plugin) -> Self {
        Self {
            user,
            names: Vec::new(),
        }
    }

    /// What a command prints on a terminal, with the names of the page.
    async fn types(&self, command: &str) -> Result<String> {
        let mut command = format!("{{ {command}; }} 2>&1");
        for (shown, real) in &self.names {
            command = command.replace(shown, real);
        }
        let args = ["-c", &command];
        let ran = self.user.program(Path::new("bash"), &args);
        let mut printed = ran.await?.stdout;
        for (shown, real) in &self.names {
            printed = printed.replace(real, shown);
        }
        Ok(printed)
    }

    /// Runs the commands of a page that show output, each after what has to happen before it.
    async fn follows(
        &self,
        name: &str,
        tally: &mut Tally,
        before: impl AsyncFn(&Self, usize) -> Result<()>,
    ) -> Result<()> {
        let page = Page::named(name)?;
        let mut wrong = Vec::new();
        for (number, shown) in page.shown().into_iter().enumerate() {
            before(self, number).await.context(shown.place.clone())?;
            let printed = self.types(&shown.command).await?;
            if let Err(error) = shown.is(&printed) {
                wrong.push(error.to_string());
            }
            tally.ran();
        }
        ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
        Ok(())
    }

    /// Runs the plugin, which has to succeed.
    async fn done(&self, line: &str) -> Result<()> {
        let args: Vec<&str> = line.split_whitespace().collect();
        self.user.run(&args).await?.done().map(drop)
    }

    /// Writes a file into the folder in which the commands run.
    fn writes(&self, name: &str, text: &str) -> Result<()> {
        let path = self.user.home().join(name);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        Ok(fs::write(path, text)?)
    }

    /// Writes a catalogue and adds it to the cluster.
    async fn adds(&self, name: &str, addons: Value) -> Result<()> {
        let catalogue = scene::catalogue(name, SYSTEM_NAMESPACE, addons);
        self.writes("catalogue.json", &catalogue.to_string())?;
        self.done("catalogue add catalogue.json").await
    }

    /// Removes all installations and catalogues, and their namespace, for the next page.
    async fn leaves(&self) -> Result<()> {
        for kind in ["addoninstallation", "addoncatalogue"] {
            let list = ["get", kind, "-n", SYSTEM_NAMESPACE, "-o", "name"];
            for found in self.user.kubectl(&list).await?.done()?.stdout.lines() {
                let name = found.rsplit('/').next().unwrap_or(found);
                match kind {
                    "addoninstallation" => self.done(&format!("uninstall {name} --yes")).await?,
                    _ => self.done(&format!("catalogue remove {name} --yes")).await?,
                }
            }
        }
        let delete = ["delete", "namespace", "shop", "--ignore-not-found"];
        self.user.kubectl(&delete).await?.done().map(drop)
    }
}

/// Nothing has to happen between the commands of the page.
async fn nothing(_: &Reader, _: usize) -> Result<()> {
    Ok(())
}

#[tokio::test]
async fn the_tutorial() -> Result<()> {
    let mut tally = Tally::new("shown::tutorial");
    let cluster = ControlPlane::start(Options::default()).await?;
    let reader = Reader::new(Plugin::admin(&cluster)?);
    let page = include_str!("../../kubectl-addons/docs/first-install.md");
    let files = ["hello-1.0.0.yaml", "hello-1.1.0.yaml", "catalogue.yaml"];
    let manifests = blocks(page).filter(|(language, _)| *language == "yaml");
    for (file, (_, text)) in files.iter().zip(manifests) {
        reader.writes(file, text)?;
    }
    reader.follows(TUTORIAL, &mut tally, nothing).await
}

#[tokio::test]
async fn the_tour() -> Result<()> {
    let mut tally = Tally::new("shown::tour");
    let cluster = definitions::cluster(Options::default()).await?;
    let mut reader = Reader::new(Plugin::admin(&cluster)?);
    let _webhook = Webhook::start(&cluster, &[]).await?;
    let data = Path::new(ROOT).join("tests/data/demo");
    let data = data.to_string_lossy();
    reader
        .done(&format!("catalogue add {data}/catalogue.yaml"))
        .await?;
    reader.names.push(("tests/data/demo", data.into_owned()));
    reader.follows("README.md", &mut tally, nothing).await
}

#[tokio::test]
async fn every_other_page() -> Result<()> {
    let mut tally = Tally::new("shown::pages");
    let options = Options {
        apiserver_flags: vec![stages::SERVED.to_owned()],
        ..Options::default()
    };
    let cluster = definitions::cluster(options).await?;
    let mut wrong = Vec::new();
    for (page, stage) in stages::ALL {
        let mut reader = Reader::new(stages::helmsman(&cluster, "admin")?);
        if let Err(error) =
            Box::pin(stages::play(stage, &mut reader, page, &cluster, &mut tally)).await
        {
            wrong.push(format!("{error:#}"));
        }
        reader.leaves().await?;
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    Ok(())
}

/// A page that shows output has its test.
#[test]
fn no_page_is_left_out() -> Result<()> {
    let mut found = vec!["README.md".to_owned()];
    for file in fs::read_dir(Path::new(ROOT).join(DOCS))? {
        found.push(format!("{DOCS}/{}", file?.file_name().to_string_lossy()));
    }
    let played = stages::ALL.iter().map(|(page, _)| *page);
    let played: Vec<&str> = played.chain(["README.md", TUTORIAL]).collect();
    for name in found.iter().filter(|name| name.ends_with(".md")) {
        let shows = !Page::named(name)?.shown().is_empty();
        ensure!(
            shows == played.contains(&name.as_str()),
            "{name}: shows output: {shows}"
        );
    }
    Ok(())
}
