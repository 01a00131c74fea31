//! Manual pages: a page for each command, as git has them.

use anyhow::Result;
use clap::Command;
use clap_mangen::Man;

/// File names, and what stands in them.
///
/// # Errors
/// Those of the library that writes them.
pub fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut root = kubectl_addons::cli::command().name("kubectl-addons");
    root.build();
    let mut pages = Vec::new();
    below(&root, "kubectl-addons", &mut pages)?;
    Ok(pages)
}

fn below(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let mut page = command.clone().display_name(name.to_owned());
    // The global options stand in the first page.
    if !pages.is_empty() {
        page = page.mut_args(|arg| {
            let is_global = arg.is_global_set();
            arg.hide(is_global)
        });
    }
    let version = env!("CARGO_PKG_VERSION");
    let man = Man::new(page)
        // Another date would make another archive of the same release.
        .date("")
        .title(name.to_uppercase())
        .source(format!("kubectl-addons {version}"))
        .manual("kubectl addons");
    let mut text = Vec::new();
    man.render(&mut text)?;
    pages.push((format!("{name}.1"), text));
    for next in command.get_subcommands() {
        if next.get_name() != "help" && !next.is_hide_set() {
            below(next, &format!("{name}-{}", next.get_name()), pages)?;
        }
    }
    Ok(())
}
