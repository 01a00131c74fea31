//! HTML pages: one file each, readable without scripts. Everything in it is escaped, and the page loads nothing.

pub mod graph;

use super::escape_text;

/// The most lines below an object that are shown without a click.
const MAX_OPEN_LINES: usize = 20;
/// With this policy, a browser loads nothing and runs nothing, whatever the page contains.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
const STYLE: &str = "
:root { color-scheme: light dark; --line: #8886; --good: #1a7f37; --bad: #cf222e; --new: #8250df; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 0.8rem 0.2rem 0; border-bottom: 1px solid var(--line); }
td, li, p { overflow-wrap: anywhere; } td:first-child { overflow-wrap: break-word; }
td, svg text { font-family: ui-monospace, monospace; font-size: 13px; }
.good td:first-child { color: var(--good); }
.bad td:first-child { color: var(--bad); }
.new td:first-child { color: var(--new); }
summary { cursor: pointer; padding: 0.2rem 0; }
.tone.good { color: var(--good); } .tone.bad { color: var(--bad); } .tone.new { color: var(--new); }
summary, pre { font-family: ui-monospace, monospace; font-size: 13px; }
pre { margin: 0.2rem 0 0.8rem 1.2rem; white-space: pre-wrap; overflow-wrap: anywhere; }
figure { overflow: auto; max-height: 26rem; margin: 0.5rem 0; border-bottom: 1px solid var(--line); }
svg rect { fill: none; stroke: var(--line); } svg text { fill: currentColor; } svg path { fill: none; stroke: var(--line); }
svg .good rect { stroke: var(--good); } svg .bad rect { stroke: var(--bad); stroke-width: 2; } svg .new rect { stroke: var(--new); }
svg .same { opacity: 0.6; } svg .same rect { stroke-dasharray: 3 3; } svg .kind { font-size: 11px; opacity: 0.75; }
";

/// An HTML page that is being written.
#[derive(Debug)]
pub struct HtmlPage {
    title: String,
    body: String,
}

/// The colour of a row. A word in the row says the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// The colour of text.
    #[default]
    Plain,
    /// Ready, added.
    Good,
    /// Failed, deleted, refused.
    Bad,
    /// Changed.
    New,
}

impl Tone {
    /// The class of an element with this colour, with a blank before it; nothing for plain text.
    fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => " good",
            Self::Bad => " bad",
            Self::New => " new",
        }
    }
}

/// A row of a table.
#[derive(Debug, Default)]
pub struct HtmlRow {
    /// Its colour.
    pub tone: Tone,
    /// Its cells.
    pub cells: Vec<String>,
}

impl HtmlPage {
    /// An empty page, whose title is its first heading.
    pub fn new(title: &str) -> Self {
        let mut page = Self {
            title: title.to_owned(),
            body: String::new(),
        };
        page.element("h1", title);
        page
    }

    /// Adds the heading of an installation.
    pub fn section(&mut self, title: &str) {
        self.element("h2", title);
    }

    /// Adds the heading of a part of a section.
    pub fn part(&mut self, title: &str) {
        self.element("h3", title);
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) {
        self.element("p", text);
    }

    /// Adds a list, unless it is empty.
    pub fn list(&mut self, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.body.push_str("<ul>\n");
        for item in items {
            self.element("li", item);
        }
        self.body.push_str("</ul>\n");
    }

    /// Adds a table, unless it has no rows. It may have no header.
    pub fn table(&mut self, header: &[&str], rows: &[HtmlRow]) {
        if rows.is_empty() {
            return;
        }
        self.body.push_str("<table>\n");
        if !header.is_empty() {
            self.body.push_str("<thead><tr>");
            for cell in header {
                self.body
                    .push_str(&format!("<th scope=\"col\">{}</th>", escape_html(cell)));
            }
            self.body.push_str("</tr></thead>\n");
        }
        self.body.push_str("<tbody>\n");
        for row in rows {
            self.body.push_str(&match row.tone.class() {
                "" => "<tr>".to_owned(),
                class => format!("<tr class=\"{}\">", class.trim_start()),
            });
            for cell in &row.cells {
                self.body
                    .push_str(&format!("<td>{}</td>", escape_html(cell)));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody>\n</table>\n");
    }

    /// Adds an object under a coloured word, with lines of text below it that a click shows and hides.
    pub fn fold(&mut self, tone: Tone, word: &str, title: &str, lines: &[String]) {
        let (class, word, title) = (tone.class(), escape_html(word), escape_html(title));
        let heading = format!("<span class=\"tone{class}\">{word}</span> {title}");
        let (open, below) = match lines.len() {
            0 => ("", String::new()),
            count => {
                let lines: Vec<String> = lines.iter().map(|line| escape_html(line)).collect();
                let below = format!("<pre>{}</pre>", lines.join("\n"));
                (if count <= MAX_OPEN_LINES { " open" } else { "" }, below)
            }
        };
        self.body.push_str(&format!(
            "<details{open}><summary>{heading}</summary>{below}</details>\n"
        ));
    }

    /// Adds a table that a click shows, unless it has no rows.
    pub fn folded_table(&mut self, title: &str, header: &[&str], rows: &[HtmlRow]) {
        if rows.is_empty() {
            return;
        }
        let title = escape_html(title);
        self.body
            .push_str(&format!("<details><summary>{title}</summary>\n"));
        self.table(header, rows);
        self.body.push_str("</details>\n");
    }

    /// Adds a drawing of [`graph`].
    pub fn drawing(&mut self, drawing: &graph::BoxDrawing) {
        self.body.push_str(&drawing.svg());
    }

    /// Returns the whole page.
    pub fn finish(self) -> String {
        let Self { title, body } = self;
        let title = escape_html(&title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
        )
    }

    fn element(&mut self, name: &str, text: &str) {
        let text = escape_html(text);
        self.body.push_str(&format!("<{name}>{text}</{name}>\n"));
    }
}

/// Escapes text for HTML, and for terminals as [`escape_text`] does.
fn escape_html(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in escape_text(text).chars() {
        match c {
            '&' => shown.push_str("&amp;"),
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '"' => shown.push_str("&quot;"),
            '\'' => shown.push_str("&#39;"),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup() {
        let evil = "<script>alert(1)</script>&\"'\u{202e}";
        let mut page = HtmlPage::new(evil);
        page.section(evil);
        page.part(evil);
        page.text(evil);
        page.list(&[evil.to_owned()]);
        let row = HtmlRow {
            tone: Tone::Bad,
            cells: vec![evil.to_owned()],
        };
        page.table(&[evil], &[row]);
        page.fold(Tone::Bad, evil, evil, &[evil.to_owned()]);
        page.folded_table(evil, &[evil], &[HtmlRow::default()]);
        page.drawing(&graph::BoxDrawing {
            columns: vec![vec![graph::DrawnBox {
                id: 0,
                kind: evil.to_owned(),
                name: evil.to_owned(),
                tone: None,
            }]],
            arrows: Vec::new(),
        });
        let html = page.finish();
        let shown = "&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;&#39;\\u202e";
        // Title, four headings and paragraphs, an item, two cells, a fold and its line, a folded table, and a box: its full
        // text, kind and name.
        assert_eq!(html.matches(shown).count(), 17, "{html}");
        assert!(!html.contains("<script") && !html.contains('\u{202e}'));
    }

    #[test]
    fn nothing_is_loaded() {
        let html = HtmlPage::new("a").finish();
        for word in [
            "src=", "href=", "url(", "@import", "<script", "http:", "https:",
        ] {
            assert!(!html.contains(word), "{word}");
        }
        assert!(html.contains("default-src 'none'"));
    }
}
