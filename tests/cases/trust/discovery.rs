//! What was kept of discovery may be old: a version that is new or gone is asked for once more.

use addons_tests::stage::Stage;
use anyhow::{Result, ensure};

fn definition(group: &str, served: &str, other: &str) -> String {
    let version = |name: &str, served: bool| {
        format!(
            "  - {{name: {name}, served: {served}, storage: {served}, schema: {{openAPIV3Schema: {{type: object, \
             x-kubernetes-preserve-unknown-fields: true}}}}}}\n"
        )
    };
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{plural: things, singular: thing, kind: Thing}}\n  versions:\n{}{}",
        version(served, true),
        version(other, false)
    )
}

/// trust 10.
#[tokio::test]
async fn t10_versions_that_came_and_went_are_noticed() -> Result<()> {
    let stage = Stage::new("versions").await?;
    let group = format!("{}.example.test", stage.namespace);
    let thing = |version: &str, name: &str| {
        format!("apiVersion: {group}/{version}\nkind: Thing\nmetadata: {{name: {name}}}\n")
    };
    let index = stage.index(
        "index.yaml",
        &[
            ("old", "1.0.0", &thing("v1", "first")),
            ("new", "1.0.0", &thing("v2", "second")),
        ],
    )?;
    stage.apply(&definition(&group, "v1", "v2")).await?;
    let established = ["wait", "--for=condition=Established", "--timeout=30s"];
    let name = format!("customresourcedefinition/things.{group}");
    stage
        .kubectl(&[&established[..], &[&name]].concat())
        .await?;
    stage
        .run(&format!("install old --channel {index} --yes"))
        .await?
        .done()?;

    // The cluster was upgraded: v2 instead of v1, which the program kept in its cache.
    stage.apply(&definition(&group, "v2", "v1")).await?;
    let things = format!("things.{group}");
    addons_tests::until::until("v2 is served", async || {
        let path = format!("/apis/{group}/v2");
        let found = stage.plugin.kubectl(&["get", "--raw", &path]).await?;
        Ok(if found.stdout.contains("things") {
            Ok(())
        } else {
            Err(found.stderr)
        })
    })
    .await?;
    stage
        .run(&format!("install new --channel {index} --yes"))
        .await?
        .done()?;
    ensure!(stage.has(&things, "second").await?, "v2 was not applied");
    // Nothing is forgotten: the object is deleted in the version that there is.
    stage.run("uninstall old --yes").await?.done()?;
    ensure!(
        !stage.has(&things, "first").await?,
        "the object of v1 was left behind"
    );
    Ok(())
}
