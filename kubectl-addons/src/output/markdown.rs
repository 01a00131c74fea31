//! Markdown for pull requests and issues, as GitHub and GitLab read it. Nothing of a text is markup.

use super::escape_text;

/// Markdown that is being written.
#[derive(Debug)]
pub struct MarkdownPage {
    body: String,
}

impl MarkdownPage {
    /// A page with only its title.
    pub fn new(title: &str) -> Self {
        Self {
            body: format!("## {}\n", escape(title)),
        }
    }

    /// Adds the heading of a part.
    pub fn heading(&mut self, title: &str) {
        self.body.push_str(&format!("\n### {}\n", escape(title)));
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) {
        self.body.push_str(&format!("\n{}\n", escape(text)));
    }

    /// Adds a list. A line that begins with a number is an item by its number.
    pub fn list(&mut self, lines: &[String]) {
        self.body.push('\n');
        for line in lines {
            let mark = if is_numbered(line) { "" } else { "- " };
            self.body.push_str(&format!("{mark}{}\n", escape(line)));
        }
    }

    /// Adds a table, unless it has no rows.
    pub fn table<const N: usize>(
        &mut self,
        header: &[&str; N],
        rows: impl Iterator<Item = [String; N]>,
    ) {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return;
        }
        let header = line(&header.map(str::to_owned));
        let rule = line(&[const { "---" }; N].map(str::to_owned));
        self.body.push_str(&format!("\n{header}{rule}"));
        for cells in rows {
            self.body.push_str(&line(&cells.map(|cell| escape(&cell))));
        }
    }

    /// Adds lines as they are, unless there are none. `language` colours them.
    pub fn code(&mut self, language: &str, lines: &str) {
        if lines.is_empty() {
            return;
        }
        let (fence, lines) = (fence(lines), escape_text(lines));
        self.body
            .push_str(&format!("\n{fence}{language}\n{lines}\n{fence}\n"));
    }

    /// Adds lines that a click shows, unless there are none.
    pub fn fold(&mut self, title: &str, language: &str, lines: &str) {
        if lines.is_empty() {
            return;
        }
        let title = escape(title);
        self.body
            .push_str(&format!("\n<details><summary>{title}</summary>\n"));
        self.code(language, lines);
        self.body.push_str("\n</details>\n");
    }

    /// Adds a paragraph that ends with a command.
    pub fn code_line(&mut self, text: &str, command: &str) {
        let (text, command) = (escape(text), escape_text(command).replace('\n', " "));
        let quote = "`".repeat(longest_run(&command) + 1);
        self.body
            .push_str(&format!("\n{text} {quote}{command}{quote}\n"));
    }

    /// Returns the whole text.
    pub fn finish(self) -> String {
        self.body
    }
}

/// Whether a line begins with a number, which already makes it a list item.
fn is_numbered(line: &str) -> bool {
    let number = line.split_once(". ").map(|(number, _)| number);
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Returns more backticks than the text has in a row.
fn fence(text: &str) -> String {
    "`".repeat(longest_run(text).max(2) + 1)
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or_default()
}

fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in escape_text(text).chars() {
        match c {
            '\n' | '\t' => shown.push(' '),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '~' | '#' => {
                shown.push('\\');
                shown.push(c);
            }
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_line_is_an_item_by_its_number() {
        assert!(is_numbered(
            "1. before Kubernetes: kubectl addons upgrade web"
        ));
        assert!(!is_numbered("east: 1. upgrade Kubernetes to 1.37"));
        assert!(!is_numbered("blocked: web. 1"));
    }

    #[test]
    fn nothing_of_a_text_is_markup() {
        let evil = "```\n</details><b>|\u{202e}";
        let mut page = MarkdownPage::new(evil);
        page.text(evil);
        page.fold("Objects", "diff", evil);
        page.code_line("Made by", "kubectl addons diff `a`");
        assert_eq!(
            page.finish(),
            "## \\`\\`\\` \\</details\\>\\<b\\>\\|\\\\u202e\n\
             \n\\`\\`\\` \\</details\\>\\<b\\>\\|\\\\u202e\n\
             \n<details><summary>Objects</summary>\n\
             \n````diff\n```\n</details><b>|\\u202e\n````\n\
             \n</details>\n\
             \nMade by ``kubectl addons diff `a```\n"
        );
    }
}
