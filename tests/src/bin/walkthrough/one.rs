//! One cluster: an add-on from its first version to its end, or a kops index.

use anyhow::Result;
use common::api::names;

use super::DATA;
use super::shell::{End, Shell, Who};

/// The add-on of the built-in catalogue that goes through its whole life.
const ADDON: &str = "snapshot-scheduler";
/// The one that becomes a core add-on.
const CORE: &str = "node-limits";

/// The built-in catalogue, and what is denied meanwhile.
pub(crate) async fn catalogue(shell: &mut Shell, keep: bool) -> Result<()> {
    let data = |file: &str| format!("{DATA}/{file}");
    shell.title("A catalogue, and what of it fits this cluster")?;
    shell
        .addons(&["catalogue", "add", &data("catalogue.yaml")])
        .await?;
    shell.addons(&["search"]).await?;
    shell.addons(&["show", ADDON]).await?;

    shell.title(
        "Install: a CRD, its custom resource, RBAC and a Deployment that really rolls out",
    )?;
    shell
        .addons(&["install", &format!("{ADDON}@1.0.0"), "--yes"])
        .await?;
    shell.addons(&["list"]).await?;
    shell.addons(&["status", ADDON]).await?;

    shell.title("Upgrade: one object changes, two go away, nothing else is written")?;
    shell
        .kubectl(&Who::Admin, &["addons", "diff", ADDON], &End::Code(1))
        .await?;
    shell.addons(&["upgrade", ADDON, "--yes"]).await?;
    let gone = [
        "get",
        "poddisruptionbudget",
        ADDON,
        "--namespace",
        "snapshots",
    ];
    shell
        .kubectl(&Who::Admin, &gone, &End::Failed("NotFound"))
        .await?;
    shell.addons(&["upgrade"]).await?;

    shell.title("Denied: v1.0.0 beside 1.0.0 in one catalogue")?;
    let file = data("duplicate.yaml");
    let denied = End::Denied("already at spec.addons[0].versions[0]");
    shell
        .kubectl(&Who::Admin, &["apply", "--filename", &file], &denied)
        .await?;

    shell.title("Denied: the deletion of a core add-on")?;
    let install = ["addons", "install", CORE, "--core", "--yes"];
    shell.kubectl(&Who::CoreTeam, &install, &End::Done).await?;
    let delete = [
        "delete",
        "addoninstallation",
        CORE,
        "--namespace",
        names::SYSTEM_NAMESPACE,
    ];
    shell
        .kubectl(&Who::Admin, &delete, &End::Denied("core add-on"))
        .await?;

    if !keep {
        shell.title("Uninstall")?;
        shell.addons(&["uninstall", ADDON, "--yes"]).await?;
        shell.addons(&["list", "--core"]).await?;
    }
    Ok(())
}

/// Any kops index, without waiting.
pub(crate) async fn index(shell: &mut Shell, index: &str, keep: bool) -> Result<()> {
    shell.title("A kops index")?;
    shell.addons(&["search", "--channel", index]).await?;
    shell
        .addons(&["channel", "apply", index, "--yes", "--wait=false"])
        .await?;
    shell.addons(&["list", "--core"]).await?;
    shell.title("Again: nothing is due")?;
    shell
        .addons(&["channel", "apply", index, "--yes", "--wait=false"])
        .await?;
    if !keep {
        shell.title("Uninstall")?;
        let list = shell
            .admin
            .run(&["list", "--output", "name"])
            .await?
            .done()?;
        for installation in list.stdout.lines() {
            let name = installation.rsplit('/').next().unwrap_or(installation);
            shell
                .addons(&["uninstall", name, "--yes", "--wait=false"])
                .await?;
        }
    }
    Ok(())
}
