//! The reference of commands and fields, made of what the plugin parses and of the definitions of our objects.

pub mod commands;
pub mod fields;
pub mod manual;

/// Characters of a line of a page.
const WIDTH: usize = 100;

/// File names below `kubectl-addons/docs`, and what stands in them.
///
/// # Errors
/// A definition that cannot be read.
pub fn files() -> anyhow::Result<Vec<(String, String)>> {
    Ok(vec![
        ("command-reference.md".to_owned(), commands::page()),
        ("field-reference.md".to_owned(), fields::page()?),
    ])
}

/// A text in lines that fit a page; its paragraphs stay apart.
fn wrapped(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let mut lines = vec![String::new()];
        for word in paragraph.split_whitespace() {
            let full = lines.last().is_some_and(|line| {
                !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH
            });
            if full {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
        lines.join("\n")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_cells_are_one_line() {
        let text = format!("{} end\n\nnext", "word ".repeat(30).trim());
        let lines = wrapped(&text);
        assert!(lines.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(lines.ends_with("end\n\nnext"), "{lines}");
        assert_eq!(cell("a|b\n  c"), "a\\|b c");
    }
}
