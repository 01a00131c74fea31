//! `import FILE --registry HOST[/PATH]`: pushes an archive into the registry of a site.

use anyhow::Result;

use crate::cli::airgap::Import;
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
pub async fn run(session: &Session, args: &Import) -> Result<Exit> {
    interrupt::on_end(airgap::import_interrupted());
    let report = |progress| output::note(&airgap::progress(&progress));
    let imported = import(session.ctx(), &args.archive, &args.registry, &report).await?;
    output::note(&airgap::imported(&args.registry, &imported));
    if let Some(command) = airgap::command(&args.registry, &imported) {
        output::data(&format!("{command}\n"));
    }
    Ok(Exit::Done)
}
