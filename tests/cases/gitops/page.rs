//! The page about Git: its commands do what it says, in their order.

use addons_tests::page::blocks;
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};

use super::{apply, catalogue};

const PAGE: &str = include_str!("../../../kubectl-addons/docs/gitops.md");

/// What each command of the page ends with.
const ENDS: [(&str, i32); 5] = [
    ("kubectl apply", 0),
    ("kubectl addons upgrade web@1.0.0", 0),
    ("kubectl diff", 0),
    ("kubectl addons upgrade web@1.1.0", 4),
    ("kubectl addons upgrade web@1.1.0 --force", 0),
];

#[tokio::test]
async fn the_page_does_what_it_says() -> Result<()> {
    let stage = Stage::new("git-page").await?;
    let mut source = catalogue(&stage);
    // The page names no values that the template needs.
    let text = source.to_string().replace("{{ .Variables.name }}", "web");
    source = serde_json::from_str(&text)?;
    stage.run("init").await?.done()?;
    apply(&stage, &source, &[]).await?;
    let mut blocks = blocks(PAGE);
    let manifest = blocks.next().filter(|(language, _)| *language == "yaml");
    let (_, manifest) = manifest.context("the page begins with a manifest")?;
    let manifest = manifest.replace(
        "namespace: kubectl-addons",
        &format!("namespace: {}", stage.namespace),
    );
    let file = stage.write("web.yaml", &manifest)?.display().to_string();
    let lines: Vec<&str> = blocks
        .flat_map(|(_, text)| text.lines())
        .filter(|line| !line.is_empty())
        .collect();
    ensure!(lines.len() == ENDS.len(), "{lines:?}");
    for (line, (begin, code)) in lines.into_iter().zip(ENDS) {
        ensure!(line.starts_with(begin), "{line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let said = match words.as_slice() {
            ["kubectl", "addons", rest @ ..] => stage.plugin.run_on_terminal(rest, "y\n").await?,
            [_, rest @ ..] => {
                let rest = rest
                    .iter()
                    .map(|word| if *word == "web.yaml" { &*file } else { word });
                stage.plugin.kubectl(&rest.collect::<Vec<_>>()).await?
            }
            [] => continue,
        };
        said.ended(code).context(line.to_owned())?;
    }
    Ok(())
}
