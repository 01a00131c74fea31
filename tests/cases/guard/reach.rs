//! Only the command line opens files, keys and accounts of the user, and no server leads to the services of their machine (semantics 6,
//! 16).

use std::path::Path;

use addons_tests::control_plane::pki::base64;
use addons_tests::plugin::Output;
use addons_tests::servers::http::{Answer, Server};
use addons_tests::servers::registry::{Door, PASSWORD, Registry, USER};
use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// The content of a file that is not to leave this machine.
const CANARY: &str = "canary-of-the-reader";
const OPEN: &str = "KUBECTL_ADDONS_OWN_ACCESS";

/// A user who opens nothing beforehand, with a manifest outside of every folder that is named.
async fn closed(what: &str) -> Result<Stage> {
    let mut stage = Stage::new(what).await?;
    stage.plugin = stage.plugin.variable(OPEN, "");
    stage.write("secret/canary.yaml", &config_map("canary", CANARY))?;
    Ok(stage)
}

fn canary(stage: &Stage) -> String {
    let path = stage.plugin.home().join("secret/canary.yaml");
    format!("file://{}", path.display())
}

/// A catalogue with one version, as JSON.
fn catalogue(base: Option<&str>, source: &Value) -> String {
    let versions = json!([{"version": "1.0.0", "source": source}]);
    let mut object = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "tools"},
        "spec": {"addons": [{"name": "web", "versions": versions}]},
    });
    if let Some(base) = base {
        object["spec"]["baseURL"] = json!(base);
    }
    object.to_string()
}

fn url(manifest: &str) -> Value {
    json!({"url": {"manifest": manifest}})
}

fn refused(said: &Output, words: &[&str]) -> Result<()> {
    ensure!(said.code != 0, "{}{}", said.stdout, said.stderr);
    for word in words {
        ensure!(said.stderr.contains(word), "{word}: {}", said.stderr);
    }
    let all = format!("{}{}", said.stdout, said.stderr);
    ensure!(!all.contains(CANARY), "{all}");
    Ok(())
}

/// The bytes decide who wrote a catalogue, and not the `baseURL` that they name.
#[tokio::test]
async fn g08_a_catalogue_of_a_server_takes_no_file_into_the_cluster() -> Result<()> {
    let stage = closed("guard-remote").await?;
    stage.run("init").await?.done()?;
    let file = canary(&stage);
    let texts = [
        catalogue(Some("file:///x"), &url(&file)),
        catalogue(Some(&file), &url("canary.yaml")),
        catalogue(None, &url(&file)),
        catalogue(Some("file:///x"), &json!({"inline": {"manifest": "a: b"}})),
    ];
    let count = texts.len();
    let server = Server::start(None, move |request| {
        let index = request.uri.trim_start_matches('/').parse::<usize>();
        match index.ok().and_then(|index| texts.get(index)) {
            Some(text) => Answer::ok(text.clone()),
            None => Answer::status(404),
        }
    })?;
    for index in 0..count {
        let add = format!("catalogue add {}", server.url(&format!("/{index}")));
        refused(&stage.run(&add).await?, &["on this machine"])?;
    }
    ensure!(!stage.has("addoncatalogue", "tools").await?);
    Ok(())
}

/// What a user has on their disk need not be written by them: a file names what lies below its folder, and no more.
#[tokio::test]
async fn g09_a_file_names_files_below_its_folder() -> Result<()> {
    let stage = closed("guard-below").await?;
    stage.run("init").await?.done()?;
    stage.write("pr/sub/web.yaml", &config_map("web", "1"))?;
    let link = stage.plugin.home().join("pr/link.yaml");
    std::os::unix::fs::symlink(stage.plugin.home().join("secret/canary.yaml"), link)?;
    let commands = [
        "catalogue add pr/catalogue.json",
        "catalogue validate pr/catalogue.json",
        "render web --channel pr/catalogue.json --k8s 1.36",
        "install web --channel pr/catalogue.json --yes",
    ];
    let file = canary(&stage);
    for manifest in [
        &*file,
        "../secret/canary.yaml",
        "link.yaml",
        "sub/../../secret/canary.yaml",
    ] {
        stage.write("pr/catalogue.json", &catalogue(None, &url(manifest)))?;
        for command in commands {
            let said = stage.run(command).await?;
            ensure!(said.code != 0, "{command} {manifest}: {}", said.stdout);
            let all = format!("{}{}", said.stdout, said.stderr);
            ensure!(!all.contains(CANARY), "{command}: {all}");
            ensure!(
                all.contains("cannot name files of this machine"),
                "{command}: {all}"
            );
        }
    }
    ensure!(!stage.has("configmap", "canary").await?);
    // The user may open the folder.
    stage.write(
        "pr/catalogue.json",
        &catalogue(None, &url("../secret/canary.yaml")),
    )?;
    let render = "render web --channel pr/catalogue.json --k8s 1.36 --own-access secret";
    let said = stage.run(render).await?.done()?;
    ensure!(said.stdout.contains(CANARY), "{}", said.stdout);
    stage.write("pr/catalogue.json", &catalogue(None, &url("sub/web.yaml")))?;
    stage
        .run("catalogue validate pr/catalogue.json")
        .await?
        .done()?;
    stage.run("catalogue add pr/catalogue.json").await?.done()?;
    let stored = stage.must("addoncatalogue", "tools").await?;
    let source = &stored["spec"]["addons"][0]["versions"][0]["source"];
    ensure!(source["inline"]["manifest"].is_string(), "{stored}");
    Ok(())
}

