//! Computes an upper bound of the cost of a condition, before it is evaluated.
//!
//! A step is the evaluation of a part of the expression, or [`ELEMENTS_PER_STEP`] bytes or elements that it reads or writes. A comprehension
//! takes its steps once for each element, so the size of every value is bounded as well, beginning with the literals and the facts of a
//! cluster.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators,
};

use super::{COMPREHENSIONS, ExpressionError, LABELS, TEXT, is_fact};

/// Number of bytes or elements that one step of the evaluation reads or writes.
const ELEMENTS_PER_STEP: u64 = 8;
/// The longest key or value of a label.
const LABEL: u64 = 317;
/// The steps for compiling a regular expression, which happens at each evaluation: for an ordinary one, and for one that repeats parts by
/// a number or is not a literal.
const PATTERN: u64 = 5_000;
const LARGE_PATTERN: u64 = 500_000;
/// Functions that write as much as the product of what they read.
const MULTIPLYING: [&str; 2] = ["join", "replace"];
/// Functions with regular expressions.
const PATTERNS: [&str; 3] = ["matches", "find", "findAll"];
/// Functions that return a number or a boolean.
const SCALAR: [&str; 13] = [
    "compareTo",
    "contains",
    "endsWith",
    "indexOf",
    "isGreaterThan",
    "isLessThan",
    "isSemver",
    "isSorted",
    "lastIndexOf",
    "major",
    "matches",
    "size",
    "startsWith",
];

/// An upper bound of the size of a value.
#[derive(Clone, Debug)]
struct ValueSize {
    /// The elements of a list or a map, the bytes of a text, or 1 for anything else.
    length: u64,
    /// The largest element of a list or a map.
    element: Option<Box<Self>>,
}

/// The steps, and the size of the value.
type ExpressionCost = (u64, ValueSize);
/// The variables of the comprehensions around an expression.
type VariableScope<'a> = Vec<(&'a str, ValueSize)>;

/// Returns the most steps of a condition, and checks that it reads only facts.
///
/// # Errors
/// [`ExpressionError::NoSuchFact`], [`ExpressionError::TooExpensive`].
pub(super) fn count_steps(condition: &Expr) -> Result<u64, ExpressionError> {
    let (steps, _) = expression_cost(condition, &mut Vec::new())?;
    Ok(steps)
}

impl ValueSize {
    fn flat(length: u64) -> Self {
        Self {
            length,
            element: None,
        }
    }

    fn list(length: u64, element: Self) -> Self {
        Self {
            length,
            element: Some(Box::new(element)),
        }
    }

    /// Returns the size of an element. Elements of a text are at most as long as the text.
    fn element(&self) -> Self {
        match &self.element {
            Some(element) => Self::clone(element),
            None => Self::flat(self.length),
        }
    }

    /// Returns the size of the value with everything in it.
    fn weight(&self) -> u64 {
        let element = self.element.as_ref().map_or(0, |element| element.weight());
        self.length.saturating_mul(element.saturating_add(1))
    }

    /// Returns the size of two values joined, with elements as large as those of the larger one.
    fn join_with(self, other: Self) -> Self {
        let length = self.length.saturating_add(other.length);
        Self {
            length,
            ..self.max_with(other)
        }
    }

    /// Returns a size that covers both values.
    fn max_with(self, other: Self) -> Self {
        let element = match (self.element, other.element) {
            (None, None) => None,
            (Some(one), Some(another)) => Some(one.max_with(*another)),
            (Some(one), None) => Some(one.max_with(Self::flat(other.length))),
            (None, Some(another)) => Some(another.max_with(Self::flat(self.length))),
        };
        Self {
            length: self.length.max(other.length),
            element: element.map(Box::new),
        }
    }
}

