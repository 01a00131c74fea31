//! On a terminal what a form requires is asked for; elsewhere it is a refusal that says how to give it.

use std::fs;
use std::io::Write as _;

use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Result, ensure};

/// A catalogue whose form requires a host and replicas; `name` is that of the add-on and of its namespace.
fn catalogue(name: &str) -> String {
    format!(
        r#"apiVersion: kubectl-addons.dev/v1alpha1
kind: AddonCatalogue
metadata: {{name: asked}}
spec:
  addons:
  - name: {name}
    versions:
    - version: 1.0.0
      defaultNamespace: {name}
      template:
        method: go-template
        formSpec:
        - {{displayName: Host, internalName: spec.host, required: true, helpText: "Where it is reached\e[31m"}}
        - {{displayName: Replicas, internalName: spec.replicas, type: number, required: true}}
        - {{internalName: spec.debug, type: boolean}}
        - {{internalName: spec.size, required: true, enum: [small, large]}}
      source:
        inline:
          manifest: |
            apiVersion: v1
            kind: ConfigMap
            metadata: {{name: {name}}}
            data: {{host: "{{{{ .Variables.spec.host }}}}", replicas: "{{{{ .Variables.spec.replicas }}}}", size: "{{{{ .Variables.spec.size }}}}"}}
"#
    )
}

#[tokio::test]
async fn what_is_required_is_asked_for() -> Result<()> {
    let mut tally = Tally::new("values::prompts");
    let stage = Stage::new("prompts").await?;
    stage.run("init").await?.done()?;
    let ns = stage.namespace.as_str();
    let file = stage.write("asked.yaml", &catalogue(ns))?;
    let file = file.to_string_lossy().into_owned();
    let install = ["install", ns, "--channel", &file];

    named_where_no_answer_comes(&stage, &install, &mut tally).await?;

    // The input ends before the last answer: nothing was changed.
    let said = stage
        .plugin
        .run_on_terminal(&install, "web.example.test\n")
        .await?
        .ended(1)?;
    ensure!(
        said.stdout.contains("error: nothing was changed"),
        "{}",
        said.stdout
    );
    ensure!(
        stage.get("configmap", ns).await?.is_none(),
        "{}",
        said.stdout
    );
    tally.ran();

    interrupted(&stage, &install).await?;
    tally.ran();

    // What is wrong is asked for again, with the reason; then everything is as with flags.
    let typed = "\nweb.example.test\nmany\n3\nhuge\nlarge\ny\n";
    let said = stage
        .plugin
        .run_on_terminal(&install, typed)
        .await?
        .done()?;
    let text = said.stdout.replace('\r', "");
    for words in [
        "Host (spec.host): text\n  Where it is reached\\u001b[31m\n> ",
        "  a value is required\n> ",
        "Replicas (spec.replicas): a number\n> ",
        "  a number is expected, as in 3 or 0.5\n> ",
        "spec.size: text, one of small, large\n> ",
        "  must be one of small, large\n> ",
        "Install? [y/N] ",
    ] {
        ensure!(text.contains(words), "{words}\n{text}");
    }
    ensure!(!text.contains("spec.debug"), "{text}");
    let map = stage.get("configmap", ns).await?.unwrap_or_default();
    ensure!(
        map["data"]
            == serde_json::json!({"host": "web.example.test", "replicas": "3", "size": "large"}),
        "{map}"
    );
    tally.ran();

    // Nothing is missing any more: nothing is asked.
    let upgrade = ["upgrade", ns, "--repair"];
    let said = stage
        .plugin
        .run_on_terminal(&upgrade, "y\n")
        .await?
        .done()?;
    ensure!(!said.stdout.contains("Host (spec.host)"), "{}", said.stdout);
    tally.ran();
    Ok(())
}

/// Ctrl-C at a question ends it there.
async fn interrupted(stage: &Stage, install: &[&str]) -> Result<()> {
    let (mut process, mut keys) = stage.plugin.talk(install)?;
    let screen = stage.plugin.home().join("stdout");
    until("the first question is asked", async || {
        let text = fs::read_to_string(&screen)?;
        Ok(if text.contains("> ") {
            Ok(())
        } else {
            Err(text)
        })
    })
    .await?;
    keys.write_all(b"web.exam\x03")?;
    drop(keys);
    let status = tokio::task::spawn_blocking(move || process.wait()).await??;
    ensure!(!status.success(), "{status}");
    ensure!(
        stage.get("configmap", &stage.namespace).await?.is_none(),
        "it went on"
    );
    Ok(())
}

/// Without a terminal, or with `--yes`: both values are named, and how to give them.
async fn named_where_no_answer_comes(
    stage: &Stage,
    install: &[&str],
    tally: &mut Tally,
) -> Result<()> {
    let with = |more: &[&'static str]| [install, more].concat();
    for (is_terminal, args) in [
        (false, with(&[])),
        (false, with(&["--yes"])),
        (true, with(&["--yes"])),
    ] {
        let said = if is_terminal {
            stage.plugin.run_on_terminal(&args, "").await?
        } else {
            stage.plugin.run(&args).await?
        };
        let said = said.ended(6)?;
        let text = (said.stdout + &said.stderr).replace('\r', "");
        for words in [
            "spec.values.spec.host: a value is required (Host)",
            "spec.values.spec.replicas: a value is required (Replicas)",
            "spec.values.spec.size: a value is required",
            "fix:    --set spec.host=VALUE --set spec.replicas=VALUE --set spec.size=VALUE",
        ] {
            ensure!(text.contains(words), "{words}\n{text}");
        }
        ensure!(!text.contains("> "), "{text}");
        tally.ran();
    }
    Ok(())
}
