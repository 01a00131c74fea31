//! `install NAME[@VERSION]…`

use anyhow::Result;

use crate::cli::operation::Install;
use crate::exit::Exit;
use crate::operation::choose::Wish;
use crate::operation::pipeline::{Flags, Pipeline, Wanted};
use crate::operation::run;
use crate::session::Session;
use crate::usage::Usage;

/// Installs; an add-on that is installed already is upgraded.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &Install) -> Result<Exit> {
    if args.name.is_some() && args.addons.len() > 1 {
        return Err(Usage("--name goes with one add-on only".to_owned()).into());
    }
    let pipeline = Pipeline::new(session, &args.source).await?;
    let flags = Flags {
        allow_prune: args.change.allow_prune,
        ..Flags::default()
    };
    let wanted = Wanted {
        name: args.name.as_deref(),
        target_namespace: args.target_namespace.as_deref(),
        core: args.core,
    };
    let mut prepared = Vec::new();
    for typed in &args.addons {
        let candidate = pipeline
            .install(&Wish::parse(typed), wanted, &args.values)
            .await?;
        prepared.push(run::Item::new(
            &candidate,
            pipeline.plan(candidate.clone(), flags).await?,
        ));
    }
    run::run(session, &pipeline.known, prepared, &args.change).await
}
