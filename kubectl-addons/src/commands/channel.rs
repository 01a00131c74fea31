//! `channel apply INDEX`: every add-on of a kops index, in its simplest form.

use anyhow::Result;

use crate::cli::operation::{ChannelApply, DryRun, Source, Values};
use crate::exit::Exit;
use crate::operation::choose::{ChooseError, Wish};
use crate::operation::pipeline::{Pipeline, Wanted};
use crate::operation::run;
use crate::operation::together::Flags;
use crate::output;
use crate::session::Session;

/// Installs or upgrades every add-on of an index. Without `--yes` it shows what is due, as kops' tool does.
///
/// # Errors
/// Nothing was written.
pub async fn apply(session: &Session, args: &ChannelApply) -> Result<Exit> {
    let source = Source {
        channel: Some(args.index.clone()),
        catalogue: None,
    };
    let pipeline = Pipeline::new(session, &source).await?;
    let flags = Flags {
        allow_prune: args.change.accept.allow_prune,
        wait_for_types: (args.change.wait_for_types()).filter(|_| args.change.run.yes),
        ..Flags::default()
    };
    let catalogue = session.index(&args.index).await?;
    let mut candidates = Vec::new();
    let mut worst = Exit::Done;
    for name in catalogue.names() {
        let wish = Wish {
            name: name.to_owned(),
            version: None,
        };
        match pipeline
            .install(&wish, Wanted::default(), &Values::default())
            .await
        {
            Ok(candidate) => candidates.push(candidate),
            // kops passes over what does not fit this cluster.
            Err(error) if matches!(error.downcast_ref(), Some(ChooseError::DoesNotFit { .. })) => {
                output::note(&format!("{name}  does not fit this cluster"));
            }
            Err(error) => worst = worst.max(output::failure(&error)),
        }
    }
    let mut items = Vec::new();
    for (candidate, outcome) in pipeline.plan(candidates, flags).await? {
        match outcome {
            Ok(prepared) => items.push(run::Item::new(&candidate, prepared)),
            Err(error) => {
                worst = worst.max(output::failure(&error.context(candidate.name.to_string())))
            }
        }
    }
    let mut change = args.change.clone();
    if !change.run.yes && change.dry_run == DryRun::None && items.iter().any(run::Item::is_due) {
        change.dry_run = DryRun::Client;
        let exit = run::run(session, &pipeline.known, items, &change).await?;
        output::note("Must specify --yes to update");
        return Ok(worst.max(exit));
    }
    if items.iter().all(|item| !item.is_due()) && worst == Exit::Done {
        output::note("No update required");
        return Ok(Exit::Done);
    }
    Ok(worst.max(run::run(session, &pipeline.known, items, &change).await?))
}
