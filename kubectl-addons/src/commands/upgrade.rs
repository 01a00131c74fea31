//! `upgrade [NAME[@VERSION]…]`

use anyhow::Result;
use common::api::installation::AddonInstallation;

use crate::cli::operation::Upgrade;
use crate::exit::Exit;
use crate::operation::choose::Wish;
use crate::operation::differences;
use crate::operation::pipeline::Pipeline;
use crate::operation::run;
use crate::operation::together::Flags;
use crate::output;
use crate::session::Session;

/// Upgrades the named installations, or all.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &Upgrade) -> Result<Exit> {
    let pipeline = Pipeline::new(session, &args.source)
        .await?
        .asking(args.change.run.yes);
    let flags = Flags {
        repair: args.repair,
        allow_downgrade: args.allow_downgrade,
        allow_prune: args.change.accept.allow_prune,
        delete: args.delete,
        wait_for_types: args.change.wait_for_types(),
    };
    let mut candidates = Vec::new();
    for (record, version) in targets(&pipeline, &args.addons, session)? {
        if record.spec.suspend {
            output::note(&format!(
                "{} is suspended",
                record.metadata.name.as_deref().unwrap_or_default()
            ));
            continue;
        }
        candidates.push(
            pipeline
                .upgrade(record, version.as_deref(), &args.values)
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

/// The records that were named, with the versions that were asked for; all of them where none was named.
///
/// # Errors
/// A name that is no record.
pub fn targets<'a>(
    pipeline: &'a Pipeline<'_>,
    typed: &[String],
    session: &Session,
) -> Result<Vec<(&'a AddonInstallation, Option<String>)>> {
    if typed.is_empty() {
        let namespace = session.global().namespace.as_deref();
        let in_namespace = |record: &&AddonInstallation| {
            namespace
                .is_none_or(|namespace| record.metadata.namespace.as_deref() == Some(namespace))
        };
        return Ok(pipeline
            .known
            .records
            .iter()
            .filter(in_namespace)
            .map(|record| (record, None))
            .collect());
    }
    typed
        .iter()
        .map(|typed| {
            let wish = Wish::parse(typed);
            Ok((pipeline.record(&wish.name)?, wish.version))
        })
        .collect()
}