/// Whoever may write a record names what its reader opens to it, and nothing else.
#[tokio::test]
async fn g09_a_record_opens_no_file() -> Result<()> {
    let stage = closed("guard-record").await?;
    let index = stage.index(
        "own/index.yaml",
        &[("web", "1.0.0", &config_map("web", "1"))],
    )?;
    stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?;
    let folder = Path::new(&index).parent().unwrap_or(Path::new("/"));
    let folder = folder.display();
    let closed = "cannot name files of this machine";
    let said = stage.run("upgrade web --repair --yes").await?;
    refused(&said, &[closed, "accept:", "--own-access="])?;
    for command in [
        "upgrade web --repair --yes",
        "diff web",
        "plan web",
        &format!("show web -n {}", stage.namespace),
    ] {
        refused(&stage.run(command).await?, &[closed])?;
        let opened = format!("{command} --own-access {folder}");
        let said = stage.run(&opened).await?;
        ensure!(!said.stderr.contains(closed), "{opened}: {}", said.stderr);
    }
    // The index itself is named again.
    let named = format!("upgrade web --repair --yes --own-access {index}");
    stage.run(&named).await?.done()?;

    let file = canary(&stage);
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": "evil", "namespace": stage.namespace},
        "spec": {"addonRef": {"name": "canary", "index": file}, "targetNamespace": stage.namespace},
    });
    stage.apply(&record.to_string()).await?;
    for command in [
        "diff evil",
        "upgrade evil --yes",
        "list --outdated",
        "reconcile",
    ] {
        let said = stage.run(command).await?;
        let all = format!("{}{}", said.stdout, said.stderr);
        ensure!(!all.contains(CANARY), "{command}: {all}");
    }
    ensure!(!stage.has("configmap", "canary").await?);
    Ok(())
}

/// A key is used for a host that the command line names, which is said before.
#[tokio::test]
async fn g09_keys_and_accounts_are_opened_by_host() -> Result<()> {
    let stage = closed("guard-keys").await?;
    let render = "render web --channel catalogue.json --k8s 1.36";
    let remote = json!({"git": {"remote": "ssh://git@127.0.0.1:1/infra.git"}});
    stage.write("catalogue.json", &catalogue(None, &remote))?;
    let said = stage.run(render).await?;
    refused(
        &said,
        &["ssh needs a Secret", "--own-access=ssh://127.0.0.1:1"],
    )?;
    ensure!(
        !said.stderr.contains("uses your ssh key"),
        "{}",
        said.stderr
    );
    let other = stage
        .run(&format!("{render} --own-access ssh://127.0.0.1:2"))
        .await?;
    refused(&other, &["ssh needs a Secret"])?;
    let said = stage
        .run(&format!("{render} --own-access ssh://127.0.0.1:1"))
        .await?;
    refused(&said, &["uses your ssh key for git@127.0.0.1"])?;

    let registry = Registry::start(Door::Password).await?;
    let auth = base64(&format!("{USER}:{PASSWORD}"));
    let login = json!({"auths": {&registry.host: {"auth": auth}}});
    stage.write(".docker/config.json", &login.to_string())?;
    let image = format!("{}/team/app:1", registry.host);
    let source = json!({"docker": {"image": image, "plainHTTP": true}});
    stage.write("catalogue.json", &catalogue(None, &source))?;
    let said = stage.run(render).await?;
    let place = format!("--own-access oci://{}", registry.host);
    refused(&said, &["requests without credentials", &place])?;
    let said = stage.run(&format!("{render} {place}")).await?;
    let told = format!("uses your docker login for {}", registry.host);
    refused(&said, &[&told])?;
    ensure!(said.stderr.matches(&told).count() == 1, "{}", said.stderr);
    ensure!(
        !said.stderr.contains("requests without credentials"),
        "{}",
        said.stderr
    );
    Ok(())
}

/// The server of a kubeconfig is an address that someone else wrote.
#[tokio::test]
async fn g09_a_kubeconfig_leads_to_no_metadata() -> Result<()> {
    let stage = closed("guard-kubeconfig").await?;
    stage.run("init").await?.done()?;
    let team = format!("{}-team", stage.namespace);
    let labels = json!({"kubectl-addons.dev/kubeconfig-secret": "other"});
    for server in [
        "https://169.254.169.254",
        "https://100.100.100.200:6443",
        "https://[fd00:ec2::254]",
        "https://[::ffff:168.63.129.16]",
    ] {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {"server": server}}],
            "users": [{"name": "a", "user": {"token": "t"}}],
        });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team, "labels": labels}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "namespace": team},
                "stringData": {"value": kubeconfig.to_string()}},
        ]});
        let args = ["apply", "-f", "-"];
        stage
            .plugin
            .kubectl_with_input(&args, &list.to_string())
            .await?
            .done()?;
        let said = stage.run(&format!("upgrade --yes -n {team}")).await?;
        refused(&said, &["cluster.server leads to"])?;
    }
    Ok(())
}
