//! Archives for sites without internet: out of one registry, into another, and installed from there.

mod interrupted;
mod large;
mod signed;
mod site;
mod tokens;
mod upstream;

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use addons_tests::servers::registry::front::{Fault, Front};
use addons_tests::servers::registry::{Door, Registry};
use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use site::{Site, offline};
use upstream::Upstream;

const EXPORT: &str = "--channel catalogue.json --k8s 1.36.3";

/// The digests are those of upstream, signatures are found as before, and an install asks nothing but the registry of the site.
#[tokio::test]
async fn an_add_on_is_installed_where_only_the_registry_is() -> Result<()> {
    let stage = stage("airgap-whole").await?;
    let upstream = Upstream::start(&stage).await?;
    let archive = stage.plugin.home().join("site.tar");
    let export = format!("export web db {EXPORT} -o {}", archive.display());
    let export = upstream.at_home(&export);
    let said = stage.run(&export).await?.done()?;
    ensure!(
        said.stderr.contains("referrers, "),
        "no summary: {}",
        said.stderr
    );
    let first = fs::read(&archive)?;
    stage.run(&export).await?.done()?;
    ensure!(
        fs::read(&archive)? == first,
        "two archives of one content differ"
    );
    let (tag, signature) = upstream.listed.clone();
    let wanted = upstream.stop();

    let site = Site::start().await?;
    let import = format!("import {} --registry {}", archive.display(), site.path());
    let said = stage.run(&import).await?.done()?;
    let install = said.stdout.trim().to_owned();
    for (repository, name, bytes) in &wanted {
        let repository = format!("addons/{repository}");
        let found = site.registry.manifest(&repository, name).await?;
        ensure!(
            found.as_ref() == Some(bytes),
            "{repository} {name}: {found:?}"
        );
    }
    let list = site.registry.manifest("addons/team/web", &tag).await?;
    let list = String::from_utf8(list.context("no list of signatures")?)?;
    ensure!(list.contains(&signature), "{list}");
    let _ = site.front.requests();
    let again = stage.run(&import).await?.done()?;
    ensure!(
        again.stderr.contains("; 0 blobs pushed (0.0 MiB), "),
        "{}",
        again.stderr
    );
    let written = site.front.requests().into_iter();
    let written: Vec<_> = written
        .filter(|seen| !matches!(&*seen.method, "GET" | "HEAD"))
        .collect();
    ensure!(written.is_empty(), "pushed what was there: {written:?}");

    fs::remove_file(stage.plugin.home().join("catalogue.json"))?;
    fs::remove_file(stage.plugin.home().join("web.yaml"))?;
    // Before it is installed, it can be looked at.
    let (_, flags) = install.split_once(" --").context("no flags")?;
    let show = stage.run(&format!("show db --{flags}")).await?.done()?;
    ensure!(
        show.stdout.contains(&format!("{}/team/", site.path())),
        "{}",
        show.stdout
    );
    stage.run(&offline(&stage, &install)).await?.done()?;
    for name in ["web", "db"] {
        let object = stage.must("deployment", name).await?;
        let image = &object["spec"]["template"]["spec"]["containers"][0]["image"];
        let image = image.as_str().context("no image")?;
        ensure!(
            image.starts_with(&format!("{}/team/", site.path())),
            "{name}: {image}"
        );
    }
    let record = stage.record("web").await?;
    ensure!(
        record["spec"]["registry"] == site.path().as_str(),
        "{record}"
    );
    Ok(())
}

/// A killed export goes on with the blobs that it had.
#[tokio::test]
async fn an_export_that_was_killed_goes_on() -> Result<()> {
    let stage = stage("airgap-killed").await?;
    let upstream = Upstream::start(&stage).await?;
    let breaks = Arc::new(AtomicBool::new(true));
    let broken = Arc::clone(&breaks);
    let last = upstream.last_layer.clone();
    let wanted = format!("/blobs/{last}");
    let front = Front::start(Some(&upstream.registry), move |seen| {
        let is_last = seen.path.ends_with(&wanted) && broken.load(Ordering::SeqCst);
        // Tried again after a while: that is when it is killed.
        is_last.then(|| Fault::Cut(b"la".to_vec()))
    })
    .await?;
    upstream.write(&stage, &front.host)?;
    let archive = stage.plugin.home().join("site.tar");
    let line = format!("export web {EXPORT} -o {}", archive.display());
    let line = upstream.at_home(&line);
    let args: Vec<&str> = line.split_whitespace().collect();
    let process = stage.plugin.start(&args)?;
    let mut seen = Vec::new();
    until("the last layer is asked for", async || {
        seen.extend(front.requests());
        let is_asked = seen.iter().any(|one| one.path.ends_with(&last));
        Ok(if is_asked {
            Ok(())
        } else {
            Err(format!("{seen:?}"))
        })
    })
    .await?;
    let second = stage.run(&line).await?.ended(1)?.stderr;
    let words = "another export to this file is running";
    ensure!(second.contains(words), "{second}");
    drop(process);
    ensure!(!archive.exists(), "half an archive");
    let _ = front.requests();
    breaks.store(false, Ordering::SeqCst);
    stage.run(&line).await?.done()?;
    let again = front.requests().into_iter();
    let again: Vec<_> = again
        .map(|one| one.path)
        .filter(|path| path.contains("/blobs/"))
        .collect();
    let first = seen
        .iter()
        .find(|one| one.path.contains("/blobs/"))
        .context("no blob")?;
    ensure!(
        !again.contains(&first.path) && again.iter().any(|path| path.ends_with(&last)),
        "fetched again: {again:?}, at first: {seen:?}"
    );
    ensure!(archive.exists() && !archive.with_extension("tar.partial").exists());
    Ok(())
}

