//! The page about backups: its commands save a cluster and restore it into another one, in the versions that were installed.

use std::path::Path;

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::page::blocks;
use addons_tests::plugin::{Output, Plugin};
use addons_tests::scene::{apply, catalogue, create, version};
use anyhow::{Context as _, Result, ensure};
use common::api::names::{CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../kubectl-addons/docs/backups.md");

/// The block of commands of the page that begins with this.
fn block(begin: &str) -> Result<&'static str> {
    let mut blocks = blocks(PAGE).map(|(_, text)| text);
    let found = blocks.find(|block| block.starts_with(begin));
    found.with_context(|| format!("the page has no commands that begin with {begin}"))
}

/// Runs commands of the page as a user types them.
async fn run(user: &Plugin, commands: &str) -> Result<Output> {
    let args = ["-e", "-c", commands];
    let ran = user.program(Path::new("bash"), &args).await?;
    ran.done().with_context(|| commands.to_owned())
}

/// An add-on whose ConfigMap tells the version and a password.
fn addon(name: &str, versions: &[&str]) -> Value {
    let versions = versions.iter().map(|number| {
        let manifest = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n\
             data: {{version: {number}, password: \"{{{{ .Variables.password }}}}\"}}\n"
        );
        let more = json!({
            "defaultNamespace": "shop", "values": {"password": "none"},
            "template": {"method": "go-template"}, "source": {"inline": {"manifest": manifest}},
        });
        version(number, more)
    });
    json!({"name": name, "versions": versions.collect::<Vec<_>>()})
}

/// The version and the password in the ConfigMap of each add-on, and the version in its record.
async fn state(user: &Plugin) -> Result<Vec<[String; 3]>> {
    let mut states = Vec::new();
    for name in ["db", "dns", "web"] {
        let get = async |kind: &str, namespace: &str| {
            let args = ["get", kind, name, "-n", namespace, "-o", "json"];
            let found = user.kubectl(&args).await?.done()?;
            Ok::<Value, anyhow::Error>(serde_json::from_str(&found.stdout)?)
        };
        let object = get("configmap", "shop").await?;
        let record = get("addoninstallation", SYSTEM_NAMESPACE).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        states.push([
            text(&object["data"]["version"]),
            text(&object["data"]["password"]),
            text(&record["status"]["installed"]["version"]),
        ]);
    }
    Ok(states)
}

/// A cluster with an installation that is pinned, one that is not and whose newest version is not installed, and a core add-on.
async fn filled(user: &Plugin) -> Result<()> {
    user.run(&["init"]).await?.done()?;
    let offer = async |web: &[&str]| {
        let addons = json!([addon("web", web), addon("db", &["1.0.0", "1.1.0"])]);
        apply(user, &catalogue("team", SYSTEM_NAMESPACE, addons), &[])
            .await?
            .done()
    };
    offer(&["1.0.0"]).await?;
    let mut core = catalogue(
        "platform",
        SYSTEM_NAMESPACE,
        json!([addon("dns", &["2.0.0"])]),
    );
    core["spec"]["class"] = json!("Core");
    let config_map = |name: &str, key: &str, text: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {key: text},
            "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
        })
    };
    for object in [
        core,
        config_map(
            CORE_ADDON_RULES,
            "rules.yaml",
            "- {name: all, when: \"true\", addons: [{name: dns}]}\n",
        ),
        config_map(CUSTOM_CORE_ADDONS, "addons.yaml", "[]"),
        json!({
            "apiVersion": "v1", "kind": "Secret", "stringData": {"values.yaml": "password: secret"},
            "metadata": {"name": "db-password", "namespace": SYSTEM_NAMESPACE},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "stringData": {"tls.key": "of the old cluster"},
            "metadata": {"name": "addons-webhook-ca", "namespace": SYSTEM_NAMESPACE},
        }),
        json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonPolicy",
            "metadata": {"name": "ours"},
            "spec": {"action": "Warn", "allowed": {"catalogues": ["team", "platform"]}},
        }),
        json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "team-a", "labels": {"kubectl-addons.dev/cluster": "local"}},
        }),
    ] {
        create(user, &object, &[]).await?.done()?;
    }
    for line in [
        "install web --yes",
        "install db@1.0.0 --values-from db-password --yes",
        "reconcile",
    ] {
        let words: Vec<&str> = line.split_whitespace().collect();
        user.run(&words).await?.done()?;
    }
    // It is offered, and no one has upgraded yet.
    offer(&["1.0.0", "1.1.0"]).await?;
    Ok(())
}

#[tokio::test]
async fn a_cluster_is_restored_in_another_one_as_the_page_says() -> Result<()> {
    let old = ControlPlane::alone_api_only().await?;
    let saver = Plugin::admin(&old)?;
    filled(&saver).await?;
    let before = state(&saver).await?;
    let expected = [
        ["1.0.0", "secret", "1.0.0"],
        ["2.0.0", "none", "2.0.0"],
        ["1.0.0", "none", "1.0.0"],
    ];
    ensure!(before == expected, "{before:?}");
    run(&saver, block("mkdir -p backup")?).await?;

    let new = ControlPlane::start(Options::api_only()).await?;
    let restorer = Plugin::admin(&new)?;
    let copy = format!(
        "cp -r {}/backup .\n{}",
        saver.home().display(),
        block("cat > backup/restore.jq")?
    );
    run(&restorer, &copy).await?;
    run(&restorer, block("kubectl addons init\nkubectl apply")?).await?;
    let after = state(&restorer).await?;
    ensure!(after == before, "{after:?}");

    // Nothing else is due, and nothing of the old cluster came along.
    let again = restorer.run(&["reconcile"]).await?.done()?.stderr;
    ensure!(again.matches("up to date").count() == 3, "{again}");
    for (args, is_there) in [
        (&["get", "addonpolicy", "ours"][..], true),
        (&["get", "namespace", "team-a"], true),
        (
            &["get", "configmap", CORE_ADDON_RULES, "-n", SYSTEM_NAMESPACE],
            true,
        ),
        (
            &["get", "secret", "addons-webhook-ca", "-n", SYSTEM_NAMESPACE],
            false,
        ),
    ] {
        let found = restorer.kubectl(args).await?;
        ensure!((found.code == 0) == is_there, "{args:?}: {found:?}");
    }
    let dns = restorer
        .kubectl(&[
            "get",
            "addoninstallation",
            "dns",
            "-n",
            SYSTEM_NAMESPACE,
            "-o",
            "json",
        ])
        .await?
        .done()?;
    ensure!(dns.stdout.contains("\"coreAddon\": true"), "{}", dns.stdout);

    // Without its pin, an installation follows the catalogue again.
    let unpin = block("kubectl patch addoninstallation NAME")?.replace("NAME", "web");
    run(&restorer, &unpin).await?;
    restorer.run(&["reconcile"]).await?.done()?;
    let upgraded = state(&restorer).await?;
    ensure!(upgraded[2] == ["1.1.0", "none", "1.1.0"], "{upgraded:?}");
    Ok(())
}
