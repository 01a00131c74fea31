//! Prints columns that never wrap, as kubectl does.

use crate::cli::Listing;

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
                "–".to_owned()
            } else {
                cell
            }
        };
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// Renders the text: columns as wide as their widest cell, with three blanks between them.
    pub fn render(&self) -> String {
        render_rows(&self.rows)
    }

    /// Renders the text, without the header if `--no-headers` is set.
    pub fn render_listing(&self, asked: Listing) -> String {
        render_rows(
            self.rows
                .get(usize::from(asked.no_headers)..)
                .unwrap_or_default(),
        )
    }
}

fn render_rows(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&super::pad_text(cell, *width));
            line.push_str("   ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
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
}
