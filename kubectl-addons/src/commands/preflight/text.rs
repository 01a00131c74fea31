//! Prints the report as columns, and the order of the upgrades as a list.

use super::report::PreflightReport;
use crate::cli::Listing;
use crate::output;
use crate::output::table::Table;
use crate::words::preflight as words;

/// Prints the installations, the risks, and the steps in order.
pub(super) fn print_report(report: &PreflightReport, listing: Listing) {
    if report.items.is_empty() {
        output::note("nothing is installed");
    } else {
        output::print_painted(&installation_table(report).render_listing(listing));
    }
    if !report.risks.is_empty() {
        output::print_painted(&format!("\n{}", risk_table(report).render_listing(listing)));
    }
    let lines = report.lines();
    if !lines.is_empty() {
        output::print_text(&format!("\n{}\n", lines.join("\n")));
    }
}

fn installation_table(report: &PreflightReport) -> Table {
    let rows = &report.items;
    let of_fleet = rows.iter().any(|row| row.cluster.is_some());
    let mut table = Table::new(&header(
        of_fleet,
        &["NAME", "VERSION", "VERDICT", "WHY, AND WHAT TO DO"],
    ));
    for row in rows {
        let verdict = words::verdict_words(row.verdict);
        let first = [row.name.as_str(), &row.version, verdict];
        let lines = row.reasons.iter().chain(&row.fix).cloned();
        let cluster = row.cluster.as_deref().filter(|_| of_fleet);
        add_rows(&mut table, cluster, first, lines);
    }
    table
}

fn risk_table(report: &PreflightReport) -> Table {
    let rows = &report.risks;
    let of_fleet = rows.iter().any(|row| row.cluster.is_some());
    let mut table = Table::new(&header(
        of_fleet,
        &["OBJECT", "OWNER", "RISK", "WHY, AND WHAT TO DO"],
    ));
    for row in rows {
        let object = words::risk::name_object(&row.risk);
        let owner = row.risk.owner().map_or("", |owner| &owner.name);
        let first = [
            object.as_str(),
            owner,
            words::risk::severity_word(row.blocks),
        ];
        let lines = [row.why.clone()].into_iter().chain(row.commands.clone());
        let cluster = row.cluster.as_deref().filter(|_| of_fleet);
        add_rows(&mut table, cluster, first, lines);
    }
    table
}

fn header<'a>(of_fleet: bool, names: &[&'a str]) -> Vec<&'a str> {
    let cluster = of_fleet.then_some("CLUSTER");
    cluster.into_iter().chain(names.iter().copied()).collect()
}

/// Adds a row, and another one for each further line.
fn add_rows(
    table: &mut Table,
    cluster: Option<&str>,
    first: [&str; 3],
    mut lines: impl Iterator<Item = String>,
) {
    let cells = cluster.into_iter().chain(first).map(str::to_owned);
    let mut cells: Vec<String> = cells.collect();
    let columns = cells.len();
    cells.push(lines.next().unwrap_or_default());
    table.add_row(cells);
    for line in lines {
        let mut cells = vec!["·".to_owned(); columns];
        cells.push(line);
        table.add_row(cells);
    }
}
