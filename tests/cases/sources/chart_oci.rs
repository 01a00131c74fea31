//! Charts of a registry.

use std::process::Command;
use std::time::{Duration, SystemTime};

use addons_sources::FetchedPackage;
use addons_sources::registry::chart::{RegistryChartError, fetch};
use addons_tests::control_plane::binaries;
use addons_tests::servers::registry::front::{Fault, Front};
use addons_tests::servers::registry::{Door, Registry};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use common::api::catalogue::HelmSource;

use super::image::{GZIP, Reader, gzip, layer, password, right, tar, text};

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

async fn push(registry: &Registry, repository: &str, tag: &str) -> Result<String> {
    let bytes = gzip(&tar(&[("app/Chart.yaml", tag)])?)?;
    let layers = [
        layer(
            "application/vnd.cncf.helm.chart.provenance.v1.prov",
            b"signed".to_vec(),
        ),
        layer(CONTENT, bytes),
    ];
    registry.push(repository, tag, CONFIG, &layers).await
}

async fn pull(
    reader: &Reader,
    host: &str,
    version: Option<&str>,
) -> Result<FetchedPackage, RegistryChartError> {
    let source = HelmSource {
        url: format!("oci://{host}/charts"),
        chart: "app".to_owned(),
        version: version.map(str::to_owned),
        plain_http: true,
        ..HelmSource::default()
    };
    fetch(&source, &reader.access()).await
}

/// The name of the file and what it stands for, or the error.
fn outcome(fetched: Result<FetchedPackage, RegistryChartError>) -> String {
    match fetched {
        Ok(fetched) => {
            let name = fetched.package.as_file().map(|file| file.path.clone());
            let resolved = fetched.resolved.unwrap_or_default();
            let version = resolved.split('@').next().unwrap_or_default();
            format!("{} {version}", name.unwrap_or_default())
        }
        Err(error) => text(&error),
    }
}

#[tokio::test]
async fn versions_and_ranges() -> Result<()> {
    let mut tally = Tally::new("sources::chart_oci::versions");
    let registry = Registry::start(Door::Open).await?;
    for tag in [
        "1.2.3",
        "1.10.0",
        "1.9.0",
        "2.0.0-rc.1",
        "1.9.1_build.5",
        "2",
        "latest",
        "v1.8.0",
    ] {
        push(&registry, "charts/app", tag).await?;
    }
    let images = [layer(GZIP, gzip(&tar(&[("a", "a")])?)?)];
    registry
        .push("charts/image", "1.0.0", super::image::CONFIG, &images)
        .await?;
    let host = &registry.host;
    for (version, expected) in [
        (Some("1.2.3"), "app-1.2.3.tgz 1.2.3"),
        (Some("2.0.0-rc.1"), "app-2.0.0-rc.1.tgz 2.0.0-rc.1"),
        (Some("1.9.1+build.5"), "app-1.9.1+build.5.tgz 1.9.1+build.5"),
        (Some("v1.8.0"), "app-v1.8.0.tgz v1.8.0"),
        (None, "app-1.10.0.tgz 1.10.0"),
        (Some(""), "app-1.10.0.tgz 1.10.0"),
        (Some(">=1.0.0"), "app-1.10.0.tgz 1.10.0"),
        (Some("~1.9.0"), "app-1.9.1+build.5.tgz 1.9.1+build.5"),
        (Some("1.8.x"), "app-v1.8.0.tgz v1.8.0"),
        (Some(">=1.0.0-0"), "app-2.0.0-rc.1.tgz 2.0.0-rc.1"),
        (Some("9.9.9"), "charts/app:9.9.9 was not found"),
        (
            Some(">3"),
            "has no version in \">3\"; it has 2.0.0-rc.1, 1.10.0, 1.9.1+build.5",
        ),
        (
            Some("newest"),
            "\"newest\" is neither a version nor a range",
        ),
    ] {
        let found = outcome(pull(&Reader::new()?, host, version).await);
        ensure!(found.contains(expected), "{version:?}: {found}");
        tally.ran();
    }
    what_is_not_a_chart(host, &mut tally).await
}

