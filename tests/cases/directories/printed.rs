//! `sync -o json`: what is due, on stdout, and then it is done.

use addons_tests::plugin::Output;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Directory;

#[tokio::test]
async fn what_is_due_is_printed_for_programs() -> Result<()> {
    let directory = Directory::new("printed").await?;
    let stage = &directory.stage;
    let row = |name: &str, verb: &str, objects: Value| json!({"namespace": stage.namespace, "name": name, "verb": verb, "objects": objects});
    let read = |said: Output| -> Result<Value> { Ok(serde_json::from_str(&said.stdout)?) };
    for name in ["dns", "gone", "web"] {
        directory.write(&format!("{name}.yaml"), &directory.reconciled(name, "1"))?;
    }
    let rows = ["dns", "gone", "web"].map(|name| row(name, "install", json!({"create": 1})));
    let due = json!({"items": rows});
    for flags in ["--dry-run -o json", "--yes -o json"] {
        let said = stage.run(&directory.line(flags)).await?.done()?;
        ensure!(read(said.clone())? == due, "{flags}: {}", said.stdout);
    }
    ensure!(directory.installed().await? == ["dns", "gone", "web"]);

    directory.write("dns.yaml", &directory.reconciled("dns", "2"))?;
    let more = directory.reconciled("web", "1") + &directory.reconciled("web-more", "1");
    directory.write("web.yaml", &more)?;
    directory.remove("gone.yaml")?;
    let said = stage
        .run(&directory.line("--dry-run -o name"))
        .await?
        .done()?;
    ensure!(
        said.stdout
            == ["dns", "web", "gone"]
                .map(|name| format!("addoninstallation.kubectl-addons.dev/{name}\n"))
                .concat(),
        "{}",
        said.stdout
    );
    let said = stage.run(&directory.line("--yes -o json")).await?.done()?;
    let due = json!({"items": [
        row("dns", "upgrade", json!({"update": 1})),
        row("web", "upgrade", json!({"create": 1})),
        row("gone", "uninstall", json!({"prune": 1})),
    ]});
    ensure!(read(said.clone())? == due, "{}", said.stdout);

    // What a file may define that cannot be read stays: that is due, and the error is on stderr. Then nothing is.
    directory.write("web.yaml", "{")?;
    let stays = json!({"items": [row("web", "upgrade", json!({"retain": 2}))]});
    for due in [stays, json!({"items": []})] {
        let said = stage
            .run(&directory.line("--yes -o json"))
            .await?
            .ended(1)?;
        ensure!(said.stderr.contains("web.yaml"), "{}", said.stderr);
        ensure!(read(said.clone())? == due, "{}", said.stdout);
    }
    let said = stage.run(&directory.line("--watch --yes -o json")).await?;
    ensure!(said.code == 2, "{}", said.stderr);
    Ok(())
}
