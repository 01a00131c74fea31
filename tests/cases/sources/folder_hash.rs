//! The hash of a folder, as the page about catalogues computes it.

use anyhow::{Context as _, Result, ensure};

#[test]
fn the_command_of_the_page_hashes_files_that_begin_with_a_dot() -> Result<()> {
    let page = include_str!("../../../kubectl-addons/docs/write-a-catalogue.md");
    let command = page.lines().find(|line| line.starts_with("find "));
    let command = command.context("the page has no such command")?;
    let folder = tempfile::tempdir()?;
    std::fs::create_dir(folder.path().join("b"))?;
    for file in [".helmignore", "a.yaml", "b/.c", "b.yaml"] {
        std::fs::write(folder.path().join(file), file)?;
    }
    let said = std::process::Command::new("sh")
        .args(["-c", command])
        .current_dir(folder.path())
        .output()?;
    let said = String::from_utf8(said.stdout)?;
    let digest = addons_sources::folder::read(folder.path())?.digest();
    ensure!(said.starts_with(&digest), "{said} is not {digest}");
    Ok(())
}
