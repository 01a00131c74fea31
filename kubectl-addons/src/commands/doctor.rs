//! `doctor`: lists what is wrong, with the commands that fix it.

use addons_advice::doctor::reading;
use addons_advice::doctor::{DoctorProblem, Severity};
use anyhow::Result;
use serde::Serialize;

use crate::cli::OutputFormat;
use crate::cli::reading::DoctorArgs;
use crate::exit::Exit;
use crate::output::table::Table;
use crate::output::{self, ItemList};
use crate::session::Session;
use crate::words::doctor as words;

/// A problem, as it is printed in JSON and YAML.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DoctorRow {
    severity: Severity,
    object: String,
    problem: String,
    fix: String,
}

impl DoctorRow {
    fn new(problem: &DoctorProblem) -> Self {
        Self {
            severity: problem.severity(),
            object: problem.subject(),
            problem: problem.to_string(),
            fix: words::fix_command(problem),
        }
    }
}

/// Prints every problem. Warnings alone do not make the command fail.
///
/// # Errors
/// There is no cluster.
pub async fn run(session: &Session, args: &DoctorArgs) -> Result<Exit> {
    let problems = reading::find_problems(session.ctx()).await?;
    let found: Vec<DoctorRow> = problems.iter().map(DoctorRow::new).collect();
    match args.output.format {
        OutputFormat::Value(_) => {
            output::print_value(&ItemList { items: &found }, args.output)?;
        }
        OutputFormat::Name => {
            let lines = found.iter().map(|one| format!("{}\n", one.object));
            output::print_text(&lines.collect::<String>());
        }
        OutputFormat::Table | OutputFormat::Wide if found.is_empty() => {
            output::note("no problems found")
        }
        OutputFormat::Table | OutputFormat::Wide => {
            output::print_painted(&table(&found).render_listing(args.output))
        }
    }
    let is_broken = found.iter().any(|one| one.severity == Severity::Error);
    Ok(if is_broken { Exit::Failed } else { Exit::Done })
}

fn table(found: &[DoctorRow]) -> Table {
    let mut table = Table::new(&["SEVERITY", "OBJECT", "PROBLEM", "FIX"]);
    for one in found {
        table.add_row(vec![
            words::severity_word(one.severity).to_owned(),
            one.object.clone(),
            one.problem.clone(),
            one.fix.clone(),
        ]);
    }
    table
}
