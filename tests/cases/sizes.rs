//! How long files and functions may be, of every Rust file in the repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// Lines of a file.
const FILE: usize = 400;
/// Lines of a function, from its `fn` to its closing brace.
const FUNCTION: usize = 80;

/// Functions that are still too long, as (file, function). The list only gets shorter: split one, then take its row out.
const KNOWN: &[(&str, &str)] = &[
    (
        "common/engine/src/error/classify/causes/tests.rs",
        "fields_that_never_change",
    ),
    (
        "common/engine/src/execute/scheduler/tests.rs",
        "an_object_waits_for_its_version",
    ),
    (
        "common/src/admission/mutate/tests.rs",
        "only_installations_that_are_made_or_changed_are_patched",
    ),
    (
        "common/src/manifest/managed_fields.rs",
        "client_side_managers_become_ours",
    ),
    (
        "common/src/plan/crd_safety/tests.rs",
        "changes_and_the_objects_they_break",
    ),
    (
        "common/src/plan/graph/annotations/tests.rs",
        "what_the_tool_refuses_is_refused",
    ),
    ("common/src/plan/planner.rs", "install"),
    ("common/src/plan/planner/tests/applying.rs", "decisions"),
    ("common/src/plan/schema/tests.rs", "what_a_schema_says"),
    ("common/src/readiness/tests/workload.rs", "deployments"),
    (
        "common/src/render/chart/tests.rs",
        "dependencies_are_found_or_refused",
    ),
];

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    /// Its first line, counted from 1.
    line: usize,
    lines: usize,
}

#[test]
fn no_file_and_no_function_is_too_long() -> Result<()> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut files = Vec::new();
    rust_files(root, &mut files)?;
    ensure!(files.len() > 100, "only {} files found", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let file = path.strip_prefix(root)?.display().to_string();
        let lines = text.lines().count();
        if lines > FILE {
            wrong.push(format!("{file}: {lines} lines, {FILE} at most"));
        }
        for function in functions(&text) {
            let Function { name, line, lines } = &function;
            if *lines > FUNCTION && !KNOWN.contains(&(file.as_str(), name.as_str())) {
                wrong.push(format!(
                    "{file}:{line}: fn {name} has {lines} lines, {FUNCTION} at most"
                ));
            }
        }
    }
    wrong.sort();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Every Rust file below the folder; nothing of `target` and of hidden folders.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                rust_files(&path, files)?;
            }
        } else if name.ends_with(".rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// The functions of a file. A pointer type (`fn(u8)`) and a declaration without a body are not functions.
fn functions(text: &str) -> Vec<Function> {
    let code = code(text);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn") {
        let (before, after) = (&code[..at], &code[at + 2..]);
        let is_word = !before.ends_with(is_part_of_name) && after.starts_with(char::is_whitespace);
        let name: String = after
            .trim_start()
            .chars()
            .take_while(|c| is_part_of_name(*c))
            .collect();
        if is_word
            && !name.is_empty()
            && let Some(length) = length(after)
        {
            found.push(Function {
                name,
                line: before.matches('\n').count() + 1,
                lines: after[..length].matches('\n').count() + 1,
            });
        }
    }
    found
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How far it is from behind `fn` to the closing brace; `None` without a body.
fn length(code: &str) -> Option<usize> {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            ';' if braces == 0 && others == 0 => return None,
            // A brace inside of brackets before the body is a constant: `[u8; { N }]`.
            '{' if braces > 0 || others == 0 => braces += 1,
            '}' if braces == 1 => return Some(at),
            '}' if braces > 1 => braces -= 1,
            _ => {}
        }
    }
    None
}

/// The text without comments, and with strings and characters emptied; every line stays on its line.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if let Some(hashes) = raw_string(&code, rest) {
            let end = format!("\"{}", "#".repeat(hashes));
            let begin = hashes + 2;
            let inside = rest.get(begin..).and_then(|inside| inside.find(&end));
            inside.map_or(rest.len(), |inside| begin + inside + end.len())
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        code.extend(rest[..skipped].matches('\n'));
        // What was skipped stands between two words.
        code.push(' ');
        rest = &rest[skipped..];
    }
    code
}

/// How long a block comment is, with those inside of it.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// With how many `#` a raw string begins here: `r"`, `r#"`; the `b` or `c` before it is part of the code already.
fn raw_string(code: &str, text: &str) -> Option<usize> {
    let behind = text.strip_prefix('r')?;
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    let mut before = code.chars().rev();
    let is_new_word = match before.next() {
        Some('b' | 'c') => !before.next().is_some_and(is_part_of_name),
        Some(c) => !is_part_of_name(c),
        None => true,
    };
    (is_new_word && behind[hashes..].starts_with('"')).then_some(hashes)
}

/// Whether this is a character, not a lifetime: `'a'` and `'\n'`, but `'a` and `'static`.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

/// How long a literal is that ends with `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[test]
fn braces_outside_of_code_do_not_count() {
    let found = |text: &str| -> Vec<(String, usize, usize)> {
        let functions = functions(text).into_iter();
        functions.map(|f| (f.name, f.line, f.lines)).collect()
    };
    let one = |lines| vec![("f".to_owned(), 1, lines)];
    for (text, expected) in [
        ("fn f() {}", one(1)),
        ("fn f() {\n}\n", one(2)),
        ("fn f() {\n  \"}\"; '}'; '\\''; b'{'; // }\n}", one(3)),
        ("fn f() {\n  /* } /* } */ } */\n}", one(3)),
        ("fn f() {\n  r#\"}\"}\"#; br\"\\\"; \"\\\"}\";\n}", one(3)),
        ("fn f() {\n  \"a\n}\n\";\n}", one(5)),
        ("fn f<'a>(x: &'a str) -> &'a str {\n  x\n}", one(3)),
        ("fn f(x: [u8; { N }]) -> [u8; 2] {\n}", one(2)),
        ("fn f(x: fn(u8) -> u8)\nwhere\n  T: X,\n{\n}", one(5)),
        ("trait X { fn f(x: [u8; 2]); }", vec![]),
        ("type X = fn(u8) -> u8; // fn f() {}", vec![]),
        ("let s = \"fn f() {}\"; let fn_f = 1;", vec![]),
        (
            "fn f() {\n  fn g() {\n  }\n}",
            vec![("f".to_owned(), 1, 4), ("g".to_owned(), 2, 2)],
        ),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}
