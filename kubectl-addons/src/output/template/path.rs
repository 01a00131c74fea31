//! Parses the language of `kubectl -o jsonpath`: text, and expressions in braces.

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// `{.items[*].name}`, or the text between expressions. The values that it finds are printed.
    Print(Vec<TemplateStep>),
    /// `{range .items[*]}…{end}`
    Range(Vec<TemplateStep>, Vec<TemplatePart>),
}

/// One step of an expression, which maps each value to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateStep {
    /// `.name`
    Field(String),
    /// `.*`
    Wildcard,
    /// `..`: the value and everything below it.
    Recursive,
    /// `[0]`, `[1:3]`, `[::2]`
    Slice(ListSlice),
    /// `[0,2]`, `['a','b']`
    Union(Vec<Vec<TemplateStep>>),
    /// `[?(@.name=="web")]`
    Filter(
        Vec<TemplateStep>,
        Option<(FilterOperator, Vec<TemplateStep>)>,
    ),
    /// A text, a number, true or false.
    Constant(serde_json::Value),
}

/// Start, end and step of a list slice. A negative position counts from the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListSlice {
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
pub enum FilterOperator {
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
enum BraceAction {
    Print(Vec<TemplateStep>),
    Range(Vec<TemplateStep>),
    End,
}

/// Parses a template.
///
/// # Errors
/// Describes in a sentence what is wrong with it.
pub fn parse_template(text: &str) -> Result<Vec<TemplatePart>, String> {
    // The enclosing parts of each open range.
    let mut open: Vec<(Vec<TemplateStep>, Vec<TemplatePart>)> = Vec::new();
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        if !before.is_empty() {
            parts.push(TemplatePart::Print(vec![constant(before)]));
        }
        let mut scanner = PathScanner { rest: behind };
        match scanner.parse_action()? {
            BraceAction::Print(steps) => parts.push(TemplatePart::Print(steps)),
            BraceAction::Range(steps) => open.push((steps, std::mem::take(&mut parts))),
            BraceAction::End => {
                let (steps, around) = open.pop().ok_or("{end} without {range}")?;
                let inner = std::mem::replace(&mut parts, around);
                parts.push(TemplatePart::Range(steps, inner));
            }
        }
        rest = scanner.rest;
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Print(vec![constant(rest)]));
    }
    // As in kubectl, the last ranges may stay open.
    while let Some((steps, around)) = open.pop() {
        let inner = std::mem::replace(&mut parts, around);
        parts.push(TemplatePart::Range(steps, inner));
    }
    Ok(parts)
}

/// Parses one expression, as it stands between braces.
fn parse_steps(text: &str) -> Result<Vec<TemplateStep>, String> {
    let closed = format!("{text}}}");
    match (PathScanner { rest: &closed }).parse_action()? {
        BraceAction::Print(steps) => Ok(steps),
        BraceAction::Range(_) | BraceAction::End => Err(format!("{text:?} is not an expression")),
    }
}

fn constant(text: &str) -> TemplateStep {
    TemplateStep::Constant(text.into())
}

/// The text that is not parsed yet.
struct PathScanner<'a> {
    rest: &'a str,
}

