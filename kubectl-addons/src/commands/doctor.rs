//! `doctor`: lists what is wrong, with the commands that fix it.

use addons_advice::doctor::reading;
use addons_advice::doctor::{Problem, Severity};
use anyhow::Result;
use serde::Serialize;

use crate::cli::Format;
use crate::cli::reading::Doctor;
use crate::exit::Exit;
use crate::output::table::Table;
use crate::output::{self, Items};
use crate::session::Session;
use crate::words::doctor as words;

/// A problem, as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    severity: Severity,
    object: String,
    problem: String,
    fix: String,
}

impl Found {
    fn of(problem: &Problem) -> Self {
        Self {
            severity: problem.severity(),
            object: problem.object(),
            problem: problem.to_string(),
            fix: words::fix(problem),
        }
    }
}

/// Prints every problem. Warnings alone do not make the command fail.
///
/// # Errors
/// There is no cluster.
pub async fn run(session: &Session, args: &Doctor) -> Result<Exit> {
    let problems = reading::problems(session.ctx()).await?;
    let found: Vec<Found> = problems.iter().map(Found::of).collect();
    match args.output.format {
        Format::Json | Format::Yaml | Format::Template(_) => {
            output::value(&Items { items: &found }, args.output)?;
        }
        Format::Name => {
            let lines = found.iter().map(|one| format!("{}\n", one.object));
            output::data(&lines.collect::<String>());
        }
        Format::Table | Format::Wide if found.is_empty() => output::note("no problems found"),
        Format::Table | Format::Wide => output::data(&table(&found).listed(args.output)),
    }
    let is_broken = found.iter().any(|one| one.severity == Severity::Error);
    Ok(if is_broken { Exit::Failed } else { Exit::Done })
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new(&["SEVERITY", "OBJECT", "PROBLEM", "FIX"]);
    for one in found {
        table.row(vec![
            words::severity(one.severity).to_owned(),
            one.object.clone(),
            one.problem.clone(),
            one.fix.clone(),
        ]);
    }
    table
}
