//! Computes an upper bound of the cost of an expression, before it is evaluated.
//!
//! A step is the evaluation of a part of the expression, or [`ELEMENTS_PER_STEP`] bytes or elements that it reads or writes. A comprehension
//! takes its steps once for each element, so the size of every value is bounded as well, beginning with the literals and the variables.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};
use kube_cel::cel::{Context, ExecutionError};
use serde_json::Value as Json;

use super::{COMPREHENSIONS, ExpressionError};

/// Number of bytes or elements that one step of the evaluation reads or writes.
const ELEMENTS_PER_STEP: u64 = 8;
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
pub(super) struct ValueSize {
    /// The elements of a list or a map, the bytes of a text, or 1 for anything else.
    length: u64,
    /// The size with everything in it.
    weight: u64,
    /// The longest key of a map; `None` for anything else.
    key: Option<u64>,
    /// The largest element of a list or a map.
    element: Option<Box<Self>>,
    /// The fields of a map, if they are known.
    fields: BTreeMap<String, Self>,
}

/// The steps, and the size of the value.
type ExpressionCost = (u64, ValueSize);

/// The names of an expression, while it is walked.
struct Scope<'a, 'c> {
    /// The variables of the comprehensions around the expression.
    bound: Vec<(&'a str, ValueSize)>,
    /// Returns the size of any other variable.
    size_of: &'c mut dyn FnMut(&str) -> Result<ValueSize, ExpressionError>,
    /// A context with every function.
    functions: &'c Context<'c>,
}

/// Returns the most steps of an expression. `size_of` returns the size of a variable, or an error if there is no such variable.
/// `functions`: a context with every function and no variable.
///
/// # Errors
/// Those of `size_of`; [`ExpressionError::TooExpensive`], [`ExpressionError::TypedObject`], [`ExpressionError::NoSuchFunction`].
pub(super) fn count_steps(
    expression: &Expr,
    functions: &Context<'_>,
    size_of: &mut dyn FnMut(&str) -> Result<ValueSize, ExpressionError>,
) -> Result<u64, ExpressionError> {
    let mut scope = Scope {
        bound: Vec::new(),
        size_of,
        functions,
    };
    let (steps, _) = expression_cost(expression, &mut scope)?;
    Ok(steps)
}

impl ValueSize {
    pub(super) fn flat(length: u64) -> Self {
        Self {
            length,
            weight: length,
            key: None,
            element: None,
            fields: BTreeMap::new(),
        }
    }

    pub(super) fn list(length: u64, element: Self) -> Self {
        Self {
            weight: length.saturating_mul(element.weight.saturating_add(1)),
            element: Some(Box::new(element)),
            ..Self::flat(length)
        }
    }

    pub(super) fn map(length: u64, key: u64, element: Self) -> Self {
        let of_key = key.saturating_add(element.weight).saturating_add(1);
        Self {
            weight: length.saturating_mul(of_key),
            key: Some(key),
            ..Self::list(length, element)
        }
    }

    /// Returns the size of a value.
    pub(super) fn of_json(value: &Json) -> Self {
        match value {
            Json::Null | Json::Bool(_) | Json::Number(_) => Self::flat(1),
            Json::String(text) => Self::flat(count(text.len())),
            Json::Array(elements) => {
                let elements = elements.iter().map(|it| Self::list(1, Self::of_json(it)));
                elements.fold(Self::list(0, Self::flat(0)), Self::join_with)
            }
            Json::Object(fields) => {
                let (mut size, mut sizes) = (Self::map(0, 0, Self::flat(0)), BTreeMap::new());
                for (name, value) in fields {
                    let (value, key) = (Self::of_json(value), count(name.len()));
                    size = size.join_with(Self::map(1, key, value.clone()));
                    sizes.insert(name.clone(), value);
                }
                size.fields = sizes;
                size
            }
        }
    }

    /// Returns the size of an element. Elements of a text are at most as long as the text.
    fn element(&self) -> Self {
        match &self.element {
            Some(element) => Self::clone(element),
            None => Self::flat(self.length),
        }
    }

    /// Returns the size of what a comprehension iterates over: the keys of a map, the elements of a list.
    fn iterated(&self) -> Self {
        self.key.map_or_else(|| self.element(), Self::flat)
    }

    /// Returns the size of a field.
    fn field(&self, name: &str) -> Self {
        self.fields
            .get(name)
            .cloned()
            .unwrap_or_else(|| self.element())
    }

    /// Returns the size of two values joined, with elements as large as those of the larger one.
    fn join_with(self, other: Self) -> Self {
        let length = self.length.saturating_add(other.length);
        let weight = self.weight.saturating_add(other.weight);
        Self {
            length,
            weight,
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
        // What may be something else than a map counts as a list, whose elements are as long as the keys.
        let longest_key = self.key.max(other.key);
        let (key, element) = match (self.key, other.key, longest_key) {
            (Some(_), Some(_), longest) => (longest, element),
            (_, _, None) => (None, element),
            (_, _, Some(longest)) => {
                let key = Self::flat(longest);
                (
                    None,
                    Some(element.map_or(key.clone(), |it| it.max_with(key))),
                )
            }
        };
        Self {
            length: self.length.max(other.length),
            weight: self.weight.max(other.weight),
            key,
            element: element.map(Box::new),
            fields: BTreeMap::new(),
        }
    }
}

impl Scope<'_, '_> {
    /// Whether a function exists: `size`, or `base64.encode` with a prefix. A call without arguments shows it.
    fn has_function(&self, prefix: Option<&str>, name: &str) -> bool {
        let part = |expr: Expr| IdedExpr { id: 0, expr };
        let call = Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: prefix.map(|prefix| Box::new(part(Expr::Ident(prefix.to_owned())))),
            args: Vec::new(),
        });
        !matches!(
            self.functions.resolve(&part(call)),
            Err(ExecutionError::UndeclaredReference(_))
        )
    }
}

