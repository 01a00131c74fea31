//! Prints columns as kubectl does, and row by row on a terminal that is too narrow for them.

use crate::cli::Listing;

/// Between two cells of a line.
const GAP: &str = "   ";
/// An empty cell.
const NOTHING: &str = "–";

/// Rows of text under a header.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this header.
    pub fn new(header: &[&str]) -> Self {
        Self {
            rows: vec![header.iter().map(|cell| (*cell).to_owned()).collect()],
        }
    }

    /// Adds a row. A line break in a cell becomes a blank; an empty cell becomes `–`.
    pub fn add_row(&mut self, cells: Vec<String>) {
        let clean = |cell: String| {
            let cell = cell.split_whitespace().collect::<Vec<_>>().join(" ");
            let cell = super::escape_text(&cell);
            if cell.is_empty() {
                NOTHING.to_owned()
            } else {
                cell
            }
        };
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// Renders the text: columns as wide as their widest cell, with three blanks between them. On a terminal on which they would wrap,
    /// each row is a paragraph instead: its first cell, and below it every other one after the name of its column.
    pub fn render(&self) -> String {
        render_rows(&self.rows, true, super::terminal_width())
    }

    /// Renders the text, without the header if `--no-headers` is set.
    pub fn render_listing(&self, asked: Listing) -> String {
        render_rows(&self.rows, !asked.no_headers, super::terminal_width())
    }
}

fn render_rows(rows: &[Vec<String>], has_header: bool, terminal: Option<usize>) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter()
            .skip(usize::from(!has_header))
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let whole = widths.iter().sum::<usize>() + GAP.len() * columns.saturating_sub(1);
    match (rows, terminal) {
        ([header, rows @ ..], Some(terminal)) if whole > terminal => {
            let rows = rows
                .iter()
                .map(|row| render_paragraph(header, row, terminal));
            rows.collect()
        }
        _ => rows
            .iter()
            .skip(usize::from(!has_header))
            .map(|row| render_row(row, &widths))
            .collect(),
    }
}

fn render_row(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        line.push_str(&super::pad_text(cell, *width));
        line.push_str(GAP);
    }
    format!("{}\n", line.trim_end())
}

/// A row for a terminal of this width. Lines end between cells, and empty cells are left out.
fn render_paragraph(header: &[String], row: &[String], terminal: usize) -> String {
    let mut lines: Vec<String> = row.first().cloned().into_iter().collect();
    let cells = header.iter().zip(row).skip(1);
    for (column, cell) in cells.filter(|(_, cell)| *cell != NOTHING) {
        let cell = format!("{column} {cell}");
        let fits = |line: &String| {
            let width = line.chars().count() + GAP.len() + cell.chars().count();
            line.starts_with(' ') && width <= terminal
        };
        match lines.last_mut().filter(|line| fits(line)) {
            Some(line) => *line = format!("{line}{GAP}{cell}"),
            None => lines.push(format!("  {cell}")),
        }
    }
    format!("{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_may_be_longer_than_a_formatter_takes() {
        let mut table = Table::new(&["NAME", "WHY"]);
        let long = "ü".repeat(70_000);
        table.add_row(vec![long.clone(), "a".into()]);
        let header = format!("NAME{}   WHY", " ".repeat(70_000 - 4));
        assert_eq!(table.render(), format!("{header}\n{long}   a\n"));
    }

    #[test]
    fn columns_align_and_do_not_wrap() {
        let mut table = Table::new(&["NAME", "VERSION"]);
        table.add_row(vec!["größer".into(), "1.0.0".into()]);
        table.add_row(vec!["a".into(), String::new()]);
        table.add_row(vec!["two\nlines".into(), "2".into()]);
        assert_eq!(
            table.render(),
            "NAME        VERSION\ngrößer      1.0.0\na           –\ntwo lines   2\n"
        );
        let asked = Listing {
            no_headers: true,
            ..Listing::default()
        };
        assert_eq!(
            table.render_listing(asked),
            "größer      1.0.0\na           –\ntwo lines   2\n"
        );
    }

    #[test]
    fn on_a_narrow_terminal_each_row_is_a_paragraph() {
        let mut table = Table::new(&["NAME", "TARGET", "VERSION", "STATUS", "AGE"]);
        let row = [
            "web",
            "shop",
            "1.0.0",
            "Failed: it does not become ready",
            "3m",
        ];
        table.add_row(row.map(str::to_owned).to_vec());
        let row = ["dns", "", "1.0.0", "Ready", "3m"];
        table.add_row(row.map(str::to_owned).to_vec());
        let narrow = "web\n  TARGET shop   VERSION 1.0.0\n  STATUS Failed: it does not become ready\n  AGE 3m\n\
                      dns\n  VERSION 1.0.0   STATUS Ready   AGE 3m\n";
        assert_eq!(render_rows(&table.rows, true, Some(45)), narrow);
        assert_eq!(render_rows(&table.rows, false, Some(45)), narrow);
        let wide = render_rows(&table.rows, true, None);
        let widest = wide.lines().map(|line| line.chars().count()).max().unwrap();
        assert_eq!(render_rows(&table.rows, true, Some(widest)), wide);
    }
}
