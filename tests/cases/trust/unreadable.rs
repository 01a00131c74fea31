//! What cannot be read now is neither forgotten, nor does it stop the upgrade that would mend it.

use addons_tests::plugin::Plugin;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

fn secret(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{key: {value:?}}}\n---\n"
    )
}

/// A definition of Things in v1 and v2; those of v1 need a conversion as soon as only v2 is served.
fn definition(group: &str, both: bool, webhook: Option<&str>) -> String {
    let version = |name: &str, served: bool, storage: bool| {
        json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let conversion = match webhook {
        Some(url) => json!({"strategy": "Webhook",
            "webhook": {"clientConfig": {"url": url}, "conversionReviewVersions": ["v1"]}}),
        None => json!({"strategy": "None"}),
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [version("v1", both, both), version("v2", true, !both)],
            "conversion": conversion,
        },
    });
    format!("---\n{definition}\n---\n")
}

fn thing(group: &str, version: &str, name: &str) -> String {
    format!("apiVersion: {group}/{version}\nkind: Thing\nmetadata: {{name: {name}}}\n---\n")
}

/// A user who may do everything with what the add-on consists of, but not list Secrets.
async fn without_lists_of_secrets(stage: &Stage) -> Result<Plugin> {
    let name = format!("{}-limited", stage.namespace);
    let user = stage.cluster.user(&name, &[])?;
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            rule(&["kubectl-addons.dev", "apiextensions.k8s.io"], &["*"], &["*"]),
            rule(&[""], &["configmaps", "namespaces"], &["*"]),
            rule(&[""], &["secrets"], &["get", "create", "patch", "update", "delete"]),
        ],
    });
    stage.apply(&role.to_string()).await?;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}],
    });
    stage.apply(&binding.to_string()).await?;
    Ok(Plugin::new(&stage.cluster, &user.kubeconfig)?.system_namespace(&stage.namespace))
}

/// trust 13.
#[tokio::test]
async fn t13_without_the_right_to_list_objects_are_read_one_by_one() -> Result<()> {
    let stage = Stage::new("listless").await?;
    let limited = without_lists_of_secrets(&stage).await?;
    let set = |value: &str| {
        [
            secret("a", value),
            secret("b", value),
            config_map("settings", value),
        ]
        .concat()
    };
    let first = stage.index("first.yaml", &[("set", "1.0.0", &set("1"))])?;
    let second = stage.index("second.yaml", &[("set", "2.0.0", &set("2"))])?;
    let run = async |line: &str| -> Result<String> {
        let said = limited.run(&line.split(' ').collect::<Vec<_>>()).await?;
        Ok(said.done()?.stderr)
    };
    run(&format!("install set --channel {first} --yes")).await?;
    run(&format!("upgrade set --channel {second} --yes")).await?;
    let live = stage.must("secret", "b").await?;
    ensure!(live["data"]["key"] == "Mg==", "{live:#}");
    run("uninstall set --yes").await?;
    for name in ["a", "b"] {
        ensure!(
            !stage.has("secret", name).await?,
            "Secret {name} was left behind"
        );
    }
    Ok(())
}

