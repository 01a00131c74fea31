//! Nodes that an update asks to replace.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::Value;

use super::{Entry, index, recorded_by_kops};

const MARK: &str = "kops.k8s.io/needs-update";

/// Nodes of the control plane, as kops labels them today and as it did before 1.24, and a worker; nothing runs there.
async fn nodes(stage: &Stage) -> Result<[String; 3]> {
    let labels = ["control-plane", "master", "node"];
    let names = labels.map(|label| format!("{}-{label}", stage.namespace));
    for (name, label) in names.iter().zip(labels) {
        let node = format!(
            "apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n  labels: {{node-role.kubernetes.io/{label}: ''}}\n\
             spec: {{unschedulable: true}}\n"
        );
        stage.apply(&node).await?;
    }
    Ok(names)
}

/// Which of the nodes are marked; the marks are removed.
async fn marked(stage: &Stage, nodes: &[String]) -> Result<Vec<bool>> {
    let mut marked = Vec::new();
    for node in nodes {
        let live: Value = stage.must("node", node).await?;
        marked.push(live["metadata"]["annotations"].get(MARK).is_some());
        let gone = format!("{MARK}-");
        stage
            .plugin
            .kubectl(&["annotate", "node", node, &gone])
            .await?
            .done()?;
    }
    Ok(marked)
}

/// Only an update of an add-on that kops has recorded marks nodes, and those of the role that the entry names.
#[tokio::test]
async fn an_update_marks_the_nodes_of_its_role() -> Result<()> {
    let stage = Stage::new("kops-nodes").await?;
    let nodes = nodes(&stage).await?;
    for (i, (recorded, role, expected)) in [
        ("addons.k8s.io/same", "all", [false, false, false]),
        ("addons.k8s.io/other-hash", "all", [true, true, true]),
        ("addons.k8s.io/other-hash", "workers", [false, false, true]),
        (
            "addons.k8s.io/other-hash",
            "control-plane",
            [true, true, false],
        ),
        ("addons.k8s.io/missing", "all", [false, false, false]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("test-{i}");
        let manifest = config_map(&name, "1");
        let field = format!("needsRollingUpdate: {role}");
        let entry = Entry {
            name: &name,
            fields: &[&field],
            manifest: &manifest,
        };
        let hash = entry.hash();
        let channel = index(&stage, &format!("{i}.yaml"), &[entry])?;
        match recorded {
            "addons.k8s.io/same" => {
                let text = format!(r#"{{"manifestHash":"{hash}","systemGeneration": 1}}"#);
                recorded_by_kops(&stage, &name, &text).await?;
            }
            "addons.k8s.io/other-hash" => {
                let text = r#"{"manifestHash":"originalHash","systemGeneration": 1}"#;
                recorded_by_kops(&stage, &name, text).await?;
            }
            _ => {
                let text = r#"{"manifestHash":"originalHash","systemGeneration": 1}"#;
                recorded_by_kops(&stage, "placeholder", text).await?;
            }
        }
        stage
            .run(&format!("channel apply {channel} --yes"))
            .await?
            .done()?;
        let found = marked(&stage, &nodes).await?;
        ensure!(found == expected, "{recorded}, {role}: {found:?}");
    }
    stage
        .plugin
        .kubectl(&["delete", "node", &nodes[0], &nodes[1], &nodes[2]])
        .await?
        .done()
        .map(drop)
}
