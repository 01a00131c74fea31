//! Who may read: passwords, tokens, TLS, and what is never sent where.

use std::process::Command;

use addons_sources::credentials::Credentials;
use addons_tests::control_plane::pki::base64;
use addons_tests::servers::registry::front::{Fault, Front};
use addons_tests::servers::registry::tokens::Tokens;
use addons_tests::servers::registry::{Door, PASSWORD, Registry, USER};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::{Reader, files, outcome, password, push_app, right, secret, source};

const APP: &str = "a.yaml:new b.yaml:b";

/// A `.dockerconfigjson` with one entry.
fn docker(key: &str, password: &str, hosts: &str) -> Result<Credentials> {
    let auth = base64(&format!("{USER}:{password}"));
    let config = json!({"auths": {key: {"auth": auth}, "other.example": {"auth": "bm86bm8="}}});
    let data = [(".dockerconfigjson", &*config.to_string())];
    secret("kubernetes.io/dockerconfigjson", &data, hosts)
}

#[tokio::test]
async fn a_password() -> Result<()> {
    let mut tally = Tally::new("sources::image::password");
    let registry = Registry::start(Door::Password).await?;
    push_app(&registry, "team/app", "1").await?;
    let front = Front::start(Some(&registry), |_| None).await?;
    let host = &front.host;
    let image = format!("{host}/team/app:1");
    let ssh = [("ssh-privatekey", "k"), ("known_hosts", "h")];
    let path = format!("{host}/team");
    for (name, credentials, expected, requests) in [
        ("right", Some(right(host)?), APP, 3),
        ("of its name", Some(right("127.0.0.1")?), APP, 3),
        ("docker", Some(docker(host, PASSWORD, host)?), APP, 3),
        (
            "docker, a path",
            Some(docker(&path, PASSWORD, host)?),
            APP,
            3,
        ),
        ("none", None, "refuses requests without credentials", 1),
        (
            "wrong",
            Some(password("wrong", host)?),
            "refuses the credentials of Secret system/pull",
            1,
        ),
        (
            "docker, wrong",
            Some(docker(host, "wrong", host)?),
            "refuses the credentials of Secret system/pull",
            1,
        ),
        (
            "docker, nothing",
            Some(docker("x.example", PASSWORD, host)?),
            "has no entry for 127.0.0.1",
            0,
        ),
        (
            "other host",
            Some(right("example.org")?),
            "may not be sent to 127.0.0.1",
            0,
        ),
        (
            "no host",
            Some(right("")?),
            "it has no annotation kubectl-addons.dev/allowed-hosts",
            0,
        ),
        (
            "ssh",
            Some(secret("kubernetes.io/ssh-auth", &ssh, host)?),
            "cannot be used for a registry",
            0,
        ),
    ] {
        let mut reader = Reader::new()?;
        reader.credentials = credentials;
        let found = outcome(reader.fetch(&image, "/m").await);
        let fits = if expected == APP {
            found == APP
        } else {
            found.contains(expected)
        };
        ensure!(fits, "{name}: {found}");
        ensure!(
            !found.contains("horse") && !found.contains("wrong"),
            "{name}: {found}"
        );
        // The manifest and two layers; a password that was given is not asked for first.
        assert_eq!(front.requests().len(), requests, "{name}");
        tally.ran();
    }
    Ok(())
}

