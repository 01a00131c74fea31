//! Charts from repositories over http(s): what is asked for, what is refused, who gets the password.

mod faults;
mod rig;

use addons_sources::credentials::Credentials;
use addons_tests::control_plane::pki::Authority;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::servers::charts::{Charts, Fault, Options};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use rig::{Rig, secret, shelf};

const USER: (&str, &str) = ("reader", "correct-horse");

#[tokio::test]
async fn versions_and_how_often_is_asked() -> Result<()> {
    let mut tally = Tally::new("sources::chart versions");
    let shelf = shelf()?;
    let charts = Charts::serve(shelf.path(), &Options::default())?;
    let rig = Rig::new()?;
    // (version, what it is, requests cold, requests warm)
    for (wanted, version, cold, warm) in [
        (Some("1.0.0"), "1.0.0", 2, 0),
        (None, "1.10.0", 2, 1),
        (Some("1.x"), "1.10.0", 1, 1),
        (Some(">=1.0.0-0"), "2.0.0-rc.1", 2, 1),
        (Some("2.0.0-rc.1"), "2.0.0-rc.1", 0, 0),
    ] {
        for expected in [cold, warm] {
            let fetched = rig.fetch(&charts, "web", wanted, None).await?;
            let resolved = fetched.resolved.unwrap_or_default();
            let digest = fetched.package.digest();
            ensure!(
                resolved == format!("web-{version}@sha256:{digest}"),
                "{resolved}"
            );
            let url = format!("{}/web-{version}.tgz", charts.url());
            ensure!(fetched.location == url, "{}", fetched.location);
            let seen = charts.seen();
            ensure!(seen.len() == expected, "{wanted:?}: {seen:?}");
            tally.ran();
        }
    }
    // Offline: what is pinned, and what the index said the last time.
    let offline = rig.offline();
    for wanted in [Some("1.0.0"), None, Some("1.x")] {
        offline.fetch(&charts, "web", wanted, None).await?;
        tally.ran();
    }
    let miss = offline.error(&charts, "web", Some("1.9.0"), None).await?;
    let words = "/web-1.9.0.tgz is not in the cache, and no server may be asked";
    ensure!(miss.contains(words), "{miss}");
    let miss = Rig::new()?
        .offline()
        .error(&charts, "web", None, None)
        .await?;
    ensure!(miss.contains("/index.yaml is not in the cache"), "{miss}");
    ensure!(charts.seen().is_empty(), "offline asks nobody");
    // The index moved: the newer version comes, by one more request.
    shelf.chart("web", "1.11.0", &[])?;
    shelf.index(None)?;
    let fetched = rig.fetch(&charts, "web", None, None).await?;
    ensure!(fetched.location.ends_with("web-1.11.0.tgz") && charts.seen().len() == 2);
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn what_is_not_there() -> Result<()> {
    let mut tally = Tally::new("sources::chart missing");
    let shelf = shelf()?;
    let charts = Charts::serve(shelf.path(), &Options::default())?;
    let rig = Rig::new()?;
    for (chart, version, words) in [
        (
            "wbe-app",
            None,
            "there is no chart named wbe-app among 2; did you mean web-app?",
        ),
        (
            "web",
            Some("3.x"),
            "chart web has no version 3.x; it has 2.0.0-rc.1, 1.10.0, 1.9.0, 1.0.0",
        ),
        ("web", Some(">="), "version of chart web: "),
    ] {
        let error = rig.error(&charts, chart, version, None).await?;
        ensure!(
            error.contains(words) && error.lines().count() == 1,
            "{error}"
        );
        tally.ran();
    }
    let url = format!("{}/nowhere", charts.url());
    let error = rig.error_at(&url, "web", None, None).await?;
    ensure!(
        error.ends_with("/nowhere/index.yaml: the server answers 404 Not Found"),
        "{error}"
    );
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn the_password_is_for_the_repository_alone() -> Result<()> {
    let mut tally = Tally::new("sources::chart credentials");
    let closed = Options {
        basic: Some((USER.0, USER.1.to_owned())),
        tls: None,
    };
    let shelf = shelf()?;
    let charts = Charts::serve(shelf.path(), &closed)?;
    let allowed = secret("kubernetes.io/basic-auth", charts.host(), USER, None);
    let rig = Rig::new()?;
    rig.fetch(&charts, "web", Some("1.0.0"), Some(&allowed))
        .await?;
    ensure!(
        charts
            .seen()
            .iter()
            .all(|seen| seen.authorized && seen.status == "200 OK")
    );
    tally.ran();
    let wrong = ("reader", "wrong-horse");
    let refused = "the server answers 401 Unauthorized";
    let hosts = charts.host();
    for (credentials, words, asked) in [
        (None, refused, 1),
        (
            Some(secret("kubernetes.io/basic-auth", hosts, wrong, None)),
            refused,
            1,
        ),
        (
            Some(secret(
                "kubernetes.io/basic-auth",
                "other.example",
                USER,
                None,
            )),
            "its annotation kubectl-addons.dev/allowed-hosts names other.example",
            0,
        ),
        (
            Some(secret("kubernetes.io/dockerconfigjson", hosts, USER, None)),
            "which takes kubernetes.io/basic-auth",
            0,
        ),
    ] {
        let error = rig
            .error(&charts, "web", None, credentials.as_ref())
            .await?;
        ensure!(error.contains(words), "{error}");
        ensure!(!error.contains("horse"), "{error}");
        ensure!(charts.seen().len() == asked, "{words}");
        tally.ran();
    }
    archives_elsewhere(&shelf, &charts, &rig, &allowed, &mut tally).await?;
    // Not over plain HTTP to anybody else, and not in a URL.
    let far = secret("kubernetes.io/basic-auth", "charts.example", USER, None);
    let error = rig
        .error_at("http://charts.example", "web", None, Some(&far))
        .await?;
    ensure!(error.contains("over plain HTTP"), "{error}");
    let inside = format!("http://reader:correct-horse@{}", charts.host());
    let error = rig.error_at(&inside, "web", None, None).await?;
    ensure!(
        error.contains("user name or password in a URL") && !error.contains("horse"),
        "{error}"
    );
    tally.ran();
    ensure!(!rig.cache_holds("horse")?, "the cache holds a password");
    Ok(())
}

/// An archive on another host, and one behind a redirect: neither gets the password.
async fn archives_elsewhere(
    shelf: &Shelf,
    charts: &Charts,
    rig: &Rig,
    allowed: &Credentials,
    tally: &mut Tally,
) -> Result<()> {
    let elsewhere = Charts::serve(shelf.path(), &Options::default())?;
    shelf.index(Some(elsewhere.url()))?;
    rig.fetch(charts, "web", Some("1.9.0"), Some(allowed))
        .await?;
    let seen = elsewhere.seen();
    ensure!(seen.len() == 1 && !seen[0].authorized, "{seen:?}");
    tally.ran();
    shelf.index(None)?;
    let to = format!("{}/web-1.10.0.tgz", elsewhere.url());
    charts.fault("/web-1.10.0.tgz", Fault::Redirect(to));
    rig.fetch(charts, "web", Some("1.10.0"), Some(allowed))
        .await?;
    let seen = elsewhere.seen();
    ensure!(seen.len() == 1 && !seen[0].authorized, "{seen:?}");
    tally.ran();
    // What the password opened is not in the cache for who knows its digest alone (semantics 16).
    let stranger = Shelf::new()?;
    stranger.write_index(&shelf.read_index()?)?;
    let open = Charts::serve(stranger.path(), &Options::default())?;
    let error = rig.error(&open, "web", Some("1.0.0"), None).await?;
    let words = "/web-1.0.0.tgz: the server answers 404";
    ensure!(error.contains(words), "{error}");
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn an_authority_of_its_own() -> Result<()> {
    let mut tally = Tally::new("sources::chart TLS");
    let authority = Authority::new("charts")?;
    let tls = Options {
        basic: Some((USER.0, USER.1.to_owned())),
        tls: Some(authority.serving("charts", &["127.0.0.1"])?),
    };
    let shelf = shelf()?;
    let charts = Charts::serve(shelf.path(), &tls)?;
    let rig = Rig::new()?;
    let known = Some(authority.certificate.as_str());
    let other = Authority::new("other")?.certificate;
    for (ca, works) in [
        (known, true),
        (None, false),
        (Some(&*other), false),
        (Some("x"), false),
    ] {
        let secret = secret("kubernetes.io/basic-auth", charts.host(), USER, ca);
        let fetched = rig.fetch(&charts, "web", None, Some(&secret)).await;
        ensure!(fetched.is_ok() == works, "{ca:?}: {fetched:?}");
        if !works {
            ensure!(
                charts.seen().is_empty(),
                "an unknown server was sent something"
            );
        }
        let _ = charts.seen();
        tally.ran();
    }
    // Down to plain HTTP: where a redirect leads, it is not followed.
    let plain = Charts::serve(shelf.path(), &Options::default())?;
    let to = format!("{}/web-1.0.0.tgz", plain.url());
    charts.fault("/web-1.0.0.tgz", Fault::Redirect(to));
    let secret = secret("kubernetes.io/basic-auth", charts.host(), USER, known);
    let error = rig
        .error(&charts, "web", Some("1.0.0"), Some(&secret))
        .await?;
    ensure!(
        error.contains("another scheme") && plain.seen().is_empty(),
        "{error}"
    );
    tally.ran();
    // An archive over plain HTTP is as good as its digest.
    shelf.index(Some(plain.url()))?;
    rig.fetch(&charts, "web", Some("1.9.0"), Some(&secret))
        .await?;
    let index = shelf.read_index()?;
    let without: Vec<&str> = index
        .lines()
        .filter(|line| !line.contains("digest:"))
        .collect();
    shelf.write_index(&without.join("\n"))?;
    let error = rig
        .error(&charts, "web", Some("1.0.0"), Some(&secret))
        .await?;
    ensure!(
        error.contains("over plain HTTP without a digest"),
        "{error}"
    );
    tally.ran();
    Ok(())
}
