//! `diff [NAME…]`: 0 = nothing differs, 1 = something does, more = error (semantics 17).

use std::fmt::Write as _;

use anyhow::Result;
use common::engine::diff::{self, FieldChange, ObjectDiff};
use common::plan::crd_safety::Breakage;
use common::plan::prune::limit::PruneLimit;
use serde_json::Value;

use crate::cli::operation::Diff;
use crate::exit::Exit;
use crate::operation::choose::Wish;
use crate::operation::pipeline::{Pipeline, Wanted};
use crate::operation::prepare::Prepared;
use crate::operation::together::Flags;
use crate::output;
use crate::session::Session;

use super::upgrade::targets;

/// Shows what an upgrade would change, field by field; with an add-on that is not installed, what an installation would.
///
/// # Errors
/// The comparison could not be made: exit codes are 2 and above.
pub async fn run(session: &Session, args: &Diff) -> Result<Exit> {
    match compare(session, args).await {
        Ok(exit) => Ok(exit),
        Err(error) => Ok(output::failure(&error).max(Exit::Usage)),
    }
}

async fn compare(session: &Session, args: &Diff) -> Result<Exit> {
    let pipeline = Pipeline::new(session, &args.source).await?;
    // Whatever was edited is shown, and whatever would be pruned.
    let flags = Flags {
        repair: true,
        allow_downgrade: true,
        allow_prune: PruneLimit::ALL,
        ..Flags::default()
    };
    let mut candidates = Vec::new();
    let is_new = |typed: &String| {
        let name = Wish::parse(typed).name;
        !pipeline
            .known
            .records
            .iter()
            .any(|record| record.metadata.name.as_ref() == Some(&name))
    };
    let (new, installed): (Vec<_>, Vec<_>) = args.addons.iter().cloned().partition(is_new);
    for typed in &new {
        candidates.push(
            pipeline
                .install(&Wish::parse(typed), Wanted::default(), &args.values)
                .await?,
        );
    }
    if !installed.is_empty() || new.is_empty() {
        for (record, version) in targets(&pipeline, &installed, session)? {
            candidates.push(
                pipeline
                    .upgrade(record, version.as_deref(), &args.values)
                    .await?,
            );
        }
    }
    let mut worst = Exit::Done;
    for (_, outcome) in pipeline.plan(candidates, flags).await {
        if let Some(prepared) = outcome? {
            let changes = diff::diff(session.cluster().await?, &prepared.plan).await?;
            let (text, differs) = text(&prepared, &changes);
            output::data(&text);
            if differs {
                worst = Exit::Failed;
            }
        }
    }
    Ok(worst)
}

/// The text, and whether anything differs.
fn text(item: &Prepared, changes: &[ObjectDiff]) -> (String, bool) {
    let plan = &item.plan;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let (mut changed, mut added) = (0, 0);
    for change in changes {
        if let Some(error) = &change.error {
            let _ = writeln!(text, "! {}\n    {error}", change.key);
            changed += 1;
        } else if change.created {
            added += 1;
            let _ = writeln!(text, "+ {}", change.key);
        } else if !change.fields.is_empty() {
            changed += 1;
            let _ = writeln!(text, "~ {}", change.key);
            for field in &change.fields {
                let _ = writeln!(text, "    {}", field_line(field));
            }
        }
    }
    let pruned: Vec<_> = plan.prune.iter().flatten().collect();
    for deletion in &pruned {
        let _ = writeln!(text, "- {}", deletion.target.key);
    }
    for line in plan.breakages.iter().flat_map(Breakage::lines) {
        let _ = writeln!(text, "! {line}");
    }
    let unchanged = plan.unchanged.len() + changes.len() - changed - added;
    let differs = changed + added + pruned.len() + plan.release.len() > 0;
    let _ = writeln!(
        text,
        "{}: {changed} changed, {added} added, {} pruned, {unchanged} unchanged",
        plan.installation.name,
        pruned.len()
    );
    (text, differs)
}

fn field_line(field: &FieldChange) -> String {
    let side = |value: &Option<Value>| match value {
        None => "(none)".to_owned(),
        Some(Value::String(text)) if text.len() <= 60 && !text.contains('\n') => text.clone(),
        Some(value) => short(&value.to_string()),
    };
    let owner = field
        .manager
        .as_ref()
        .map(|manager| format!("   now owned by {manager}"))
        .unwrap_or_default();
    format!(
        "{:<46} {} → {}{owner}",
        field.path,
        side(&field.old),
        side(&field.new)
    )
}

fn short(text: &str) -> String {
    const LONGEST: usize = 60;
    if text.chars().count() <= LONGEST {
        text.to_owned()
    } else {
        text.chars().take(LONGEST).chain("…".chars()).collect()
    }
}
