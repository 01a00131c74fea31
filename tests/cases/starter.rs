//! The starter catalogue as a user gets it: from a URL, which is served here, and installed on the real API server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::Plugin;
use addons_tests::servers::http::{Answer, Server};
use addons_tests::shared;
use addons_tests::starter::{HOST, recipe};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const CATALOGUE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../deploy/catalogue/catalogue.yaml"
);

/// The bytes of every manifest, by the path of its URL.
fn manifests(corpus: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let sources: Value = serde_json::from_slice(&fs::read(corpus.join("sources.json"))?)?;
    let mut found = BTreeMap::new();
    for project in recipe()?.projects {
        for version in &project.versions {
            let commit = format!("{}@{}", project.repository, version.commit);
            let files = sources[&commit].as_object().context(commit)?;
            let (file, _) = files
                .iter()
                .find(|(_, path)| path.as_str() == Some(&version.path))
                .with_context(|| version.path.clone())?;
            let path = format!(
                "/{}/{}/{}",
                project.repository, version.commit, version.path
            );
            found.insert(path, fs::read(corpus.join(file))?);
        }
    }
    Ok(found)
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: installs from the starter catalogue")]
async fn it_is_added_by_its_url_and_installed() -> Result<()> {
    let mut tally = Tally::new("starter::it_is_added_by_its_url_and_installed");
    let Some(corpus) = shared::path("corpus") else {
        tally.left_out("corpus is not beside the checkout");
        return Ok(());
    };
    let manifests = manifests(&corpus)?;
    let host = Server::start(None, move |seen| match manifests.get(&seen.uri) {
        Some(bytes) => Answer::ok(bytes.clone()),
        None => Answer::status(404),
    })?;
    let text = fs::read_to_string(CATALOGUE)?.replace(HOST, host.url("").trim_end_matches('/'));
    let site = Server::start(None, move |seen| match seen.uri.as_str() {
        "/catalogue.yaml" => Answer::ok(text.clone()),
        _ => Answer::status(404),
    })?;
    let url = site.url("/catalogue.yaml");

    let cluster = ControlPlane::start(Options::default()).await?;
    let plugin = Plugin::admin(&cluster)?;
    // Reads every manifest, and compares it with its hash.
    plugin
        .run(&["catalogue", "validate", "--fetch", &url])
        .await?
        .done()?;
    plugin.run(&["catalogue", "add", &url]).await?.done()?;
    let found = plugin.run(&["search", "-o", "name"]).await?.done()?.stdout;
    for project in recipe()?.projects {
        ensure!(found.contains(&project.name), "{found}");
    }
    let install = ["install", "flannel", "--yes", "--timeout", "120s"];
    let said = plugin.run(&install).await?.done()?.stderr;
    ensure!(said.contains("flannel 0.19.0 installed"), "{said}");
    let again = plugin.run(&["diff", "flannel"]).await?.done()?;
    ensure!(
        again.stdout.contains("0 changed"),
        "{}{}",
        again.stdout,
        again.stderr
    );
    plugin
        .run(&["uninstall", "flannel", "--yes"])
        .await?
        .done()?;
    let left = plugin
        .kubectl(&["get", "daemonsets", "-A", "-o", "name"])
        .await?
        .done()?;
    ensure!(left.stdout.is_empty(), "{}", left.stdout);
    tally.ran();
    Ok(())
}
