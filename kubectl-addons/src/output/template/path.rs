//! Parses the language of `kubectl -o jsonpath`: text, and expressions in braces.

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// `{.items[*].name}`, or the text between expressions. The values that it finds are printed.
    Print(Vec<Step>),
    /// `{range .items[*]}…{end}`
    Range(Vec<Step>, Vec<Part>),
}

/// One step of an expression, which maps each value to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `.name`
    Field(String),
    /// `.*`
    Wildcard,
    /// `..`: the value and everything below it.
    Recursive,
    /// `[0]`, `[1:3]`, `[::2]`
    Slice(Slice),
    /// `[0,2]`, `['a','b']`
    Union(Vec<Vec<Step>>),
    /// `[?(@.name=="web")]`
    Filter(Vec<Step>, Option<(Operator, Vec<Step>)>),
    /// A text, a number, true or false.
    Constant(serde_json::Value),
}

/// Start, end and step of a list slice. A negative position counts from the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The first position.
    pub from: Option<i64>,
    /// The position after the last.
    pub to: Option<i64>,
    /// The distance from one element to the next.
    pub step: Option<i64>,
    /// Whether it is a single position, from which `to` follows.
    pub is_one: bool,
}

/// Comparisons of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// The content of a pair of braces.
enum Action {
    Print(Vec<Step>),
    Range(Vec<Step>),
    End,
}

/// Parses a template.
///
/// # Errors
/// Describes in a sentence what is wrong with it.
pub fn parse(text: &str) -> Result<Vec<Part>, String> {
    // The enclosing parts of each open range.
    let mut open: Vec<(Vec<Step>, Vec<Part>)> = Vec::new();
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        if !before.is_empty() {
            parts.push(Part::Print(vec![constant(before)]));
        }
        let mut scanner = Scanner { rest: behind };
        match scanner.action()? {
            Action::Print(steps) => parts.push(Part::Print(steps)),
            Action::Range(steps) => open.push((steps, std::mem::take(&mut parts))),
            Action::End => {
                let (steps, around) = open.pop().ok_or("{end} without {range}")?;
                let inner = std::mem::replace(&mut parts, around);
                parts.push(Part::Range(steps, inner));
            }
        }
        rest = scanner.rest;
    }
    if !rest.is_empty() {
        parts.push(Part::Print(vec![constant(rest)]));
    }
    // As in kubectl, the last ranges may stay open.
    while let Some((steps, around)) = open.pop() {
        let inner = std::mem::replace(&mut parts, around);
        parts.push(Part::Range(steps, inner));
    }
    Ok(parts)
}

/// Parses one expression, as it stands between braces.
fn steps(text: &str) -> Result<Vec<Step>, String> {
    let closed = format!("{text}}}");
    match (Scanner { rest: &closed }).action()? {
        Action::Print(steps) => Ok(steps),
        Action::Range(_) | Action::End => Err(format!("{text:?} is not an expression")),
    }
}

fn constant(text: &str) -> Step {
    Step::Constant(text.into())
}

