//! Programs run as a user runs them: a private home, their own user, exit code and cost.

use addons_tests::control_plane::{ControlPlane, unique};
use addons_tests::plugin::Plugin;
use anyhow::Result;

#[tokio::test]
async fn kubectl_runs_as_the_user_with_its_cost() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let namespace = cluster.namespace("harness-plugin").await?;
    let user = cluster.user(&unique("runner"), &["system:masters"])?;
    let plugin = Plugin::new(&cluster, &user.kubeconfig)?;

    let mark = cluster.audit().mark()?;
    let map =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m, namespace: {namespace}}}\n");
    let created = plugin
        .kubectl_with_input(&["create", "-f", "-"], &map)
        .await?
        .done()?;
    assert_eq!(created.stdout, "configmap/m created\n");
    assert!(created.max_rss > 1 << 20, "{created:?}");
    assert!(
        !created.cpu.is_zero() && created.elapsed >= created.cpu / 64,
        "{created:?}"
    );
    assert_eq!(
        cluster
            .audit()
            .since(mark)?
            .by(&user.name)
            .count("create", ""),
        1
    );

    let missing = plugin
        .kubectl(&["get", "configmap", "none", "-n", &namespace])
        .await?;
    assert_eq!((missing.code, missing.stdout.as_str()), (1, ""));
    assert!(missing.stderr.contains("NotFound"), "{missing:?}");
    assert!(missing.ended(1).is_ok());
    Ok(())
}

#[tokio::test]
async fn kubectl_finds_the_plugin_on_the_path() -> Result<()> {
    let cluster = ControlPlane::shared().await?;
    let listed = Plugin::admin(&cluster)?
        .kubectl(&["plugin", "list"])
        .await?;
    let ours = listed
        .stdout
        .lines()
        .filter(|line| line.ends_with("/bin/kubectl-addons"));
    assert_eq!(ours.count(), 1, "{listed:?}");
    Ok(())
}
