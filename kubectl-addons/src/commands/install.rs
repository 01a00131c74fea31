//! `install NAME[@VERSION]…`

use anyhow::Result;

use crate::cli::operation::Install;
use crate::exit::Exit;
use crate::operation::choose::Wish;
use crate::operation::differences;
use crate::operation::pipeline::Pipeline;
use crate::operation::run;
use crate::operation::together::Flags;
use crate::session::Session;
use crate::usage::Usage;

/// Installs; an add-on that is installed already is upgraded.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &Install) -> Result<Exit> {
    if args.new.name.is_some() && args.addons.len() > 1 {
        return Err(Usage("--name goes with one add-on only".to_owned()).into());
    }
    let pipeline = Pipeline::new(session, &args.source)
        .await?
        .asking(args.change.run.yes);
    let flags = Flags {
        allow_prune: args.change.accept.allow_prune,
        wait_for_types: args.change.wait_for_types(),
        ..Flags::default()
    };
    let wanted = args.new.wanted();
    let mut candidates = Vec::new();
    for typed in &args.addons {
        candidates.push(
            pipeline
                .install(&Wish::parse(typed), wanted, &args.values)
                .await?,
        );
    }
    differences::say(&mut candidates, &args.differences);
    let planned = pipeline.plan(candidates, flags).await?;
    let mut items = run::items(planned)?;
    let plans = items.iter_mut().filter_map(run::Item::plan_mut);
    differences::allow(plans, &args.differences.recreate)?;
    run::run(session, &pipeline.known, items, &args.change).await
}
