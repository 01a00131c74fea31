//! Draws boxes in columns, with arrows from one column to a later one.

use std::collections::BTreeMap;

use super::{Tone, escape_html};

/// The most boxes that are drawn. A table lists the same objects.
const MAX_BOXES: usize = 120;
/// The most characters of a line in a box: what fits between its sides in the font of the page.
const MAX_CHARACTERS: usize = 30;
const WIDTH: usize = 260;
const HEIGHT: usize = 40;
/// The distance from one box to the next.
const ROW_DISTANCE: usize = 50;
const COLUMN_DISTANCE: usize = 320;

/// The boxes and arrows of a drawing.
#[derive(Debug, Default)]
pub struct BoxDrawing {
    /// The boxes of each column.
    pub columns: Vec<Vec<DrawnBox>>,
    /// The numbers of the boxes that each arrow connects.
    pub arrows: Vec<(usize, usize)>,
}

/// An object in a drawing.
#[derive(Debug)]
pub struct DrawnBox {
    /// Its number.
    pub id: usize,
    /// The first line, in small letters.
    pub kind: String,
    /// The second line.
    pub name: String,
    /// The colour of its frame; `None` for an object that does not change, whose frame is dashed.
    pub tone: Option<Tone>,
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
            for (row, drawn) in boxes.iter().enumerate() {
                let (x, y) = (column * COLUMN_DISTANCE + 4, row * ROW_DISTANCE + 4);
                places.insert(drawn.id, (x, y + HEIGHT / 2));
                shapes.push_str(&drawn.svg(x, y));
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

impl DrawnBox {
    fn svg(&self, x: usize, y: usize) -> String {
        let class = self.tone.map_or(" same", Tone::class).trim_start();
        let whole = escape_html(&format!("{} {}", self.kind, self.name));
        let [kind, name] = [&self.kind, &self.name].map(|text| escape_html(&cut_middle(text)));
        let x_text = x + 8;
        format!(
            "<g class=\"{class}\"><title>{whole}</title><rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"4\"/>\
             <text class=\"kind\" x=\"{x_text}\" y=\"{}\">{kind}</text><text x=\"{x_text}\" y=\"{}\">{name}</text></g>\n",
            y + 15,
            y + 32,
        )
    }
}

/// Cuts a text to [`MAX_CHARACTERS`] in its middle: names of objects often begin alike and differ at the end.
fn cut_middle(text: &str) -> String {
    let length = text.chars().count();
    if length <= MAX_CHARACTERS {
        return text.to_owned();
    }
    let head = MAX_CHARACTERS / 3;
    let tail = MAX_CHARACTERS - 1 - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(id: usize, name: &str, tone: Option<Tone>) -> DrawnBox {
        DrawnBox {
            id,
            kind: "Deployment".to_owned(),
            name: name.to_owned(),
            tone,
        }
    }

    #[test]
    fn boxes_and_arrows() {
        let long = format!("{}-webhook", "a".repeat(MAX_CHARACTERS));
        let drawing = BoxDrawing {
            columns: vec![
                vec![drawn(0, "one", Some(Tone::New))],
                vec![drawn(1, &long, None)],
            ],
            arrows: vec![(0, 1), (0, 7)],
        };
        let svg = drawing.svg();
        assert_eq!(svg.matches("<rect").count(), 2);
        assert_eq!(svg.matches("<path").count(), 1);
        assert!(svg.contains(&format!("<title>Deployment {long}</title>")));
        assert!(svg.contains("…aaaaaaaaaaa-webhook</text>"), "{svg}");
        assert_eq!(svg.matches("class=\"same\"").count(), 1);
        let many = (0..=MAX_BOXES).map(|id| drawn(id, "x", None)).collect();
        let drawing = BoxDrawing {
            columns: vec![many],
            ..BoxDrawing::default()
        };
        assert_eq!(drawing.svg(), "");
    }

    #[test]
    fn a_long_name_keeps_its_end() {
        let name = format!("{}-controller-manager", "x".repeat(40));
        let shown = cut_middle(&name);
        assert_eq!(shown.chars().count(), MAX_CHARACTERS);
        assert!(shown.ends_with("controller-manager"), "{shown}");
        assert_eq!(cut_middle("short"), "short");
    }
}
