//! Add-ons and versions that have ended: what commands say about them, and how a successor takes over their objects (semantics 1.9).

use addons_tests::control_plane::{ControlPlane, Options};
use addons_tests::plugin::Plugin;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

const WHY: &str = "deprecated since 2026-03-31: no more fixes; use shop";

fn config_maps(names: &[&str]) -> Value {
    let one = |name: &&str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n")
    };
    let all: Vec<String> = names.iter().map(one).collect();
    json!({"inline": {"manifest": all.join("---\n")}})
}

/// `web` has ended, and `shop` contains one of its two objects. `mail` 1.1.0 has a fault. `blog` has ended, and contains nothing of `shop`.
async fn start(cluster: &ControlPlane) -> Result<Plugin> {
    let plugin = Plugin::admin(cluster)?;
    let ended = json!({"since": "2026-03-31", "reason": "no more fixes", "successor": "shop"});
    let fault = json!({"reason": "it loses mails"});
    let addons = json!([
        {"name": "web", "deprecated": ended, "versions": [
            {"version": "1.0.0", "source": config_maps(&["shared", "old"])},
        ]},
        {"name": "shop", "versions": [
            {"version": "2.0.0", "source": config_maps(&["shared", "new"])},
        ]},
        {"name": "mail", "versions": [
            {"version": "1.0.0", "source": config_maps(&["mail"])},
            {"version": "1.1.0", "deprecated": fault, "source": config_maps(&["mail"])},
        ]},
        {"name": "blog", "deprecated": ended, "versions": [
            {"version": "1.0.0", "source": config_maps(&["blog"])},
        ]},
    ]);
    let object = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "main"}, "spec": {"addons": addons},
    });
    let file = cluster.folder().join("catalogue.yaml");
    std::fs::write(&file, object.to_string())?;
    let file = file.to_str().context("a path")?;
    plugin.run(&["catalogue", "add", file]).await?.done()?;
    Ok(plugin)
}

#[tokio::test]
async fn a_successor_takes_over_the_objects_of_an_add_on_that_has_ended() -> Result<()> {
    let cluster = ControlPlane::start(Options::api_only()).await?;
    let plugin = start(&cluster).await?;

    // Before it is installed.
    let found = plugin.run(&["search"]).await?.done()?.stdout;
    ensure!(found.contains("1.0.0 (deprecated)"), "{found}");
    let shown = plugin.run(&["show", "web"]).await?.done()?.stdout;
    ensure!(shown.contains(WHY), "{shown}");
    let shown = plugin.run(&["show", "mail"]).await?.done()?.stdout;
    ensure!(
        shown.contains("mail 1.0.0") && shown.contains("deprecated: it loses mails"),
        "{shown}"
    );

    // A version that is deprecated is not chosen, and an add-on that is, with a warning.
    let install = ["install", "web", "mail", "blog", "--yes"];
    let said = plugin.run(&install).await?.done()?.stderr;
    let warning = format!("warning: web 1.0.0 is {WHY}");
    ensure!(said.matches(&warning).count() == 1, "{said}");
    ensure!(said.contains("mail 1.0.0 installed"), "{said}");

    // Once it is installed.
    let listed = plugin.run(&["list"]).await?.done()?.stdout;
    ensure!(
        listed.matches("1.0.0 (deprecated)").count() == 2,
        "{listed}"
    );
    let doctor = plugin.run(&["doctor"]).await?.stdout;
    ensure!(
        doctor.contains(WHY) && doctor.contains("kubectl addons upgrade web"),
        "{doctor}"
    );
    let preflight = plugin.run(&["preflight", "--to", "1.36.3"]).await?.done()?;
    ensure!(preflight.stdout.contains(WHY), "{}", preflight.stdout);

    // The command that upgrade names moves what both contain.
    let said = plugin
        .run(&["upgrade", "web", "--yes"])
        .await?
        .done()?
        .stderr;
    let command = said
        .lines()
        .find_map(|line| line.split("kubectl addons ").nth(1));
    let command = command.with_context(|| said.clone())?;
    ensure!(
        said.contains("web: shop takes over 1 of its 2 objects"),
        "{said}"
    );
    let uid = async || -> Result<String> {
        let get = [
            "get",
            "configmap",
            "shared",
            "-n",
            "web",
            "-o",
            "jsonpath={.metadata.uid}",
        ];
        Ok(plugin.kubectl(&get).await?.done()?.stdout)
    };
    let before = uid().await?;
    let mut replace: Vec<&str> = command.split_whitespace().collect();
    replace.push("--yes");
    plugin.run(&replace).await?.done()?;
    ensure!(uid().await? == before, "the object was created again");
    let left = [
        "get",
        "configmaps",
        "-n",
        "web",
        "-l",
        "kubectl-addons.dev/owner",
        "-o",
        "name",
    ];
    let left = plugin.kubectl(&left).await?.done()?.stdout;
    ensure!(left == "configmap/new\nconfigmap/shared\n", "{left}");
    let listed = plugin.run(&["list", "-o", "name"]).await?.done()?.stdout;
    ensure!(
        listed.contains("/shop") && !listed.contains("/web"),
        "{listed}"
    );

    // Without objects in common, both are there side by side.
    let said = plugin
        .run(&["upgrade", "blog", "--yes"])
        .await?
        .done()?
        .stderr;
    ensure!(said.contains("blog: shop has other objects"), "{said}");
    Ok(())
}
