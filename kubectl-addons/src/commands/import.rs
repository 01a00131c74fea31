//! `import FILE --registry HOST[/PATH]`: pushes an archive into the registry of a site.

use anyhow::Result;

use crate::cli::airgap::ImportArgs;
use crate::exit::Exit;
use crate::interrupt;
use crate::output;
use crate::session::Session;
use crate::words::airgap;
use addons_airgap::import::import;

/// Pushes what the registry does not have yet, and prints the command that installs from there.
///
/// # Errors
/// The archive is not valid, or the registry refuses it.
pub async fn run(session: &Session, args: &ImportArgs) -> Result<Exit> {
    interrupt::set_last_words(airgap::import_interrupted());
    let report = |progress| output::note(&airgap::describe_progress(&progress));
    let imported = import(session.ctx(), &args.archive, &args.registry, &report).await?;
    output::note(&airgap::describe_import(&args.registry, &imported));
    if let Some(command) = airgap::install_command(&args.registry, &imported) {
        output::print_text(&format!("{command}\n"));
    }
    Ok(Exit::Done)
}
