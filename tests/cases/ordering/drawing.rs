//! `plan -o dot` and `plan -o mermaid`: the order, drawn.

use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::json;

use super::{annotated, config_map, deployment, manifest};

#[tokio::test]
async fn the_order_is_drawn_with_its_reasons() -> Result<()> {
    let stage = Stage::new("drawn").await?;
    let namespace = stage.namespace.clone();
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}});
    let mut web = deployment("web", &["web"]);
    web["spec"]["template"]["spec"]["serviceAccountName"] = json!("web");
    let web = manifest(&[web, config_map("web"), account]);
    let after = annotated(
        config_map("after"),
        "config.kubernetes.io/depends-on",
        &format!("apps/namespaces/{namespace}/Deployment/web"),
    );
    let addons = [
        ("web", "1.0.0", web.as_str()),
        ("after", "1.0.0", &manifest(&[after])),
    ];
    let index = stage.index("index.yaml", &addons)?;
    let node = |key: &str| format!("{namespace}/{key}");
    let (account, config) = (node("ServiceAccount web"), node("ConfigMap web"));
    let (workload, after) = (node("Deployment web"), node("ConfigMap after"));
    let edges = [
        (&account, "reference", &workload),
        (&config, "reference", &workload),
        (&workload, "depends-on", &after),
    ];
    for (format, parts) in [
        ("dot", ["label=\"web\"", "label=\"after\""]),
        ("mermaid", ["[\"web\"]", "[\"after\"]"]),
    ] {
        let line = format!("plan web after -n {namespace} --channel {index} -o {format}");
        let mark = stage.cluster.audit().mark()?;
        let drawn = stage.run(&line).await?.done()?.stdout;
        let again = stage.run(&line).await?.done()?.stdout;
        ensure!(drawn == again, "{drawn}\nand then\n{again}");
        let turned = line.replace("web after", "after web");
        let turned = stage.run(&turned).await?.done()?.stdout;
        let writes = stage.requests(mark)?.writes("kubectl-addons");
        ensure!(writes == 0, "{writes} writes");
        for drawn in [&drawn, &turned] {
            ensure!(parts.iter().all(|part| drawn.contains(part)), "{drawn}");
            let mut found = self::edges(drawn, format);
            found.sort();
            let mut expected: Vec<_> = edges
                .iter()
                .map(|(from, why, to)| [from.as_str(), why, to.as_str()].map(str::to_owned))
                .collect();
            expected.sort();
            ensure!(
                found == expected,
                "{found:?} instead of {expected:?}\n{drawn}"
            );
        }
    }
    Ok(())
}

/// The edges of a drawing: from, why, to, with the labels of the nodes.
fn edges(drawn: &str, format: &str) -> Vec<[String; 3]> {
    let lines = || drawn.lines().map(|line| line.trim().trim_end_matches(';'));
    let label = |id: &str| {
        let mut lines = lines();
        let named = lines.find_map(|line| {
            let rest = line.strip_prefix(id)?;
            let text = match format {
                "dot" => rest.strip_prefix(" [label=\"")?,
                _ => rest.strip_prefix("[\"")?,
            };
            text.split('"').next()
        });
        named.unwrap_or_default().to_owned()
    };
    let edges = lines().filter_map(|line| {
        let (from, why, to) = match format {
            "dot" => {
                let (from, rest) = line.split_once(" -> ")?;
                let (to, why) = rest.split_once(" [label=\"")?;
                (from, why.trim_end_matches("\"]"), to)
            }
            _ => {
                let (from, rest) = line.split_once(" -->|")?;
                let (why, to) = rest.split_once("| ")?;
                (from, why, to)
            }
        };
        Some([label(from), why.to_owned(), label(to)])
    });
    edges.collect()
}
