//! The pages for those who come from Helm and from kapp: their commands do what they say, in their order.

use addons_tests::control_plane::binaries;
use addons_tests::page::blocks;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::tools::{chart, deploy, helm, kapp, manifest, release};
use super::{pods, ready};

const HELM: &str = include_str!("../../../kubectl-addons/docs/helm.md");
const KAPP: &str = include_str!("../../../kubectl-addons/docs/kapp.md");
/// The namespace of the pages.
const NAMESPACE: &str = "shop";

/// Runs the commands of a page, and returns how often its tool has found `web`, from command to command.
async fn walk(stage: &Stage, page: &str, tool: &str) -> Result<Vec<bool>> {
    let lines = blocks(page).flat_map(|(_, text)| text.lines());
    let mut found = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let line = line.replace(NAMESPACE, &stage.namespace);
        let (command, file) = match line.split_once(" > ") {
            Some((command, file)) => (command, Some(file)),
            None => (line.as_str(), None),
        };
        let words: Vec<&str> = command.split_whitespace().collect();
        let home = stage
            .plugin
            .home()
            .join("web")
            .to_string_lossy()
            .into_owned();
        let words: Vec<&str> = words
            .into_iter()
            .map(|word| if word == "./web" { &*home } else { word })
            .collect();
        let said = match words.as_slice() {
            ["kubectl", "addons", rest @ ..] => {
                let helm = binaries::helm()?;
                let flag = ["--helm-bin", &helm.to_string_lossy()].map(str::to_owned);
                let rest: Vec<&str> = rest
                    .iter()
                    .copied()
                    .chain(flag.iter().map(|it| &**it))
                    .collect();
                match file {
                    Some(_) => stage.plugin.run(&rest).await?,
                    None => stage.plugin.run_on_terminal(&rest, "y\n").await?,
                }
            }
            [program, rest @ ..] => {
                ensure!(*program == tool, "{line}");
                let rest: Vec<&str> = rest
                    .iter()
                    .copied()
                    .filter(|word| *word != "--namespace" && *word != stage.namespace)
                    .collect();
                match tool {
                    "helm" => helm(stage, &rest).await?,
                    _ => kapp(stage, &rest).await?,
                }
            }
            [] => continue,
        };
        // `diff` ends with 1 where something differs.
        let most = i32::from(line.contains("addons diff"));
        ensure!(said.code <= most, "{line}: {}{}", said.stdout, said.stderr);
        // The catalogue of the test has another version of the chart, so that something is to be upgraded.
        if let Some(file) = file.filter(|file| !stage.plugin.home().join(file).exists()) {
            stage.write(file, &said.stdout)?;
        }
        if words.first() == Some(&tool) && words.get(1) == Some(&"list") {
            found.push(said.stdout.contains("web"));
        }
    }
    Ok(found)
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: helm and kapp, whole pages")]
async fn the_way_from_helm_and_back_is_as_its_page_says() -> Result<()> {
    let stage = Stage::new("coming-helm").await?;
    release(&stage, &manifest(true)).await?;
    let before = pods(&stage).await?;
    let shelf = Shelf::new()?;
    let packed = chart(&shelf, "1.1.0", &manifest(false))?;
    let version = json!({"version": "1.1.0", "template": {"method": "helm"}, "source": {"url": {"manifest": packed}}});
    stage.catalogue("web", &version)?;
    stage.write(
        "web/Chart.yaml",
        "apiVersion: v2\nname: web\nversion: 2.0.0\n",
    )?;
    stage.write("web/templates/all.yaml", &manifest(true))?;
    let found = walk(&stage, HELM, "helm").await.context("helm.md")?;
    ensure!(found == [false, true], "{found:?}");
    ready(&stage).await?;
    ensure!(before == pods(&stage).await?, "other pods");
    Ok(())
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: helm and kapp, whole pages")]
async fn the_way_from_kapp_and_back_is_as_its_page_says() -> Result<()> {
    let stage = Stage::new("coming-kapp").await?;
    deploy(&stage, &manifest(true)).await?;
    let before = pods(&stage).await?;
    stage.index("index.yaml", &[("web", "1.0.0", &manifest(false))])?;
    let file = stage.write("web.yaml", &manifest(false))?;
    let page = KAPP.replace("--file web.yaml", &format!("--file {}", file.display()));
    let found = walk(&stage, &page, "kapp").await.context("kapp.md")?;
    ensure!(found == [true, false, true], "{found:?}");
    ready(&stage).await?;
    ensure!(before == pods(&stage).await?, "other pods");
    Ok(())
}
