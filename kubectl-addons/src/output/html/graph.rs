//! Draws boxes in columns, with arrows from one column to a later one.

use std::collections::BTreeMap;

use common::text::shorten;

use super::escape_html;

/// The most boxes that are drawn. A table lists the same objects.
const MAX_BOXES: usize = 120;
/// The most characters that a box shows.
const MAX_CHARACTERS: usize = 34;
const WIDTH: usize = 260;
const HEIGHT: usize = 26;
/// The distance from one box to the next.
const ROW_DISTANCE: usize = 38;
const COLUMN_DISTANCE: usize = 330;

/// The boxes and arrows of a drawing.
#[derive(Debug, Default)]
pub struct BoxDrawing {
    /// The boxes of each column: a number and a text.
    pub columns: Vec<Vec<(usize, String)>>,
    /// The numbers of the boxes that each arrow connects.
    pub arrows: Vec<(usize, usize)>,
}

impl BoxDrawing {
    /// Renders the drawing as SVG in a figure. Empty if there are no boxes, or too many.
    pub(super) fn svg(&self) -> String {
        let boxes: usize = self.columns.iter().map(Vec::len).sum();
        if boxes == 0 || boxes > MAX_BOXES {
            return String::new();
        }
        let mut places = BTreeMap::new();
        let mut shapes = String::new();
        for (column, boxes) in self.columns.iter().enumerate() {
            for (row, (id, text)) in boxes.iter().enumerate() {
                let (x, y) = (column * COLUMN_DISTANCE + 4, row * ROW_DISTANCE + 4);
                places.insert(*id, (x, y + HEIGHT / 2));
                let whole = escape_html(text);
                let shown = escape_html(&shorten(text.clone(), MAX_CHARACTERS));
                shapes.push_str(&format!(
                    "<g><title>{whole}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"4\"/>\
                     <text x=\"{}\" y=\"{}\">{shown}</text></g>\n",
                    x + 8,
                    y + 18
                ));
            }
        }
        for (from, to) in &self.arrows {
            if let (Some((x1, y1)), Some((x2, y2))) = (places.get(from), places.get(to)) {
                let x1 = x1 + WIDTH;
                let middle = (x1 + x2) / 2;
                shapes.push_str(&format!(
                    "<path d=\"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}\"/>\n"
                ));
            }
        }
        let rows = self.columns.iter().map(Vec::len).max().unwrap_or_default();
        let width = self.columns.len() * COLUMN_DISTANCE;
        let height = rows * ROW_DISTANCE + 8;
        format!(
            "<figure><svg width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"order of the objects\">\n{shapes}</svg></figure>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_and_arrows() {
        let long = "a".repeat(MAX_CHARACTERS + 1);
        let drawing = BoxDrawing {
            columns: vec![vec![(0, "one".to_owned())], vec![(1, long.clone())]],
            arrows: vec![(0, 1), (0, 7)],
        };
        let svg = drawing.svg();
        assert_eq!(svg.matches("<rect").count(), 2);
        assert_eq!(svg.matches("<path").count(), 1);
        assert!(svg.contains(&format!("<title>{long}</title>")) && svg.contains('…'));
        let many = (0..=MAX_BOXES).map(|id| (id, "x".to_owned())).collect();
        let drawing = BoxDrawing {
            columns: vec![many],
            ..BoxDrawing::default()
        };
        assert_eq!(drawing.svg(), "");
    }
}