fn expression_cost<'a>(
    expression: &'a Expr,
    scope: &mut Scope<'a, '_>,
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
            let field = match select.test {
                true => ValueSize::flat(1),
                // The interpreter copies it.
                false => operand.field(&select.field),
            };
            let steps = steps.saturating_add(1 + field.weight / ELEMENTS_PER_STEP);
            Ok((steps, field))
        }
        Expr::Call(call) => call_cost(call, scope),
        Expr::List(list) => elements_cost(list.elements.iter().map(|part| &part.expr), scope),
        Expr::Map(map) => {
            let entries = map.entries.iter();
            elements_cost(entries.flat_map(|entry| parts(&entry.expr)), scope)
        }
        Expr::Struct(_) => Err(ExpressionError::TypedObject),
        Expr::Comprehension(comprehension) => comprehension_cost(comprehension, scope),
    }
}

pub(super) fn count(length: usize) -> u64 {
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

fn variable_size(name: &str, scope: &mut Scope<'_, '_>) -> Result<ValueSize, ExpressionError> {
    let bound = scope.bound.iter().rev().find(|(other, _)| *other == name);
    match bound {
        Some((_, size)) => Ok(size.clone()),
        None => (scope.size_of)(name),
    }
}

fn elements_cost<'a>(
    elements: impl Iterator<Item = &'a Expr>,
    scope: &mut Scope<'a, '_>,
) -> Result<ExpressionCost, ExpressionError> {
    let (mut steps, mut size) = (1_u64, ValueSize::list(0, ValueSize::flat(0)));
    for element in elements {
        let (more, element) = expression_cost(element, scope)?;
        steps = steps.saturating_add(more);
        size = size.join_with(ValueSize::list(1, element));
    }
    Ok((steps.saturating_add(size.weight / ELEMENTS_PER_STEP), size))
}

fn call_cost<'a>(
    call: &'a CallExpr,
    scope: &mut Scope<'a, '_>,
) -> Result<ExpressionCost, ExpressionError> {
    let (mut steps, mut sizes) = (1_u64, Vec::new());
    let name = call.func_name.as_str();
    let is_operator = name.starts_with(|first: char| !first.is_ascii_alphabetic());
    let target = call.target.as_deref();
    let is_qualified = match target.map(|target| &target.expr) {
        _ if is_operator => false,
        Some(Expr::Ident(prefix)) => scope.has_function(Some(prefix), name),
        _ => false,
    };
    if !is_operator && !is_qualified && !scope.has_function(None, name) {
        return Err(ExpressionError::NoSuchFunction(name.to_owned()));
    }
    let target = target.filter(|_| !is_qualified);
    for part in target.into_iter().chain(&call.args) {
        let (more, size) = expression_cost(&part.expr, scope)?;
        steps = steps.saturating_add(more);
        sizes.push(size);
    }
    let sum = |all: u64, size: &ValueSize| all.saturating_add(size.weight);
    let product = |all: u64, size: &ValueSize| all.saturating_mul(size.weight.saturating_add(1));
    let read = sizes.iter().fold(0, sum);
    let (looked_at, size) = match name {
        operators::ADD => (read, sizes.into_iter().reduce(ValueSize::join_with)),
        operators::CONDITIONAL => (0, sizes.into_iter().skip(1).reduce(ValueSize::max_with)),
        operators::INDEX => {
            let element = sizes.first().map(ValueSize::element);
            (element.as_ref().map_or(0, |it| it.weight), element)
        }
        // A key of a map is found by its hash.
        operators::IN if sizes.last().is_some_and(|all| all.key.is_some()) => {
            (sizes.first().map_or(0, |one| one.weight), None)
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
    scope: &mut Scope<'a, '_>,
) -> Result<ExpressionCost, ExpressionError> {
    let (of_range, range) = expression_cost(&one.iter_range.expr, scope)?;
    let (of_start, start) = expression_cost(&one.accu_init.expr, scope)?;
    // Each comprehension has a result variable of this name.
    let around = scope.bound.iter().filter(|(name, _)| *name == one.accu_var);
    if around.count() >= COMPREHENSIONS {
        return Err(ExpressionError::TooExpensive);
    }
    let before = scope.bound.len();
    let variables = [Some(&one.iter_var), one.iter_var2.as_ref()];
    let variables = variables.into_iter().flatten();
    scope
        .bound
        .extend(variables.map(|name| (name.as_str(), range.iterated())));
    scope.bound.push((one.accu_var.as_str(), start.clone()));
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
    if let Some((_, result)) = scope.bound.last_mut() {
        *result = end;
    }
    let (of_condition, _) = expression_cost(&one.loop_cond.expr, scope)?;
    let (of_step, _) = expression_cost(&one.loop_step.expr, scope)?;
    let (of_result, size) = expression_cost(&one.result.expr, scope)?;
    scope.bound.truncate(before);
    let each = of_condition.saturating_add(of_step);
    let steps = [of_range, of_start, of_result]
        .into_iter()
        .fold(range.length.saturating_mul(each), u64::saturating_add);
    Ok((steps, size))
}
