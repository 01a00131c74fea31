//! `uninstall NAME…`

use anyhow::Result;

use crate::cli::operation::{Source, Uninstall};
use crate::exit::Exit;
use crate::operation::pipeline::Pipeline;
use crate::operation::prepare::prepare_uninstall;
use crate::operation::{requirements, run};
use crate::session::Session;

/// Uninstalls: objects first, the record last.
///
/// # Errors
/// Nothing was written.
pub async fn run(session: &Session, args: &Uninstall) -> Result<Exit> {
    let source = Source::default();
    let pipeline = Pipeline::new(session, &source).await?;
    let mut records = Vec::new();
    for name in &args.names {
        let record = pipeline.record(name)?;
        pipeline.deletion(record).await?;
        records.push(record);
    }
    let records = requirements::teardown(records, &pipeline.known)?;
    let mut prepared = Vec::new();
    for record in &records {
        let mut item = prepare_uninstall(session, record.clone(), args.keep, args.delete).await?;
        item.requires = requirements::required_of(record, &records);
        prepared.push(item);
    }
    run::execute(session, &prepared, &args.run, None).await
}