fn expression_cost<'a>(
    expression: &'a Expr,
    scope: &mut VariableScope<'a>,
) -> Result<ExpressionCost, ExpressionError> {
    match expression {
        Expr::Literal(LiteralValue::String(text)) => {
            Ok((1, ValueSize::flat(count(text.inner().len()))))
        }
        Expr::Literal(LiteralValue::Bytes(bytes)) => {
            Ok((1, ValueSize::flat(count(bytes.inner().len()))))
        }
        Expr::Unspecified | Expr::Literal(_) => Ok((1, ValueSize::flat(1))),
        Expr::Ident(name) => Ok((1, variable_size(name, scope)?)),
        Expr::Select(select) => {
            let (steps, operand) = expression_cost(&select.operand.expr, scope)?;
            Ok((steps.saturating_add(1), operand.element()))
        }
        Expr::Call(call) => call_cost(call, scope),
        Expr::List(list) => elements_cost(list.elements.iter().map(|part| &part.expr), scope),
        Expr::Map(map) => {
            let entries = map.entries.iter();
            elements_cost(entries.flat_map(|entry| parts(&entry.expr)), scope)
        }
        Expr::Struct(fields) => {
            let entries = fields.entries.iter();
            elements_cost(entries.flat_map(|entry| parts(&entry.expr)), scope)
        }
        Expr::Comprehension(comprehension) => comprehension_cost(comprehension, scope),
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Returns the key and the value of an entry.
fn parts(entry: &EntryExpr) -> impl Iterator<Item = &Expr> {
    let (key, value) = match entry {
        EntryExpr::StructField(field) => (None, &field.value),
        EntryExpr::MapEntry(entry) => (Some(&entry.key), &entry.value),
    };
    key.into_iter().chain([value]).map(|part| &part.expr)
}

fn variable_size(name: &str, scope: &VariableScope<'_>) -> Result<ValueSize, ExpressionError> {
    let bound = scope.iter().rev().find(|(other, _)| *other == name);
    match (bound, name) {
        (Some((_, size)), _) => Ok(size.clone()),
        (None, "labels") => Ok(ValueSize::list(LABELS, ValueSize::flat(LABEL))),
        (None, fact) if is_fact(fact) => Ok(ValueSize::flat(TEXT)),
        (None, other) => Err(ExpressionError::NoSuchFact {
            name: other.to_owned(),
        }),
    }
}

fn elements_cost<'a>(
    elements: impl Iterator<Item = &'a Expr>,
    scope: &mut VariableScope<'a>,
) -> Result<ExpressionCost, ExpressionError> {
    let (mut steps, mut size) = (1_u64, ValueSize::list(0, ValueSize::flat(0)));
    for element in elements {
        let (more, element) = expression_cost(element, scope)?;
        steps = steps.saturating_add(more);
        size = size.join_with(ValueSize::list(1, element));
    }
    Ok((
        steps.saturating_add(size.weight() / ELEMENTS_PER_STEP),
        size,
    ))
}

fn call_cost<'a>(
    call: &'a CallExpr,
    scope: &mut VariableScope<'a>,
) -> Result<ExpressionCost, ExpressionError> {
    let (mut steps, mut sizes) = (1_u64, Vec::new());
    for part in call.target.as_deref().into_iter().chain(&call.args) {
        let (more, size) = expression_cost(&part.expr, scope)?;
        steps = steps.saturating_add(more);
        sizes.push(size);
    }
    let sum = |all: u64, size: &ValueSize| all.saturating_add(size.weight());
    let product = |all: u64, size: &ValueSize| all.saturating_mul(size.weight().saturating_add(1));
    let read = sizes.iter().fold(0, sum);
    let name = call.func_name.as_str();
    let is_operator = name.starts_with(|first: char| !first.is_ascii_alphabetic());
    let (looked_at, size) = match name {
        operators::ADD => (read, sizes.into_iter().reduce(ValueSize::join_with)),
        operators::CONDITIONAL => (0, sizes.into_iter().skip(1).reduce(ValueSize::max_with)),
        operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT => {
            (0, sizes.first().map(ValueSize::element))
        }
        // Its length is the value of a number, which can be any.
        "lists.range" | "range" => (u64::MAX, None),
        _ if MULTIPLYING.contains(&name) => {
            let written = sizes.iter().fold(1, product);
            (written, Some(ValueSize::flat(written)))
        }
        _ if is_operator || SCALAR.contains(&name) => (read, None),
        // No other function writes more than it reads.
        _ => (read, Some(ValueSize::flat(read))),
    };
    if PATTERNS.contains(&name) {
        let is_usual = call.args.iter().all(|part| is_simple_pattern(&part.expr));
        steps = steps.saturating_add(if is_usual { PATTERN } else { LARGE_PATTERN });
    }
    let size = size.unwrap_or_else(|| ValueSize::flat(1));
    Ok((steps.saturating_add(looked_at / ELEMENTS_PER_STEP), size))
}

/// Returns whether an argument is a number, or a text that repeats nothing by a number.
fn is_simple_pattern(argument: &Expr) -> bool {
    match argument {
        Expr::Literal(LiteralValue::String(text)) => !text.inner().contains('{'),
        Expr::Literal(_) => true,
        _ => false,
    }
}

fn comprehension_cost<'a>(
    one: &'a ComprehensionExpr,
    scope: &mut VariableScope<'a>,
) -> Result<ExpressionCost, ExpressionError> {
    let (of_range, range) = expression_cost(&one.iter_range.expr, scope)?;
    let (of_start, start) = expression_cost(&one.accu_init.expr, scope)?;
    // Each comprehension has a result variable of this name.
    let around = scope.iter().filter(|(name, _)| *name == one.accu_var);
    if around.count() >= COMPREHENSIONS {
        return Err(ExpressionError::TooExpensive);
    }
    let before = scope.len();
    let variables = [Some(&one.iter_var), one.iter_var2.as_ref()];
    let variables = variables.into_iter().flatten();
    scope.extend(variables.map(|name| (name.as_str(), range.element())));
    scope.push((one.accu_var.as_str(), start.clone()));
    // No macro lets a condition name the result, so each element adds as much to it as the first one does.
    let (_, first) = expression_cost(&one.loop_step.expr, scope)?;
    let added = first.length.saturating_sub(start.length);
    let length = added
        .saturating_mul(range.length)
        .saturating_add(start.length);
    let end = ValueSize {
        length,
        ..first.max_with(start)
    };
    if let Some((_, result)) = scope.last_mut() {
        *result = end;
    }
    let (of_condition, _) = expression_cost(&one.loop_cond.expr, scope)?;
    let (of_step, _) = expression_cost(&one.loop_step.expr, scope)?;
    let (of_result, size) = expression_cost(&one.result.expr, scope)?;
    scope.truncate(before);
    let each = of_condition.saturating_add(of_step);
    let steps = [of_range, of_start, of_result]
        .into_iter()
        .fold(range.length.saturating_mul(each), u64::saturating_add);
    Ok((steps, size))
}