/// trust 13.
#[tokio::test]
async fn t13_a_dead_conversion_webhook_does_not_stop_the_upgrade_that_mends_it() -> Result<()> {
    let stage = Stage::new("unconverted").await?;
    let group = format!("{}.example.test", stage.namespace);
    let things =
        |version: &str| [thing(&group, version, "a"), thing(&group, version, "b")].concat();
    let dead = Some("https://127.0.0.1:9/");
    let first = [
        definition(&group, true, dead),
        things("v1"),
        config_map("settings", "1"),
    ]
    .concat();
    let second = [
        definition(&group, false, None),
        things("v2"),
        config_map("settings", "2"),
    ]
    .concat();
    let index = stage.index("first.yaml", &[("set", "1.0.0", &first)])?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;

    // The version of the objects goes, and who would convert them does not answer.
    let replace = |version: usize, field: &str, value: bool| json!({"op": "replace", "path": format!("/spec/versions/{version}/{field}"), "value": value});
    let patch = json!([
        replace(0, "served", false),
        replace(0, "storage", false),
        replace(1, "storage", true),
    ]);
    let crd = format!("things.{group}");
    let args = [
        "patch",
        "crd",
        &crd,
        "--type=json",
        "-p",
        &patch.to_string(),
    ];
    stage.kubectl(&args).await?;
    let resource = format!("things.{group}");
    until("the objects cannot be read", async || {
        let args = ["get", &resource, "-n", &stage.namespace];
        let said = stage.plugin.kubectl(&args).await?;
        let is_broken = said.stderr.contains("conversion webhook");
        Ok(if is_broken {
            Ok(())
        } else {
            Err(said.stderr + &said.stdout)
        })
    })
    .await?;

    // Others learn what cannot be read, and nothing fails for it.
    let listed = stage.run("list").await?.done()?;
    ensure!(!listed.stdout.contains("is gone"), "{}", listed.stdout);
    let status = stage.run("status set").await?.done()?;
    ensure!(
        status.stdout.contains("cannot be read"),
        "{}",
        status.stdout
    );

    let index = stage.index("second.yaml", &[("set", "2.0.0", &second)])?;
    let line = format!("upgrade set --channel {index} --yes");
    let said = stage.run(&line).await?.done()?;
    ensure!(said.stderr.contains("cannot be read"), "{}", said.stderr);
    stage.must(&resource, "a").await?;
    let settings = stage.must("configmap", "settings").await?;
    ensure!(settings["data"]["key"] == "2", "{settings:#}");
    stage.run("uninstall set --yes").await?.done()?;
    ensure!(!stage.has(&resource, "a").await?, "it was left behind");
    Ok(())
}

/// trust 13.
#[tokio::test]
async fn t13_a_record_stays_while_objects_of_it_cannot_be_read() -> Result<()> {
    let stage = Stage::new("unreachable").await?;
    let group = format!("{}.example.test", stage.namespace);
    stage.apply(&definition(&group, true, None)).await?;
    let crd = format!("crd/things.{group}");
    stage
        .kubectl(&["wait", "--for=condition=Established", "--timeout=30s", &crd])
        .await?;
    let set = [thing(&group, "v2", "a"), config_map("settings", "1")].concat();
    let index = stage.index("index.yaml", &[("set", "1.0.0", &set)])?;
    stage
        .run(&format!("install set --channel {index} --yes"))
        .await?
        .done()?;

    // The server behind the group does not answer any more, as an aggregated API whose pods are gone.
    for version in ["v1", "v2"] {
        let name = format!("{version}.{group}");
        let dead = json!({
            "metadata": {"labels": {"kube-aggregator.kubernetes.io/automanaged": null}},
            "spec": {"service": {"name": "nobody", "namespace": stage.namespace}, "insecureSkipTLSVerify": true},
        });
        stage.patch("apiservice", &name, &dead).await?;
    }
    let resource = format!("things.{group}");
    until("the group is not available", async || {
        let args = ["get", "--raw", &format!("/apis/{group}/v2")];
        let said = stage.plugin.kubectl(&args).await?;
        let is_dead =
            said.stderr.contains("unavailable") || said.stderr.contains("unable to handle");
        Ok(if is_dead {
            Ok(())
        } else {
            Err(said.stderr + &said.stdout)
        })
    })
    .await?;
    // What was kept of discovery would hide it.
    std::fs::remove_dir_all(stage.plugin.home().join("cache")).context("no cache")?;

    let said = stage.run("uninstall set --yes").await?;
    ensure!(said.code != 0, "{}", said.stderr);
    for part in ["Thing a", "--keep"] {
        ensure!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    let record = stage.record("set").await?;
    ensure!(
        record["status"]["inventory"].to_string().contains("Thing"),
        "{record:#}"
    );
    ensure!(
        !stage.has("configmap", "settings").await?,
        "what can be read stays"
    );

    for version in ["v1", "v2"] {
        let name = format!("{version}.{group}");
        stage.delete("apiservice", &name).await?;
    }
    until("the group is served again", async || {
        let args = ["get", &resource, "-n", &stage.namespace];
        let said = stage.plugin.kubectl(&args).await?;
        Ok(if said.code == 0 {
            Ok(())
        } else {
            Err(said.stderr)
        })
    })
    .await?;
    stage.run("uninstall set --yes").await?.done()?;
    ensure!(!stage.has(&resource, "a").await?, "it was left behind");
    ensure!(
        !stage.has("addoninstallation", "set").await?,
        "the record stays"
    );
    Ok(())
}
