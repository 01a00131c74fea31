//! Pages in a real browser: what is written into objects is shown as text, and nothing is run or loaded.

use addons_tests::browser::Browser;
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};

/// What the author of a catalogue may write into it.
const EVIL: &str =
    "<script>document.body.append('SCRIPT '+'RAN')</script><img src=http://127.0.0.1:9/x.png>";
const RAN: &str = "SCRIPT RAN";
/// As a browser writes the text of a document.
const SHOWN: &str = "&lt;script&gt;document.body.append(";

/// The pages of an upgrade and of what came of it.
async fn pages(stage: &Stage) -> Result<[(&'static str, String); 2]> {
    let first = [
        config_map("a", "1"),
        config_map("b", "1"),
        deployment("web", 1, None),
    ]
    .concat();
    let notes = format!(
        "metadata: {{name: web, annotations: {{note: {EVIL:?}, config.kubernetes.io/depends-on: /namespaces/{}/ConfigMap/a}}}}",
        stage.namespace
    );
    let web = deployment("web", 2, None).replace("metadata: {name: web}", &notes);
    let second = [config_map("a", EVIL), web].concat();
    let first = stage.index("1/index.yaml", &[("web", "1.0.0", &first)])?;
    let second = stage.index("2/index.yaml", &[("web", "1.1.0", &second)])?;
    let run = async |line: String| Ok::<_, anyhow::Error>(stage.run(&line).await?.done()?.stdout);
    run(format!("install web --channel {first} --yes")).await?;
    let plan = run(format!("plan web --channel {second} -o html")).await?;
    run(format!("upgrade web --channel {second} --yes")).await?;
    stage.delete("configmap", "a").await?;
    let status = run("status web -o html".to_owned()).await?;
    Ok([("plan", plan), ("status", status)])
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: needs Chromium")]
async fn pages_of_plans_and_of_the_status() -> Result<()> {
    let mut tally = Tally::new("browser::pages");
    let stage = Stage::new("browser").await?;
    let pages = pages(&stage).await?;
    let [(_, plan), (_, status)] = &pages;
    for words in [
        "web  1.0.0 → 1.1.0",
        "pruned",
        "spec.replicas",
        "data.key",
        "waits for",
    ] {
        ensure!(plan.contains(words), "{words} is not in\n{plan}");
    }
    for words in ["Degraded: ConfigMap a is gone", "2/2 ready", "gone"] {
        ensure!(status.contains(words), "{words} is not in\n{status}");
    }
    tally.ran();

    let browser = match Browser::find() {
        Ok(browser) => browser,
        Err(why) => {
            tally.left_out(format!("in a browser: {why}"));
            return Ok(());
        }
    };
    // A page that does not escape it shows that the browser would have run and loaded it.
    let bare = format!("<!DOCTYPE html><title>bare</title><body>{EVIL}</body>");
    let bare = browser.open(&stage.write("bare.html", &bare)?)?;
    ensure!(
        bare.document.contains(RAN) && !bare.requests.is_empty(),
        "{bare:?}"
    );
    for (name, page) in &pages {
        let file = stage.write(&format!("{name}.html"), page)?;
        let seen = browser.open(&file)?;
        let document = &seen.document;
        ensure!(seen.requests.is_empty(), "{name}: {:?}", seen.requests);
        for absent in [RAN, "<script"] {
            ensure!(!document.contains(absent), "{name}: {document}");
        }
        ensure!(document.contains("<h2>web"), "{name}: {document}");
        // Only a plan shows what is written into objects.
        let is_shown = document.contains(SHOWN);
        ensure!(is_shown == (*name == "plan"), "{name}: {document}");
        tally.ran();
    }
    Ok(())
}