/// Locations that hold something else than a chart, or nothing.
async fn what_is_not_a_chart(host: &str, tally: &mut Tally) -> Result<()> {
    for (url, chart, expected) in [
        (
            format!("oci://{host}/charts"),
            "image",
            "is not a Helm chart but something of type application/vnd.oci.image",
        ),
        (format!("oci://{host}/charts"), "none", "was not found"),
        (
            format!("oci://{host}/charts/app:1.2.3"),
            "app",
            "without chart, tag and user name",
        ),
        (
            format!("oci://{host}/charts"),
            "app:1.2.3",
            "without chart, tag and user name",
        ),
        (format!("oci://user:pw@{host}/charts"), "app", "oci://"),
        (
            format!("https://{host}/charts"),
            "app",
            "is not a valid oci:// URL",
        ),
    ] {
        let source = HelmSource {
            url,
            chart: chart.to_owned(),
            version: Some("1.0.0".to_owned()),
            plain_http: true,
            ..HelmSource::default()
        };
        let found = outcome(fetch(&source, &Reader::new()?.access()).await);
        ensure!(found.contains(expected), "{} {chart}: {found}", source.url);
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn with_and_without_a_password() -> Result<()> {
    let mut tally = Tally::new("sources::chart_oci::password");
    let registry = Registry::start(Door::Password).await?;
    push(&registry, "charts/app", "1.0.0").await?;
    let host = &registry.host;
    for (credentials, expected) in [
        (Some(right(host)?), "app-1.0.0.tgz 1.0.0"),
        (
            Some(password("wrong", host)?),
            "refuses the credentials of Secret system/pull",
        ),
        (None, "refuses requests without credentials"),
    ] {
        let mut reader = Reader::new()?;
        reader.credentials = credentials;
        for version in [Some("1.0.0"), None] {
            let found = outcome(pull(&reader, host, version).await);
            ensure!(found.contains(expected), "{found}");
            tally.ran();
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_warm_cache_and_no_network() -> Result<()> {
    let mut tally = Tally::new("sources::chart_oci::warm");
    let registry = Registry::start(Door::Open).await?;
    let digest = push(&registry, "charts/app", "1.0.0").await?;
    let front = Front::start(Some(&registry), |_| None).await?;
    let host = &front.host;
    let mut reader = Reader::new()?;
    for (version, requests) in [
        (Some("1.0.0"), 2),
        (Some("1.0.0"), 0),
        (None, 1),
        (Some("^1"), 1),
    ] {
        let fetched = pull(&reader, host, version).await?;
        assert_eq!(fetched.resolved, Some(format!("1.0.0@{digest}")));
        let short = digest.get(..19).unwrap_or_default();
        assert_eq!(
            fetched.location,
            format!("oci://{host}/charts/app:1.0.0@{short}")
        );
        assert_eq!(front.requests().len(), requests, "{version:?}");
        tally.ran();
    }
    // What a range stands for is known as long as its chart is there, also when the cache is swept.
    let cache = reader.folder.path().join("cache");
    for note in std::fs::read_dir(cache.join("notes"))? {
        let note = std::fs::File::options().write(true).open(note?.path())?;
        note.set_modified(SystemTime::now() - Duration::from_secs(7200))?;
    }
    std::fs::remove_file(cache.join("swept"))?;
    reader.access().cache.put(b"something else");
    reader.offline = true;
    for (version, expected) in [
        (Some("1.0.0"), "app-1.0.0.tgz"),
        (None, "app-1.0.0.tgz"),
        (Some("^1"), "app-1.0.0.tgz"),
        (Some("^2"), "is not in the cache"),
        (Some("2.0.0"), "is not in the cache"),
    ] {
        let found = outcome(pull(&reader, host, version).await);
        ensure!(found.contains(expected), "{version:?}: {found}");
        tally.ran();
    }
    // What came over plain HTTP is not what TLS would have brought, and what a Secret opens is for who has it.
    let source = HelmSource {
        url: format!("oci://{host}/charts"),
        chart: "app".to_owned(),
        version: Some("1.0.0".to_owned()),
        ..HelmSource::default()
    };
    let verified = outcome(fetch(&source, &reader.access()).await);
    ensure!(verified.contains("no server may be asked"), "{verified}");
    tally.ran();
    assert_eq!(front.requests().len(), 0);
    Ok(())
}

#[tokio::test]
async fn tags_without_end_and_other_bytes() -> Result<()> {
    let mut tally = Tally::new("sources::chart_oci::faults");
    let registry = Registry::start(Door::Open).await?;
    push(&registry, "charts/app", "1.0.0").await?;
    for (name, part, fault, expected) in [
        ("tags", "/tags/", Fault::Endless, "it is larger than 4 MiB"),
        (
            "no tags",
            "/tags/",
            Fault::Bytes(b"<html>".to_vec()),
            "is not valid JSON",
        ),
        ("a chart", "/blobs/", Fault::Bytes(b"x".to_vec()), "only 1"),
        (
            "cut",
            "/blobs/",
            Fault::Cut(b"x".to_vec()),
            "cannot be fetched",
        ),
    ] {
        let front = Front::start(Some(&registry), move |seen| {
            seen.path.contains(part).then(|| fault.clone())
        });
        let front = front.await?;
        let found = outcome(pull(&Reader::new()?, &front.host, None).await);
        ensure!(found.contains(expected), "{name}: {found}");
        tally.ran();
    }
    Ok(())
}

/// What Helm itself pushes.
#[tokio::test]
async fn pushed_by_helm() -> Result<()> {
    let mut tally = Tally::new("sources::chart_oci::helm");
    let helm = tokio::task::spawn_blocking(binaries::helm).await??;
    let registry = Registry::start(Door::Open).await?;
    let folder = tempfile::tempdir()?;
    let run = |args: &[&str]| -> Result<String> {
        let output = Command::new(&helm)
            .args(args)
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "helm {}: {said}", args.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &said)
    };
    std::fs::create_dir(folder.path().join("app"))?;
    let chart = "apiVersion: v2\nname: app\nversion: 1.2.3+build.4\n";
    std::fs::write(folder.path().join("app/Chart.yaml"), chart)?;
    run(&["package", "app"])?;
    let url = format!("oci://{}/charts", registry.host);
    let said = run(&["push", "app-1.2.3+build.4.tgz", &url, "--plain-http"])?;
    let packed = std::fs::read(folder.path().join("app-1.2.3+build.4.tgz"))?;
    for version in [Some("1.2.3+build.4"), None] {
        let fetched = pull(&Reader::new()?, &registry.host, version).await?;
        let file = fetched
            .package
            .as_file()
            .map(|file| (&*file.path, &file.bytes));
        ensure!(file == Some(("app-1.2.3+build.4.tgz", &packed)));
        let resolved = fetched.resolved.unwrap_or_default();
        let digest = resolved.split('@').nth(1).unwrap_or_default();
        ensure!(said.contains(digest), "{digest}: {said}");
        tally.ran();
    }
    Ok(())
}
