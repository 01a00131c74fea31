//! `-o jsonpath` and `-o custom-columns`: kubectl itself says what they print of the same object.

use addons_tests::stage::{Stage, config_map};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use serde_json::json;

/// What both print alike, or both refuse.
const TEMPLATES: [&str; 25] = [
    "jsonpath={.metadata.name}",
    "jsonpath=text .metadata.name",
    "jsonpath={.spec.addons[*].name}|{.spec.addons[-1].name}|{.spec.addons[-2].name}|{.spec.addons[0:2].name}",
    "jsonpath={.spec.addons[::2].name}|{.spec.addons[1:].name}|{.spec.addons[0,2].name}|{.spec.addons[1:1].name}",
    "jsonpath={range .spec.addons[*]}{.name}{\"\\t\"}{range .versions[*]}{.version},{end}{'\\n'}{end}done",
    "jsonpath={range .spec.missing[*]}x{end}y{range .spec.addons[*]}{.name}",
    "jsonpath={.spec.addons[?(@.name==\"two\")].description}|{.spec.addons[?(@.description)].name}",
    "jsonpath={.spec.addons[?(@.name!='two')].name}|{.spec.addons[?(@.name>\"one\")].name}",
    "jsonpath={.spec.addons[0].versions[?(@.values.replicas>=3)].version}|{.spec.addons[0].versions[?(@.values.on==true)].version}",
    "jsonpath={.spec.addons[0].versions[0].values}",
    "jsonpath={.spec.addons[0].versions[0].values.list}|{.spec.addons[0].versions[0].values.ratio}",
    "jsonpath={..replicas}|{.spec..replicas}",
    "jsonpath={.spec.addons[*]['name','description']}",
    "jsonpath={.spec.addons[0].versions[0].values.a\\.b}|{.spec.addons[0].versions[0].values['a\\.b']}",
    "jsonpath={.missing}|{.spec.missing[0].x}|{$.metadata.name}|{@.kind}|{true}|{-1}|{\"q\\\"\"}",
    "jsonpath={.metadata.name",
    "jsonpath={metadata.name}",
    "jsonpath={.spec.addons[9].name}",
    "jsonpath={.spec.addons[name]}",
    "jsonpath={end}",
    "jsonpath={.metadata[0]}",
    "jsonpath={.spec.addons[?(@.name==1)].name}",
    "custom-columns=NAME:.metadata.name,ALL:.spec.addons[*].name,V:{.spec.addons[0].versions[0].values},NONE:.x",
    "custom-columns=A:metadata.name,B:{kind}",
    "custom-columns=NAME",
];

#[tokio::test]
async fn templates_print_what_kubectl_prints() -> Result<()> {
    let mut tally = Tally::new("main_job::templates_print_what_kubectl_prints");
    let stage = Stage::new("templates").await?;
    let version = |version: &str, values: serde_json::Value| json!({"version": version, "values": values, "template": {"method": "go-template"}, "source": {"inline": {"manifest": config_map("a", "1")}}});
    let values = json!({"replicas": 3, "ratio": 1.5, "on": true, "a.b": "dotted", "list": ["<a>", {"b": "&"}]});
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": "shapes"},
        "spec": {"addons": [
            {"name": "one", "description": "first", "versions": [version("1.0.0", values), version("1.1.0", json!({}))]},
            {"name": "two", "description": "<b> & more", "versions": [version("2.0.0", json!({}))]},
            {"name": "three", "versions": [version("3.0.0", json!({}))]},
        ]},
    });
    let file = stage.write("shapes.json", &catalogue.to_string())?;
    let add = format!("catalogue add {}", file.display());
    stage.run(&add).await?.done()?;
    let namespace = format!("--namespace={}", stage.namespace);
    for template in TEMPLATES {
        let theirs = [
            "get",
            "addoncatalogue",
            "shapes",
            &namespace,
            "-o",
            template,
        ];
        let ours = ["catalogue", "show", "shapes", "-o", template];
        let (theirs, ours) =
            tokio::try_join!(stage.plugin.kubectl(&theirs), stage.plugin.run(&ours))?;
        let are_alike = match theirs.code {
            0 => ours.code == 0 && ours.stdout == theirs.stdout,
            _ => ours.code != 0 && ours.stdout.is_empty(),
        };
        ensure!(are_alike, "{template}\n{theirs:?}\n{ours:?}");
        tally.ran();
    }
    Ok(())
}
