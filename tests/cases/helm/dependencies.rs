//! Charts that are made of others: in folders, in repositories, out of the cache.

use std::collections::BTreeSet;

use addons_helm::dependencies::complete_chart;
use addons_render::chart::Chart;
use addons_render::package::{Package, PackagedFile};
use addons_sources::cache::SourceCache;
use addons_sources::dependency::ParentSource;
use addons_sources::{Reach, SourceAccess};
use addons_tests::guard::Folder;
use addons_tests::servers::charts::shelf::{self, Shelf};
use addons_tests::servers::charts::{Charts, Options};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::Source;
use serde_json::json;

use super::rig::{Rig, folder};

const PART: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}}\ndata: {size: {{ .Values.size | quote }}}\n";

#[tokio::test]
async fn a_folder_of_the_package() -> Result<()> {
    let mut tally = Tally::new("helm::dependencies");
    let rig = Rig::new().await?;
    let about = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: part, version: 0.1.0, repository: 'file://parts/part'}\n";
    let part = (
        "parts/part/Chart.yaml",
        "apiVersion: v2\nname: part\nversion: 0.1.0\n",
    );
    let files = [
        ("Chart.yaml", about),
        part,
        ("parts/part/templates/a.yaml", PART),
        ("parts/part/values.yaml", "size: 1\n"),
        ("templates/a.yaml", PART),
        ("values.yaml", "size: 5\npart: {size: 7}\n"),
    ];
    let package = folder("web", &files);
    let complete = complete_chart(&rig.helm, &package).await?;
    let values = json!({"size": 5, "part": {"size": 9}});
    let text = rig
        .template(&complete, |request| request.values = &values)
        .await?;
    ensure!(
        text.contains("name: rel-part") && text.contains("size: \"9\""),
        "{text}"
    );
    ensure!(
        text.contains("name: rel-web") && text.contains("size: \"5\""),
        "{text}"
    );
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn a_repository_is_asked_once() -> Result<()> {
    let mut tally = Tally::new("helm::locked");
    let rig = Rig::new().await?;
    let shelf = Shelf::new()?;
    for (version, size) in [("0.1.0", "size: 1\n"), ("0.2.0", "size: 2\n")] {
        let files = [("templates/a.yaml", PART), ("values.yaml", size)];
        shelf.chart("part", version, &files)?;
    }
    shelf.index(None)?;
    let charts = Charts::serve(shelf.path(), &Options::default())?;
    let about = format!(
        "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {{name: part, version: '>=0.1.0', repository: '{}'}}\n",
        charts.url()
    );
    let unlocked = folder("web", &[("Chart.yaml", &about)]);
    let home = Folder::new("kubectl-addons-cache-")?;
    let cache = SourceCache::new(Some(home.path().to_owned()));
    let error = Chart::read(&unlocked)?
        .pinned_dependencies(&unlocked, &BTreeSet::new())
        .err();
    let error = error.map(|error| error.to_string()).unwrap_or_default();
    ensure!(
        error.contains("there is no Chart.lock") && error.contains("helm dependency update"),
        "{error}"
    );
    ensure!(charts.seen().is_empty());
    tally.ran();
    let locked = lock(&rig, &about)?;
    let _ = charts.seen();
    let error = fetched(&locked, &cache, true).await.err();
    let error = error.map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(error.contains("part 0.2.0"), "{error}");
    ensure!(charts.seen().is_empty());
    tally.ran();
    // A newer one comes out; the lock file says which one it is.
    shelf.chart("part", "0.3.0", &[])?;
    shelf.index(None)?;
    for (offline, asked) in [(false, true), (false, false), (true, false)] {
        let complete = fetched(&locked, &cache, offline).await?;
        ensure!(complete.get("charts/part-0.2.0.tgz").is_some());
        let text = rig.template(&complete, |_| ()).await?;
        ensure!(text.contains("size: \"2\""), "{text}");
        ensure!(charts.seen().is_empty() != asked, "offline {offline}");
        tally.ran();
    }
    Ok(())
}

/// The chart with what its lock file names.
async fn fetched(package: &Package, cache: &SourceCache, offline: bool) -> Result<Package> {
    let access = SourceAccess {
        cache,
        offline,
        hash: None,
        reach: &Reach::cluster(),
        credentials: None,
        kustomize: None,
    };
    let parent = ParentSource {
        source: &Source::default(),
        base: "",
        registry: None,
        access,
    };
    let mut files = package.files().to_vec();
    for wanted in Chart::read(package)?.pinned_dependencies(package, &BTreeSet::new())? {
        files.push(parent.fetch(&wanted).await?);
    }
    Ok(Package::from_folder(files)?)
}

/// What `helm dependency update` writes down for its author.
fn lock(rig: &Rig, about: &str) -> Result<Package> {
    let folder = Folder::new("kubectl-addons-author-")?;
    let chart = folder.path().join("web");
    shelf::write(&chart, "web", "1.0.0", &[("Chart.yaml", about)])?;
    let output = std::process::Command::new(&rig.helm.program)
        .args(["dependency", "update"])
        .arg(&chart)
        .env_clear()
        .env("HOME", folder.path())
        .output()
        .context("cannot start helm")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let files = ["Chart.yaml", "Chart.lock"].map(|path| {
        Ok(PackagedFile {
            path: path.to_owned(),
            bytes: std::fs::read(chart.join(path))?,
        })
    });
    let files: Result<Vec<PackagedFile>> = files.into_iter().collect();
    Ok(Package::from_folder(files?)?)
}