/// A Secret may hold no more than an authority: nothing is sent in its name.
#[tokio::test]
async fn an_empty_password() -> Result<()> {
    let mut tally = Tally::new("sources::image::empty");
    let challenge = "Basic realm=\"x\"".to_owned();
    let front = Front::start(None, move |_| Some(Fault::Challenge(challenge.clone()))).await?;
    let host = &front.host;
    let config = json!({"auths": {host: {}}}).to_string();
    let config = [(".dockerconfigjson", config.as_str())];
    for credentials in [
        secret("kubernetes.io/basic-auth", &[("password", "")], host)?,
        secret("kubernetes.io/dockerconfigjson", &config, host)?,
    ] {
        let reader = Reader::with(credentials)?;
        let found = outcome(reader.fetch(&format!("{host}/app:1"), "/m").await);
        let expected = "refuses requests without credentials, and Secret system/pull holds none";
        ensure!(found.contains(expected), "{found}");
        let requests = front.requests();
        let sent = requests.iter().any(|seen| seen.authorization.is_some());
        ensure!(requests.len() == 1 && !sent, "{requests:?}");
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn a_token() -> Result<()> {
    let mut tally = Tally::new("sources::image::token");
    // The registry calls this machine by another name than we do.
    let tokens = Tokens::start("localhost").await?;
    let registry = Registry::start(Door::Tokens(&tokens)).await?;
    push_app(&registry, "team/app", "1").await?;
    let front = Front::start(Some(&registry), |_| None).await?;
    let host = &front.host;
    let image = format!("{host}/team/app:1");
    let both = format!("{host},localhost");
    for (name, credentials, expected, asked) in [
        ("right", Some(right(&both)?), APP, 1),
        ("docker", Some(docker(host, PASSWORD, &both)?), APP, 1),
        ("none", None, "refuses requests without credentials", 1),
        (
            "wrong",
            Some(password("wrong", &both)?),
            "refuses the credentials of Secret system/pull",
            1,
        ),
        // The password goes to the registry alone.
        (
            "not for the tokens",
            Some(right(host)?),
            "may not be sent to localhost",
            0,
        ),
    ] {
        let mut reader = Reader::new()?;
        reader.credentials = credentials;
        let found = outcome(reader.fetch(&image, "/m").await);
        let fits = if expected == APP {
            found == APP
        } else {
            found.contains(expected)
        };
        ensure!(fits, "{name}: {found}");
        let requests = tokens.requests();
        assert_eq!(requests.len(), asked, "{name}: {requests:?}");
        let _ = front.requests();
        tally.ran();
    }
    // Refused, a token, and then as without one; a warm cache is one request to the registry and one for the token, for it is
    // known where that is asked for.
    let reader = Reader::with(right(&both)?)?;
    reader.fetch(&image, "/m").await?;
    assert_eq!((front.requests().len(), tokens.requests().len()), (4, 1));
    reader.fetch(&image, "/m").await?;
    assert_eq!((front.requests().len(), tokens.requests().len()), (1, 1));
    // What was noted is the place, and no more.
    let notes = std::fs::read_dir(reader.folder.path().join("cache/notes"))?;
    for note in notes {
        let note = std::fs::read_to_string(note?.path())?;
        ensure!(!note.contains("eyJ"), "{note}");
    }
    tally.ran();
    Ok(())
}

/// Passwords are not sent for tokens to where anybody could read them.
#[tokio::test]
async fn where_tokens_are_not_asked_for() -> Result<()> {
    let mut tally = Tally::new("sources::image::realms");
    for (realm, expected) in [
        ("http://tokens.example/token", "it does not use TLS"),
        ("ftp://127.0.0.1/token", "it does not use TLS"),
        ("nonsense", "it is not a valid URL"),
        (
            "https://tokens.example/token",
            "may not be sent to tokens.example",
        ),
        // Another port is another server.
        (
            "https://127.0.0.1:1/token",
            "may not be sent to 127.0.0.1:1",
        ),
    ] {
        let challenge = format!("Bearer realm=\"{realm}\",service=\"x\"");
        let front = Front::start(None, move |_| Some(Fault::Challenge(challenge.clone()))).await?;
        let reader = Reader::with(right(&front.host)?)?;
        let error = outcome(reader.fetch(&format!("{}/app:1", front.host), "/m").await);
        ensure!(error.contains(expected), "{realm}: {error}");
        tally.ran();
    }
    // What clouds tell their machines is not for catalogues of a cluster.
    let metadata = "http://169.254.169.254/token".to_owned();
    let challenge = format!("Bearer realm=\"{metadata}\",service=\"x\"");
    for (name, fault) in [
        ("a realm", Fault::Challenge(challenge)),
        ("a redirect", Fault::Redirect(metadata)),
    ] {
        let front = Front::start(None, move |_| Some(fault.clone())).await?;
        let error = outcome(
            Reader::new()?
                .fetch(&format!("{}/app:1", front.host), "/m")
                .await,
        );
        ensure!(
            error.contains("169.254.169.254 is a link-local address"),
            "{name}: {error}"
        );
        tally.ran();
    }
    let error = outcome(Reader::new()?.fetch("169.254.169.254/app:1", "/m").await);
    ensure!(
        error.contains("169.254.169.254 is a link-local address"),
        "{error}"
    );
    tally.ran();
    // A password that was written into a reference is not shown.
    let pinned = format!("@sha256:{}", "0".repeat(64));
    for name in [":1", &pinned] {
        let image = format!("user:horse@registry.example/app{name}");
        let error = outcome(Reader::new()?.fetch(&image, "/m").await);
        ensure!(
            error.contains("is not a valid image") && !error.contains("horse"),
            "{error}"
        );
        tally.ran();
    }
    // Nothing is sent at all: there is no such host.
    let reader = Reader::with(right("registry.example")?)?;
    let error = outcome(reader.fetch("registry.example/app:1", "/m").await);
    ensure!(error.contains("over plain HTTP"), "{error}");
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn tls() -> Result<()> {
    let mut tally = Tally::new("sources::image::tls");
    let registry = Registry::start(Door::Tls).await?;
    push_app(&registry, "team/app", "1").await?;
    let ca = registry.ca.clone().context("no authority")?;
    let host = &registry.host;
    let image = format!("{host}/team/app:1");
    let with = |ca: &str| {
        let data = [("username", USER), ("password", PASSWORD), ("ca.crt", ca)];
        secret("kubernetes.io/basic-auth", &data, host)
    };
    for (name, credentials, plain, expected) in [
        ("own authority", Some(with(&ca)?), false, APP),
        (
            "the machine's",
            Some(right(host)?),
            false,
            "cannot be fetched",
        ),
        ("none", None, false, "cannot be fetched"),
        (
            "no authority",
            Some(with("nonsense")?),
            false,
            "holds no certificate in PEM",
        ),
        ("plain HTTP", None, true, "400 Bad Request"),
    ] {
        let mut reader = Reader::new()?;
        reader.credentials = credentials;
        let found = outcome(reader.fetch_from(&source(&image, "/m", plain)).await);
        let fits = if expected == APP {
            found == APP
        } else {
            found.contains(expected)
        };
        ensure!(fits, "{name}: {found}");
        tally.ran();
    }
    // And a registry without TLS is asked for it.
    let open = Registry::start(Door::Open).await?;
    let image = format!("{}/team/app:1", open.host);
    let error = outcome(
        Reader::new()?
            .fetch_from(&source(&image, "/m", false))
            .await,
    );
    ensure!(error.contains("cannot be fetched"), "{error}");
    tally.ran();
    Ok(())
}

/// `docker login` of this machine, which is asked only where it may be: in a process of its own, for its environment.
#[tokio::test]
async fn docker_login() -> Result<()> {
    let mut tally = Tally::new("sources::image::docker-login");
    let registry = Registry::start(Door::Password).await?;
    push_app(&registry, "team/app", "1").await?;
    let folder = tempfile::tempdir()?;
    let auth = base64(&format!("{USER}:{PASSWORD}"));
    let config = json!({"auths": {&registry.host: {"auth": auth}}});
    std::fs::write(folder.path().join("config.json"), config.to_string())?;
    for (ambient, expected) in [("yes", APP), ("no", "refuses requests without credentials")] {
        let output = Command::new(std::env::current_exe()?)
            .args([
                "--exact",
                "sources::image::access::as_somebody_logged_in",
                "--ignored",
                "--nocapture",
            ])
            .env("DOCKER_CONFIG", folder.path())
            .env(
                "ADDONS_TESTS_IMAGE",
                format!("{}/team/app:1", registry.host),
            )
            .env("ADDONS_TESTS_AMBIENT", ambient)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{said}");
        ensure!(said.contains(expected), "{ambient}: {said}");
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
#[ignore = "run by docker_login with an environment of its own"]
async fn as_somebody_logged_in() -> Result<()> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut reader = Reader::new()?;
    let image = std::env::var("ADDONS_TESTS_IMAGE")?;
    if std::env::var("ADDONS_TESTS_AMBIENT")? == "yes" {
        reader.reach = crate::sources::typed(&format!("oci://{image}"));
    }
    println!("{}", outcome(reader.fetch(&image, "/m").await));
    Ok(())
}

/// A redirect to another host gets no password.
#[tokio::test]
async fn redirects_get_no_credentials() -> Result<()> {
    let mut tally = Tally::new("sources::image::redirects");
    let registry = Registry::start(Door::Password).await?;
    push_app(&registry, "team/app", "1").await?;
    let open = Registry::start(Door::Open).await?;
    push_app(&open, "team/app", "1").await?;
    let storage = Front::start(Some(&open), |_| None).await?;
    let to = format!("http://{}", storage.host);
    let front = Front::start(Some(&registry), move |seen| {
        let is_blob = seen.path.contains("/blobs/");
        is_blob.then(|| Fault::Redirect(format!("{to}{}?signature=1", seen.path)))
    })
    .await?;
    let reader = Reader::with(right("127.0.0.1")?)?;
    let fetched = reader
        .fetch(&format!("{}/team/app:1", front.host), "/m")
        .await?;
    assert_eq!(files(&fetched), APP);
    ensure!(
        front
            .requests()
            .iter()
            .all(|seen| seen.authorization.is_some())
    );
    let followed = storage.requests();
    assert_eq!(followed.len(), 2);
    ensure!(
        followed.iter().all(|seen| seen.authorization.is_none()),
        "{followed:?}"
    );
    tally.ran();
    Ok(())
}