/// One bit of a layer: nothing reaches the registry.
#[tokio::test]
async fn an_archive_that_was_changed_is_refused() -> Result<()> {
    let stage = stage("airgap-changed").await?;
    let upstream = Upstream::start(&stage).await?;
    let archive = exported(&stage, &upstream, "web").await?;
    // A registry that is down: nothing was to be fetched from it.
    let closed = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let import = format!("import {} --registry {closed}/site", archive.display());
    let said = stage.run(&import).await?.ended(1)?;
    ensure!(
        said.stderr.contains(" cannot be pushed: "),
        "{}",
        said.stderr
    );
    let mut bytes = fs::read(&archive)?;
    let layer = upstream::layer(upstream::LAST);
    let at = bytes
        .windows(layer.len())
        .position(|window| window == layer)
        .context("the layer is not in the archive")?;
    bytes[at] ^= 1;
    fs::write(&archive, bytes)?;
    let site = Site::start().await?;
    let import = format!("import {} --registry {}", archive.display(), site.path());
    let said = stage.run(&import).await?.ended(1)?;
    ensure!(
        said.stderr.contains("has digest sha256:") && said.stderr.contains("nothing was pushed"),
        "{}",
        said.stderr
    );
    let seen = site.front.requests();
    ensure!(seen.is_empty(), "{seen:?}");
    Ok(())
}

/// Images that would meet at the site under one name are not pushed over each other.
#[tokio::test]
async fn two_images_of_one_name_are_refused() -> Result<()> {
    let stage = stage("airgap-names").await?;
    let upstream = Upstream::start(&stage).await?;
    let other = Registry::start(Door::Open).await?;
    let layers = [upstream::described("other")];
    other
        .push("team/web", "1.0.0", upstream::CONFIG, &layers)
        .await?;
    let archive = stage.plugin.home().join("site.tar");
    let image = format!("{}/team/web:1.0.0", other.host);
    let export = format!(
        "export web {EXPORT} --image {image} -o {}",
        archive.display()
    );
    stage.run(&upstream.at_home(&export)).await?.done()?;
    let site = Site::start().await?;
    let import = format!("import {} --registry {}", archive.display(), site.path());
    let said = stage.run(&import).await?.ended(1)?;
    ensure!(
        said.stderr
            .contains("are different images, and both would be"),
        "{}",
        said.stderr
    );
    ensure!(site.front.requests().is_empty());
    Ok(())
}

/// Someone else's image of that name may be in use at the site.
#[tokio::test]
async fn a_tag_that_an_import_moves_is_named() -> Result<()> {
    let stage = stage("airgap-moved").await?;
    let upstream = Upstream::start(&stage).await?;
    let archive = exported(&stage, &upstream, "web").await?;
    let site = Site::start().await?;
    let import = format!("import {} --registry {}", archive.display(), site.path());
    let first = stage.run(&import).await?.done()?.stderr;
    ensure!(!first.contains("moved "), "{first}");
    let layers = [upstream::described("other")];
    let repository = "addons/team/web";
    let push = site
        .registry
        .push(repository, "1.0.0", upstream::CONFIG, &layers);
    push.await?;
    let again = stage.run(&import).await?.done()?.stderr;
    let moved = format!("moved {}/team/web:1.0.0: it was sha256:", site.path());
    ensure!(again.contains(&moved), "{again}");
    let third = stage.run(&import).await?.done()?.stderr;
    ensure!(!third.contains("moved "), "{third}");
    Ok(())
}

/// Exports these add-ons of the catalogue; the archive.
async fn exported(stage: &Stage, upstream: &Upstream, addons: &str) -> Result<PathBuf> {
    let archive = stage.plugin.home().join("site.tar");
    let export = format!("export {addons} {EXPORT} -o {}", archive.display());
    stage.run(&upstream.at_home(&export)).await?.done()?;
    Ok(archive)
}

async fn stage(what: &str) -> Result<Stage> {
    let mut stage = Stage::new(what).await?;
    let helm = addons_tests::control_plane::binaries::helm()?;
    let helm = helm.to_string_lossy().into_owned();
    stage.plugin = stage.plugin.variable("KUBECTL_ADDONS_HELM", &helm);
    Ok(stage)
}

/// The catalogue of both add-ons, whose images are of `host`.
fn catalogue(namespace: &str, registry: &str) -> String {
    let url = format!("oci://{registry}/charts");
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "c"},
        "spec": {"addons": [
            {"name": "web", "versions": [{
                "version": "1.0.0", "defaultNamespace": namespace, "source": {"url": {"manifest": "web.yaml"}},
            }]},
            {"name": "db", "versions": [{
                "version": "1.0.0", "defaultNamespace": namespace, "template": {"method": "helm"},
                "source": {"helm": {"url": url, "chart": "db", "version": ">=1.0.0", "plainHTTP": true}},
            }]},
        ]},
    })
    .to_string()
}
