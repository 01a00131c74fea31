//! What others wrote is shown, and never obeyed by a terminal.

use addons_tests::stage::Stage;
use anyhow::{Result, ensure};
use serde_json::json;

/// A title, a colour, a bell, a change of direction and a return.
const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{1b}[31mb\u{202e}c\rd";
const OBEYED: [&str; 5] = ["\u{1b}]0;", "\u{1b}[31m", "\u{9b}", "\u{202e}", "c\rd"];

/// JSON as a file of others may hold it.
fn escaped(json: &serde_json::Value) -> String {
    json.to_string()
        .chars()
        .map(|c| match c {
            ' '..='~' => c.to_string(),
            c => format!("\\u{:04x}", u32::from(c)),
        })
        .collect()
}

/// trust 6.
#[tokio::test]
async fn t06_control_characters_of_others_never_reach_a_terminal() -> Result<()> {
    let stage = Stage::new("terminal").await?;
    stage.run("init").await?.done()?;
    let name = stage.namespace.as_str();
    let map = |value: &str| {
        escaped(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "annotations": {"note": value}},
            "data": {"key": value}}),
        )
    };
    let version = |number: &str, value: &str| json!({"version": number, "defaultNamespace": name, "source": {"inline": {"manifest": map(value)}}});
    let second = format!("{HOSTILE} again");
    let versions = vec![version("1.0.0", HOSTILE), version("1.1.0", &second)];
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": name},
        "spec": {"addons": [{"name": name, "description": format!("{HOSTILE}\u{9b}2J"), "versions": versions}]},
    });
    let file = stage.write("catalogue.json", &escaped(&catalogue))?;
    stage
        .run(&format!("catalogue add {}", file.display()))
        .await?
        .done()?;
    let manifest = stage.write("template/map.json", &map(HOSTILE))?;
    std::fs::rename(&manifest, manifest.with_extension("yaml"))?;
    let changed = json!({"data": {"key": format!("{HOSTILE} live"), "other": HOSTILE}});
    for (line, is_hostile) in [
        (format!("install {name}@1.0.0 --yes"), false),
        (format!("show {name}"), true),
        (format!("show {name} -o json"), true),
        (format!("search {name} -o wide"), false),
        (format!("search {name} -o yaml"), true),
        ("catalogue view -o json".to_owned(), true),
        (format!("diff {name}"), true),
        (format!("plan {name}"), false),
        (format!("plan {name} -o json"), true),
        (format!("status {name}"), false),
        (format!("status {name} -o json"), false),
        ("list -o wide".to_owned(), false),
        (format!("render {name}"), true),
        (
            "render --dir template --method manifest -o raw --k8s 1.36.3".to_owned(),
            false,
        ),
        (format!("values {name}"), false),
        (format!("upgrade {name} --yes"), false),
        (format!("uninstall {name} --yes"), false),
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let said = stage.plugin.run_on_terminal(&args, "").await?;
        for part in OBEYED {
            ensure!(
                !said.stdout.contains(part),
                "{line}: {part:?}: {:?}",
                said.stdout
            );
        }
        ensure!(
            !is_hostile || said.stdout.contains("owned"),
            "{line}: {}",
            said.stdout
        );
        if line.starts_with("install") {
            ensure!(said.code == 0, "{}", said.stdout);
            stage.patch("configmap", "map", &changed).await?;
        }
    }
    // In a pipe text for people is the same, and data for programs is unchanged.
    let said = stage.run(&format!("show {name}")).await?.done()?.stdout;
    ensure!(OBEYED.iter().all(|part| !said.contains(part)), "{said:?}");
    let said = stage
        .run(&format!("search {name} -o json"))
        .await?
        .done()?
        .stdout;
    let said: serde_json::Value = serde_json::from_str(&said)?;
    ensure!(said.to_string().contains("\u{202e}"), "{said}");
    Ok(())
}
