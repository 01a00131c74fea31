//! A custom resource whose definition comes with it is judged before the first write.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};

/// A definition of kind Thing in a group of the user's own.
pub fn definition(stage: &Stage) -> String {
    let group = format!("{}.example.test", stage.namespace);
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{kind: Thing, plural: things, singular: thing}}\n  versions:\n  \
         - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
         properties:\n          spec:\n            type: object\n            required: [size]\n            properties:\n              \
         size: {{type: integer, minimum: 1}}\n              colour: {{type: string, enum: [red, blue]}}\n---\n"
    )
}

/// The definition, and a Thing with this spec.
pub fn set(stage: &Stage, spec: &str) -> String {
    let group = format!("{}.example.test", stage.namespace);
    let thing =
        format!("apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: a}}\nspec: {spec}\n---\n");
    [&*definition(stage), &*thing, &*config_map("plain", "1")].concat()
}

#[tokio::test]
async fn a_wrong_custom_resource_is_refused_before_the_first_write() -> Result<()> {
    let stage = Stage::new("plan-schema").await?;
    stage.run("init").await?.done()?;
    let wrong = set(&stage, "{size: 0, colour: green, sise: 1}");
    let index = stage.index("wrong/index.yaml", &[("things", "1.0.0", &wrong)])?;
    for line in [
        format!("install things --channel {index} --yes"),
        format!("diff things --channel {index}"),
    ] {
        let mark = stage.cluster.audit().mark()?;
        let refused = stage.run(&line).await?;
        let code = if line.starts_with("diff") { 2 } else { 1 };
        let refused = refused.ended(code)?;
        for said in [
            "things-1.0.0-0.yaml:",
            "Thing a: spec.size must be at least 1, not 0",
            r#"Thing a: spec.colour must be one of "red", "blue", not "green""#,
        ] {
            ensure!(
                refused.stderr.contains(said),
                "{said:?} is not in\n{}",
                refused.stderr
            );
        }
        let requests = stage.requests(mark)?;
        ensure!(requests.writes("kubectl-addons") == 0, "{requests:?}");
    }

    // What the schema takes, the API server takes; it says no less of the same wrong one.
    let right = set(&stage, "{size: 1, colour: red}");
    let index = stage.index("right/index.yaml", &[("things", "1.0.0", &right)])?;
    let shown = stage
        .run(&format!("diff things --channel {index}"))
        .await?
        .ended(1)?;
    ensure!(
        shown.stdout.contains("Thing a")
            && shown
                .stdout
                .contains("not checked by the server: 1 object, kind Thing is not defined yet"),
        "{}",
        shown.stdout
    );
    ensure!(
        shown
            .stdout
            .ends_with("0 changed, 3 added, 0 pruned, 0 unchanged\n"),
        "{}",
        shown.stdout
    );
    let line = format!("install things --channel {index} --yes");
    stage.run(&line).await?.done()?;
    let edit = serde_json::json!({"spec": {"size": 0, "colour": "green"}});
    let refused = stage.patch("thing", "a", &edit).await;
    ensure!(refused.is_err(), "the API server takes what we refuse");
    Ok(())
}
