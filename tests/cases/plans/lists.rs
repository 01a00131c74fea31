//! Items of lists by what the API server merges them by, of built-in kinds and of others; descriptions of schemas as a count.

use addons_tests::stage::Stage;
use anyhow::{Result, ensure};

/// A definition with a list by an unusual key and a set, and an object of it.
fn thing(group: &str, description: &str, object: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.{group}}}\nspec:\n  \
         group: {group}\n  scope: Namespaced\n  names: {{kind: Thing, plural: things}}\n  versions:\n  - name: v1\n    served: true\n    \
         storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        description: {description}\n        \
         properties:\n          spec:\n            type: object\n            description: {description}\n            properties:\n              \
         routes:\n                type: array\n                x-kubernetes-list-type: map\n                \
         x-kubernetes-list-map-keys: [host, path]\n                items:\n                  type: object\n                  \
         required: [host, path]\n                  properties: {{host: {{type: string}}, path: {{type: string}}, to: {{type: string}}}}\n              \
         zones: {{type: array, x-kubernetes-list-type: set, items: {{type: string}}}}\n              \
         words: {{type: array, items: {{type: string}}}}\n---\napiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: one}}\n\
         spec: {object}\n---\n"
    )
}

fn pod_template(env: &str, spread: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  selector: {{matchLabels: {{app: web}}}}\n  template:\n    \
         metadata: {{labels: {{app: web}}}}\n    spec:\n      topologySpreadConstraints: [{spread}]\n      \
         containers: [{{name: main, image: 'example.test/web:1', env: [{env}]}}]\n---\n"
    )
}

fn spread(key: &str, skew: u8) -> String {
    format!(
        "{{topologyKey: {key}, whenUnsatisfiable: ScheduleAnyway, maxSkew: {skew}, labelSelector: {{matchLabels: {{app: web}}}}}}"
    )
}

#[tokio::test]
async fn items_have_the_names_that_the_server_merges_them_by() -> Result<()> {
    let stage = Stage::new("lists").await?;
    let namespace = &stage.namespace;
    let group = format!("{namespace}.example.com");
    let one = thing(
        &group,
        "old",
        "{routes: [{host: a, path: /, to: p}, {host: b, path: /, to: p}], zones: [one, two], words: [p, q]}",
    );
    let two = thing(
        &group,
        "new",
        "{routes: [{host: b, path: /, to: q}, {host: a, path: /, to: p}], zones: [two, three], words: [q]}",
    );
    let (zone, node) = ("topology.kubernetes.io/zone", "kubernetes.io/hostname");
    let before = pod_template(
        "{name: A, value: '1'}, {name: B, value: '1'}",
        &[spread(zone, 1), spread(node, 1)].join(", "),
    );
    let after = pod_template(
        "{name: B, value: '2'}, {name: A, value: '1'}",
        &[spread(node, 2), spread(zone, 1)].join(", "),
    );
    let first = stage.index("1/index.yaml", &[("web", "1.0.0", &[one, before].concat())])?;
    let second = stage.index("2/index.yaml", &[("web", "1.1.0", &[two, after].concat())])?;
    let install = format!("install web --channel {first} --yes");
    stage.run(&install).await?.done()?;

    let diff = format!("diff web --channel {second}");
    let said = stage.run(&diff).await?.ended(1)?.stdout;
    let template = "spec.template.spec";
    let spreads =
        format!("{template}.topologySpreadConstraints[{node}/ScheduleAnyway].maxSkew 1 → 2");
    for line in [
        "spec.routes[b//].to p → q",
        "spec.zones[one] one → (none)",
        "spec.zones[three] (none) → three",
        // The first item is removed; the other one only moves.
        "spec.words[0] p → (none)",
        &format!("{template}.containers[main].env[B].value 1 → 2"),
        &spreads,
        "2 descriptions changed",
    ] {
        let is_said = said
            .lines()
            .any(|it| it.split_whitespace().collect::<Vec<_>>().join(" ") == line);
        ensure!(is_said, "not said: {line}\n{said}");
    }
    ensure!(
        !said.contains("openAPIV3Schema") && !said.contains("routes[a"),
        "{said}"
    );

    let wide = stage
        .run(&format!("{diff} -o wide"))
        .await?
        .ended(1)?
        .stdout;
    ensure!(
        wide.contains("openAPIV3Schema.properties.spec.description"),
        "{wide}"
    );
    ensure!(!wide.contains("descriptions changed"), "{wide}");
    stage
        .run("uninstall web --delete-crds --yes")
        .await?
        .done()?;
    Ok(())
}