/// The text that is not parsed yet.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Parses until the closing brace.
    fn action(&mut self) -> Result<Action, String> {
        let mut steps = Vec::new();
        let mut is_range = false;
        let mut is_end = false;
        loop {
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(match (is_end, is_range) {
                    (true, _) => Action::End,
                    (false, true) => Action::Range(steps),
                    (false, false) => Action::Print(steps),
                });
            }
            if let Some(rest) = self.rest.strip_prefix("[?(") {
                self.rest = rest;
                steps.push(self.filter()?);
                continue;
            }
            if let Some(rest) = self.rest.strip_prefix("..") {
                if steps.last() == Some(&Step::Recursive) {
                    return Err(".. follows ..".to_owned());
                }
                self.rest = rest;
                steps.push(Step::Recursive);
                if rest.starts_with(is_of_word) {
                    steps.push(self.field());
                }
                continue;
            }
            let Some(first) = self.rest.chars().next() else {
                return Err("a { is not closed".to_owned());
            };
            match first {
                '\n' | '\r' => return Err("a { is not closed".to_owned()),
                ' ' | '@' | '$' => self.skip(first),
                '[' => {
                    self.skip(first);
                    self.array(&mut steps)?;
                }
                '"' | '\'' => {
                    self.skip(first);
                    steps.push(self.quoted(first)?);
                }
                '.' => {
                    self.skip(first);
                    steps.push(self.field());
                }
                '+' | '-' | '0'..='9' => steps.push(self.number()?),
                _ if is_of_word(first) => match self.until(is_end_of_word) {
                    "range" => is_range = true,
                    "end" => is_end = true,
                    word @ ("true" | "false") => {
                        steps.push(Step::Constant((word == "true").into()));
                    }
                    word => {
                        return Err(format!("{word} is not a keyword; fields begin with a dot"));
                    }
                },
                other => return Err(format!("unexpected {other:?} in an expression")),
            }
        }
    }

    fn skip(&mut self, first: char) {
        self.rest = self.rest.get(first.len_utf8()..).unwrap_or_default();
    }

    fn until(&mut self, is_end: fn(char) -> bool) -> &'a str {
        let end = self.rest.find(is_end).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Parses a name, in which a backslash escapes a dot.
    fn field(&mut self) -> Step {
        let mut is_escaped = false;
        let end = self.rest.find(|c| {
            let ends = !is_escaped && is_end_of_word(c);
            is_escaped = !is_escaped && c == '\\';
            ends
        });
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        match name {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "")),
        }
    }

    fn number(&mut self) -> Result<Step, String> {
        let digits = self.rest.get(1..).unwrap_or_default();
        let end = digits.find(|c: char| c != '.' && !c.is_ascii_digit());
        let (number, rest) = self.rest.split_at(end.unwrap_or(digits.len()) + 1);
        self.rest = rest;
        let wrong = || format!("{number} is not a number");
        if let Ok(number) = number.parse::<i64>() {
            return Ok(Step::Constant(number.into()));
        }
        let number: f64 = number.parse().map_err(|_| wrong())?;
        Ok(Step::Constant(number.into()))
    }

    /// Parses a text in quotes, with the escapes of Go.
    fn quoted(&mut self, quote: char) -> Result<Step, String> {
        let mut text = String::new();
        let mut rest = self.rest.chars();
        loop {
            match rest.next() {
                None | Some('\n') => return Err("a quote is not closed".to_owned()),
                Some(c) if c == quote => break,
                Some('\\') => text.push(match rest.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some('\\') => '\\',
                    Some(c) if c == quote => c,
                    other => {
                        let escape = other.map(String::from).unwrap_or_default();
                        return Err(format!("\\{escape} is not a known escape"));
                    }
                }),
                Some(c) => text.push(c),
            }
        }
        self.rest = rest.as_str();
        Ok(Step::Constant(text.into()))
    }

    /// Parses the content of brackets.
    fn array(&mut self, found: &mut Vec<Step>) -> Result<(), String> {
        let (inner, rest) = self
            .rest
            .split_once(']')
            .filter(|(inner, _)| !inner.contains('\n'))
            .ok_or("a [ is not closed")?;
        self.rest = rest;
        if inner.contains(',') {
            let all = inner.split(',');
            let all = all.map(|one| steps(&format!("[{}]", one.trim_matches(' '))));
            found.push(Step::Union(all.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let quoted = inner
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''));
        match quoted {
            Some(name) => found.extend(steps(&format!(".{name}"))?),
            None => found.push(Step::Slice(slice(inner)?)),
        }
        Ok(())
    }

    /// Parses the content of `[?(…)]`.
    fn filter(&mut self) -> Result<Step, String> {
        let end = end_of_filter(self.rest).ok_or("a filter is not closed")?;
        let (inner, rest) = self.rest.split_at(end);
        self.rest = rest
            .strip_prefix(")]")
            .ok_or("a filter does not end with )]")?;
        let is_sign = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let sign = inner.find(is_sign).filter(|at| *at > 0);
        let Some((left, compared)) = sign.map(|at| inner.split_at(at)) else {
            return Ok(Step::Filter(steps(inner)?, None));
        };
        let right = compared.trim_start_matches(is_sign);
        let (sign, _) = compared.split_at(compared.len() - right.len());
        let operator = match sign {
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            other => return Err(format!("{other} is not a comparison")),
        };
        Ok(Step::Filter(steps(left)?, Some((operator, steps(right)?))))
    }
}

/// Returns the position of the parenthesis that closes a filter, ignoring those in quotes.
fn end_of_filter(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) && !is_escaped => quote = None,
            ')' if quote.is_none() => return Some(at),
            _ => {}
        }
        is_escaped = c == '\\';
    }
    None
}

/// `*`, `1`, `1:3`, `::2`
fn slice(text: &str) -> Result<Slice, String> {
    let wrong = || format!("[{text}] is not a valid index");
    let number = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| wrong()),
    };
    if text == "*" {
        return Ok(Slice::default());
    }
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [""] => Err(wrong()),
        [one] => {
            let from = number(one)?;
            Ok(Slice {
                from,
                to: from.and_then(|from: i64| from.checked_add(1)),
                step: None,
                is_one: true,
            })
        }
        [from, to] | [from, to, _] => Ok(Slice {
            from: number(from)?,
            to: number(to)?,
            step: number(parts.get(2).copied().unwrap_or_default())?,
            is_one: false,
        }),
        _ => Err(wrong()),
    }
}

fn is_of_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_end_of_word(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}
