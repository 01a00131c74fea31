//! What a person at a terminal is asked.

use anyhow::{Result, ensure};

use super::Directory;

/// One question for all that is due, also where something is gone; and no is no.
#[tokio::test]
async fn a_terminal_is_asked_once() -> Result<()> {
    let directory = Directory::new("asked").await?;
    directory.write("a.yaml", &directory.reconciled("a", "1"))?;
    directory.write("b.yaml", &directory.reconciled("b", "1"))?;
    directory.write("c.yaml", &directory.reconciled("c", "1"))?;
    let line = directory.line("");
    let args: Vec<&str> = line.split_whitespace().collect();
    let plugin = &directory.stage.plugin;
    for (typed, is_there) in [("n\n", false), ("y\n", true)] {
        let said = plugin.run_on_terminal(&args, typed).await?;
        let shown = [said.stdout, said.stderr].concat();
        ensure!(shown.matches("[y/N]").count() == 1, "{typed:?}: {shown}");
        let value = directory.value("a").await?;
        ensure!(value.is_some() == is_there, "{typed:?}: {shown}");
    }
    directory.write("a.yaml", &directory.reconciled("a", "2"))?;
    directory.remove("b.yaml")?;
    let said = plugin.run_on_terminal(&args, "y\n").await?;
    let shown = [said.stdout, said.stderr].concat();
    ensure!(shown.matches("[y/N]").count() == 1, "{shown}");
    ensure!(
        directory.value("a").await?.as_deref() == Some("2"),
        "{shown}"
    );
    ensure!(directory.value("b").await?.is_none(), "{shown}");
    Ok(())
}