impl<'a> PathScanner<'a> {
    /// Parses until the closing brace.
    fn parse_action(&mut self) -> Result<BraceAction, String> {
        let mut steps = Vec::new();
        let mut is_range = false;
        let mut is_end = false;
        loop {
            if let Some(rest) = self.rest.strip_prefix('}') {
                self.rest = rest;
                return Ok(match (is_end, is_range) {
                    (true, _) => BraceAction::End,
                    (false, true) => BraceAction::Range(steps),
                    (false, false) => BraceAction::Print(steps),
                });
            }
            if let Some(rest) = self.rest.strip_prefix("[?(") {
                self.rest = rest;
                steps.push(self.parse_filter()?);
                continue;
            }
            if let Some(rest) = self.rest.strip_prefix("..") {
                if steps.last() == Some(&TemplateStep::Recursive) {
                    return Err(".. follows ..".to_owned());
                }
                self.rest = rest;
                steps.push(TemplateStep::Recursive);
                if rest.starts_with(is_of_word) {
                    steps.push(self.parse_field());
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
                    self.parse_brackets(&mut steps)?;
                }
                '"' | '\'' => {
                    self.skip(first);
                    steps.push(self.parse_quoted(first)?);
                }
                '.' => {
                    self.skip(first);
                    steps.push(self.parse_field());
                }
                '+' | '-' | '0'..='9' => steps.push(self.parse_number()?),
                _ if is_of_word(first) => match self.until(is_end_of_word) {
                    "range" => is_range = true,
                    "end" => is_end = true,
                    word @ ("true" | "false") => {
                        steps.push(TemplateStep::Constant((word == "true").into()));
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
    fn parse_field(&mut self) -> TemplateStep {
        let mut is_escaped = false;
        let end = self.rest.find(|c| {
            let ends = !is_escaped && is_end_of_word(c);
            is_escaped = !is_escaped && c == '\\';
            ends
        });
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        match name {
            "*" => TemplateStep::Wildcard,
            name => TemplateStep::Field(name.replace('\\', "")),
        }
    }

    fn parse_number(&mut self) -> Result<TemplateStep, String> {
        let digits = self.rest.get(1..).unwrap_or_default();
        let end = digits.find(|c: char| c != '.' && !c.is_ascii_digit());
        let (number, rest) = self.rest.split_at(end.unwrap_or(digits.len()) + 1);
        self.rest = rest;
        let wrong = || format!("{number} is not a number");
        if let Ok(number) = number.parse::<i64>() {
            return Ok(TemplateStep::Constant(number.into()));
        }
        let number: f64 = number.parse().map_err(|_| wrong())?;
        Ok(TemplateStep::Constant(number.into()))
    }

    /// Parses a text in quotes, with the escapes of Go.
    fn parse_quoted(&mut self, quote: char) -> Result<TemplateStep, String> {
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
        Ok(TemplateStep::Constant(text.into()))
    }

    /// Parses the content of brackets.
    fn parse_brackets(&mut self, found: &mut Vec<TemplateStep>) -> Result<(), String> {
        let (inner, rest) = self
            .rest
            .split_once(']')
            .filter(|(inner, _)| !inner.contains('\n'))
            .ok_or("a [ is not closed")?;
        self.rest = rest;
        if inner.contains(',') {
            let all = inner.split(',');
            let all = all.map(|one| parse_steps(&format!("[{}]", one.trim_matches(' '))));
            found.push(TemplateStep::Union(all.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let quoted = inner
            .strip_prefix('\'')
            .and_then(|rest| rest.strip_suffix('\''));
        match quoted {
            Some(name) => found.extend(parse_steps(&format!(".{name}"))?),
            None => found.push(TemplateStep::Slice(parse_slice(inner)?)),
        }
        Ok(())
    }

    /// Parses the content of `[?(…)]`.
    fn parse_filter(&mut self) -> Result<TemplateStep, String> {
        let end = end_of_filter(self.rest).ok_or("a filter is not closed")?;
        let (inner, rest) = self.rest.split_at(end);
        self.rest = rest
            .strip_prefix(")]")
            .ok_or("a filter does not end with )]")?;
        let is_sign = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let sign = inner.find(is_sign).filter(|at| *at > 0);
        let Some((left, compared)) = sign.map(|at| inner.split_at(at)) else {
            return Ok(TemplateStep::Filter(parse_steps(inner)?, None));
        };
        let right = compared.trim_start_matches(is_sign);
        let (sign, _) = compared.split_at(compared.len() - right.len());
        let operator = match sign {
            "==" => FilterOperator::Equal,
            "!=" => FilterOperator::NotEqual,
            "<" => FilterOperator::Less,
            "<=" => FilterOperator::LessOrEqual,
            ">" => FilterOperator::Greater,
            ">=" => FilterOperator::GreaterOrEqual,
            other => return Err(format!("{other} is not a comparison")),
        };
        Ok(TemplateStep::Filter(
            parse_steps(left)?,
            Some((operator, parse_steps(right)?)),
        ))
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
fn parse_slice(text: &str) -> Result<ListSlice, String> {
    let wrong = || format!("[{text}] is not a valid index");
    let number = |text: &str| match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| wrong()),
    };
    if text == "*" {
        return Ok(ListSlice::default());
    }
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [""] => Err(wrong()),
        [one] => {
            let from = number(one)?;
            Ok(ListSlice {
                from,
                to: from.and_then(|from: i64| from.checked_add(1)),
                step: None,
                is_one: true,
            })
        }
        [from, to] | [from, to, _] => Ok(ListSlice {
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
