//! A registry at the site that wants tokens, each for what is done with it.

use std::collections::BTreeSet;

use addons_tests::control_plane::pki::base64;
use addons_tests::servers::registry::tokens::Tokens;
use addons_tests::servers::registry::{PASSWORD, USER};

use super::*;

/// To push, and to take a blob from the repository beside it; to read for an install.
#[tokio::test]
async fn tokens_are_asked_for_what_is_done() -> Result<()> {
    let stage = stage("airgap-tokens").await?;
    let upstream = Upstream::start(&stage).await?;
    let archive = exported(&stage, &upstream, "web db").await?;
    drop(upstream);

    let tokens = Tokens::start("localhost").await?;
    let site = Site::with(Door::Tokens(&tokens), |_| None).await?;
    let import = format!("import {} --registry {}", archive.display(), site.path());
    let said = stage.run(&import).await?.ended(1)?;
    ensure!(said.stderr.contains("docker login"), "{}", said.stderr);
    let auth = base64(&format!("{USER}:{PASSWORD}"));
    let login = json!({"auths": {&site.front.host: {"auth": auth}}});
    stage.write(".docker/config.json", &login.to_string())?;
    let _ = (tokens.requests(), site.front.requests());
    let said = stage.run(&import).await?.done()?;
    let asked = scopes(&tokens);
    for scope in [
        "repository:addons/team/web:pull,push",
        "repository:addons/charts/db:pull,push",
        "repository:addons/kubectl-addons/catalogue:pull,push",
    ] {
        ensure!(asked.contains(scope), "{scope}: {asked:?}");
    }
    // Every image has the same empty configuration.
    let beside = |scope: &String| scope.ends_with(":pull");
    ensure!(asked.iter().any(beside), "{asked:?}");
    let mounts = site.front.requests().into_iter();
    let mounts = mounts.filter(|seen| seen.path.contains("mount=")).count();
    ensure!(mounts > 0, "no blob was taken from beside");

    let install = offline(&stage, said.stdout.trim());
    stage.run(&install).await?.done()?;
    let asked = scopes(&tokens);
    ensure!(
        !asked.is_empty() && asked.iter().all(beside),
        "to read: {asked:?}"
    );
    Ok(())
}

/// What the tokens since the last call were to allow.
fn scopes(tokens: &Tokens) -> BTreeSet<String> {
    let asked = tokens.requests().into_iter();
    let asked = asked.flat_map(|seen| {
        let query = seen.path.split_once('?').map(|(_, query)| query.to_owned());
        let query = query.unwrap_or_default();
        let pairs = url::form_urlencoded::parse(query.as_bytes()).into_owned();
        let scopes = pairs.filter(|(key, _)| key == "scope");
        scopes.map(|(_, scope)| scope).collect::<Vec<_>>()
    });
    asked.collect()
}
