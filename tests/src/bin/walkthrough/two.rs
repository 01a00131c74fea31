//! Two clusters: catalogues for both, core add-ons in both, and the end of one of them.

use std::fs;

use addons_tests::control_plane::ControlPlane;
use anyhow::Result;

use super::DATA;
use super::shell::{End, Shell, Who};

/// What is copied into the home of both users, so that commands name files as one types them.
const FILES: [&str; 5] = [
    "core.yaml",
    "logging.yaml",
    "backup.yaml",
    "core-set.yaml",
    "fewer.yaml",
];

/// The other cluster is brought under the first one, and deleted at the end where it is not to be kept.
pub(crate) async fn fleet(shell: &mut Shell, shop: &ControlPlane, keep: bool) -> Result<()> {
    for home in [shell.admin.home(), shell.core_team.home()] {
        for file in FILES {
            fs::copy(format!("{DATA}/clusters/{file}"), home.join(file))?;
        }
        fs::copy(shop.kubeconfig(), home.join("shop.kubeconfig"))?;
    }
    stand(shell).await?;
    distribute(shell).await?;
    install(shell).await?;
    deny(shell).await?;
    release(shell).await?;
    if !keep {
        delete(shell).await?;
    }
    Ok(())
}

/// The definitions there, and a namespace here that stands for it.
async fn stand(shell: &mut Shell) -> Result<()> {
    shell.title("A second cluster: a namespace here stands for it, and holds its kubeconfig")?;
    admin(shell, "addons init --kubeconfig shop.kubeconfig").await?;
    admin(shell, "create namespace shop").await?;
    let secret =
        "create secret generic shop-admin --namespace shop --from-file kubeconfig=shop.kubeconfig";
    admin(shell, secret).await?;
    let label = "label namespace shop tier=shop kubectl-addons.dev/kubeconfig-secret=shop-admin";
    admin(shell, label).await
}

/// Three catalogues here, merged there.
async fn distribute(shell: &mut Shell) -> Result<()> {
    shell.title(
        "Two catalogues of core add-ons, which only the core group writes, and another one",
    )?;
    let add = "addons catalogue add core.yaml";
    let denied = End::Failed("changed only by group kubectl-addons:core");
    shell.line(&Who::Admin, add, &denied).await?;
    core_team(shell, add).await?;
    core_team(shell, "addons catalogue add logging.yaml").await?;
    admin(shell, "addons catalogue add backup.yaml").await?;
    admin(shell, "addons catalogue view --core").await?;

    shell.title("Of kube-proxy, each version of Kubernetes gets its own")?;
    for version in ["1.34.6", "1.35.4"] {
        let list = format!("addons list --available --core --k8s {version}");
        admin(shell, &list).await?;
    }
    admin(shell, "addons list --available --core --for-cluster shop").await?;

    shell.title(
        "Distribution: merged, with the source of each entry; a second run writes nothing",
    )?;
    let push = "addons catalogue push --clusters tier=shop";
    admin(shell, push).await?;
    admin(shell, push).await?;
    let there = "addons catalogue list --core --kubeconfig shop.kubeconfig";
    admin(shell, there).await
}

/// Rules and a list decide, and one run of the loop does it.
async fn install(shell: &mut Shell) -> Result<()> {
    shell.title("The core set: what rules and list name is installed in each cluster")?;
    core_team(shell, "apply --filename core-set.yaml").await?;
    core_team(shell, "addons reconcile").await?;
    admin(shell, "addons core list").await?;
    admin(shell, "addons core explain node-limits").await?;
    let there = "get daemonset,limitrange --namespace kube-system --kubeconfig shop.kubeconfig";
    admin(shell, there).await
}

/// Not even an administrator deletes them.
async fn deny(shell: &mut Shell) -> Result<()> {
    shell.title("Denied: the deletion of a core add-on, and of the namespace that holds it")?;
    for (line, words) in [
        (
            "delete addoninstallation kube-proxy --namespace shop",
            "kube-proxy is a core add-on of this cluster",
        ),
        (
            "delete namespace shop",
            "namespace shop holds 3 core add-ons",
        ),
    ] {
        shell.line(&Who::Admin, line, &End::Denied(words)).await?;
    }
    Ok(())
}

/// What is not listed any more is uninstalled; where that concerns several clusters, a person confirms it.
async fn release(shell: &mut Shell) -> Result<()> {
    shell.title(
        "Release: log-shipper is no longer listed; for several clusters a person confirms",
    )?;
    core_team(shell, "apply --filename fewer.yaml").await?;
    core_team(shell, "addons reconcile").await?;
    admin(shell, "addons core list").await?;
    core_team(shell, "addons core release log-shipper --namespace shop").await?;
    core_team(
        shell,
        "addons core release log-shipper --namespace kubectl-addons",
    )
    .await?;
    core_team(shell, "addons reconcile").await?;
    admin(shell, "addons core list").await
}

/// The namespace goes with its records; nothing is uninstalled there.
async fn delete(shell: &mut Shell) -> Result<()> {
    shell.title(
        "The end of a cluster: its namespace is marked, and goes; the cluster is not asked",
    )?;
    let mark = "addons core release --cluster-deleting --namespace shop";
    core_team(shell, mark).await?;
    admin(shell, "delete namespace shop").await?;
    admin(shell, "addons list --core").await?;
    let there = "get daemonset kube-proxy --namespace kube-system --kubeconfig shop.kubeconfig";
    admin(shell, there).await
}

async fn admin(shell: &mut Shell, line: &str) -> Result<()> {
    shell.line(&Who::Admin, line, &End::Done).await.map(drop)
}

async fn core_team(shell: &mut Shell, line: &str) -> Result<()> {
    shell.line(&Who::CoreTeam, line, &End::Done).await.map(drop)
}
