//! `init`: our definitions.

use addons_operation::definitions;
use anyhow::Result;

use crate::exit::Exit;
use crate::session::Session;
use crate::{output, words};

/// Installs the definitions, or updates older ones.
///
/// # Errors
/// What the server refuses.
pub async fn run(session: &Session) -> Result<Exit> {
    for (definition, done) in definitions::install(session.ctx()).await? {
        output::note(&words::definition(&definition, &done));
    }
    // Plain init says that nothing is enforced yet (semantics 17).
    output::note(
        "the definitions are served; nothing is enforced yet, for no admission webhook was installed",
    );
    Ok(Exit::Done)
}
