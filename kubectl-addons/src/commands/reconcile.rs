//! `reconcile [NAME…]`

use addons_loops::{How, Outcome, pass};
use addons_operation::Run;
use anyhow::Result;
use common::api::names::InstallationName;

use crate::cli::operation::Reconcile;
use crate::exit::Exit;
use crate::session::Session;
use crate::words::reconcile as words;
use crate::{change, output, partial};

/// Does once what the records ask for. The worst outcome is the exit code.
///
/// # Errors
/// The records cannot be read; a name that no installation has.
pub async fn run(session: &Session, args: &Reconcile) -> Result<Exit> {
    let how = How {
        run: Run {
            timeout: args.timeout,
            ..Run::default()
        },
        repair: !args.names.is_empty(),
        words: words::condition,
    };
    let mut worst = Exit::Done;
    let mut see = |name: &InstallationName, outcome| worst = worst.max(report(name, outcome));
    change::interruptible(async |interruption| {
        pass(session.ctx(), &args.names, &how, interruption, &mut see).await
    })
    .await?;
    Ok(worst)
}

fn report(name: &InstallationName, outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Failed(error) => partial::failure(&name.to_string(), error),
        outcome => {
            output::note(words::outcome(name, &outcome).trim_end());
            match outcome {
                Outcome::Executed(_, report) => change::of_whole_report(&report),
                _ => Exit::Done,
            }
        }
    }
}
