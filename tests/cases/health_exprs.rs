//! Health checks of an entry decide when its objects are ready, in every command alike; and an entry whose expression does not hold for the
//! cluster is rejected with the reason.

use addons_tests::stage::Stage;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// A catalogue of one add-on whose only custom resource has a health check as Flux's library writes them.
fn version(stage: &Stage) -> Value {
    let group = format!("{}.example.test", stage.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("tanks.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "tanks", "singular": "tank", "kind": "Tank"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let tank = json!({"apiVersion": format!("{group}/v1"), "kind": "Tank", "metadata": {"name": "a"}, "spec": {"size": 1}});
    json!({
        "version": "1.0.0",
        "source": {"inline": {"manifest": format!("{definition}\n---\n{tank}\n")}},
        "healthCheckExprs": [{"apiVersion": format!("{group}/v1"), "kind": "Tank",
            "failed": "status.conditions.filter(e, e.type == 'Filled').all(e, e.status == 'False')",
            "current": "status.conditions.filter(e, e.type == 'Filled').all(e, e.status == 'True')"}],
    })
}

/// What the controller of the kind reports.
fn filled(status: &str, reason: &str) -> Value {
    json!({"conditions": [{"type": "Filled", "status": status, "reason": reason}]})
}

async fn report(stage: &Stage, status: &Value) -> Result<()> {
    let kind = format!("tanks.{}.example.test", stage.namespace);
    until("the tank", async || {
        let is_there = stage.has(&kind, "a").await.unwrap_or(false);
        Ok(is_there.then_some(()).ok_or_else(String::new))
    })
    .await?;
    stage.patch_status(&kind, "a", status).await
}

/// Without the expressions, the tank would be ready at once: it has no condition that the general rules know.
#[tokio::test]
async fn a_health_check_decides_in_every_command() -> Result<()> {
    let stage = Stage::new("health").await?;
    let catalogue = stage.catalogue("tanks", &version(&stage))?;
    let install = format!("install tanks --channel {} --yes", catalogue.display());
    let said = stage.run(&format!("{install} --timeout 5s")).await?;
    let said = said.ended(3)?.stderr;
    ensure!(said.contains("status does not exist"), "{said}");

    let installing = format!("{install} --timeout 60s");
    let sent = filled("True", "Full");
    let (said, reported) = tokio::join!(stage.run(&installing), report(&stage, &sent));
    reported?;
    said?.done()?;
    let record = stage.record("tanks").await?;
    let recorded = &record["status"]["installed"]["healthCheckExprs"][0]["kind"];
    ensure!(recorded == "Tank", "{record:#}");

    // The catalogue is not read again: the record has the expressions.
    std::fs::remove_file(&catalogue)?;
    let line = format!("list -n {} -o json", stage.namespace);
    for (status, standing, why) in [
        (filled("False", "Leaks"), "Degraded", "failed: Leaks"),
        (
            json!({"conditions": null}),
            "Degraded",
            "conditions does not exist",
        ),
        (filled("True", "Full"), "Ready", ""),
    ] {
        report(&stage, &status).await?;
        let listed = stage.run(&line).await?;
        let listed: Value = serde_json::from_str(&listed.stdout)?;
        let listed = listed.to_string();
        ensure!(
            listed.contains(standing) && listed.contains(why),
            "{listed}"
        );
        let shown = stage.run("status tanks").await?.stdout;
        ensure!(shown.contains(why), "{shown}");
    }
    Ok(())
}

#[tokio::test]
async fn a_failed_expression_ends_the_wait_with_the_reason() -> Result<()> {
    let stage = Stage::new("health-failed").await?;
    let catalogue = stage.catalogue("tanks", &version(&stage))?;
    let install = format!(
        "install tanks --channel {} --yes --timeout 60s",
        catalogue.display()
    );
    let sent = filled("False", "Leaks");
    let (said, reported) = tokio::join!(stage.run(&install), report(&stage, &sent));
    reported?;
    let said = said?.ended(1)?.stderr;
    ensure!(said.contains("failed: Leaks"), "{said}");
    // Nothing was installed before: the expressions are those of the failed operation.
    let shown = stage.run("status tanks").await?.stdout;
    ensure!(shown.contains("failed: Leaks"), "{shown}");
    Ok(())
}

#[tokio::test]
async fn a_rejected_entry_is_explained() -> Result<()> {
    let stage = Stage::new("constraint").await?;
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let entry = |expression: &str| {
        json!({"version": "1.0.0", "source": {"inline": {"manifest": manifest.to_string()}},
            "constraints": {"expression": expression}})
    };
    let expression = "'Certificate.cert-manager.test' in kinds";
    let catalogue = stage.catalogue("certs", &entry(expression))?;
    let channel = format!("--channel {}", catalogue.display());
    let why = format!("constraints.expression {expression} is false");
    for (line, code) in [
        (format!("search {channel}"), 0),
        (format!("show certs {channel}"), 5),
        (format!("install certs {channel} --yes"), 5),
    ] {
        let said = stage.run(&line).await?.ended(code)?;
        let said = said.stdout + &said.stderr;
        ensure!(said.contains(&why), "{line}: {said}");
    }
    // Of a typed version, no fact is read.
    let said = stage
        .run(&format!("search {channel} --k8s 1.36.3 -o json"))
        .await?
        .done()?;
    let found: Value = serde_json::from_str(&said.stdout)?;
    ensure!(found["items"][0]["fits"] == true, "{found:#}");

    let wrong = stage.catalogue("wrong", &entry("kinds.exist(kind, kind == 'a')"))?;
    let said = stage
        .run(&format!("catalogue validate {}", wrong.display()))
        .await?
        .ended(1)?;
    let said = said.stdout + &said.stderr;
    ensure!(
        said.contains("constraints.expression: there is no function exist"),
        "{said}"
    );

    // Facts are read only where an entry has an expression, and only those that it names.
    let plain = stage.catalogue("plain", &entry(""))?;
    let nodes = stage.catalogue("nodes", &entry("'no-such-label' in nodeLabels"))?;
    for (catalogue, reads_nodes) in [(&plain, false), (&nodes, true)] {
        let mark = stage.cluster.audit().mark()?;
        stage
            .run(&format!("search --channel {}", catalogue.display()))
            .await?
            .done()?;
        let requests = stage.requests(mark)?;
        let asked = requests
            .0
            .iter()
            .any(|request| request.object.resource == "nodes");
        ensure!(
            asked == reads_nodes,
            "{}: {requests:?}",
            catalogue.display()
        );
    }
    ensure!(stage.record("certs").await.is_err(), "it is installed");
    Ok(())
}
