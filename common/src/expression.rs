//! Expressions in the Common Expression Language, with the functions of Kubernetes: the conditions of core rules and the constraints of
//! entries, which read the facts of a cluster ([`profile`]), and health checks, which read an object.
//!
//! Anyone who can connect to the webhook can send it an expression, and authors of catalogues write those that clients evaluate. An
//! expression is therefore bounded before it is parsed (length, brackets) and before it is evaluated (nested comprehensions, steps), so that
//! it takes neither time nor memory that others need. It is parsed and evaluated on a stack of its own.

mod cost;
pub mod profile;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kube_cel::KubeCelExt as _;
use kube_cel::cel::parser::{Expression as Syntax, Parser};
use kube_cel::cel::{Context, ExecutionError, Value};
use serde_json::{Map, Value as Json};

use cost::ValueSize;
use profile::{LABELS, TEXT, VARIABLES};

/// The longest expression, in bytes.
pub const LONGEST: usize = 1000;
/// The deepest nesting of brackets.
pub const DEEPEST: usize = 16;
/// The deepest nesting of comprehensions (`all`, `exists`, `map`, `filter`).
pub const COMPREHENSIONS: usize = 2;
/// The most steps of an expression, which take some tenths of a second at most.
pub const STEPS: u64 = 1_000_000;
/// The size in bytes of the stack on which any expression within these bounds can be parsed and evaluated.
const STACK: usize = 64 << 20;

/// The reason why an expression has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The expression is too long.
    #[error("{0} bytes; {LONGEST} are allowed")]
    TooLong(usize),
    /// Its brackets nest too deep.
    #[error("more than {DEEPEST} brackets within one another")]
    TooDeep,
    /// Its comprehensions nest too deep.
    #[error(
        "more than {COMPREHENSIONS} comprehensions (all, exists, map, filter) within one another"
    )]
    TooExpensive,
    /// It may take too many steps for some values of its variables, or takes too many for these.
    #[error(
        "it may take {0} steps, and {STEPS} are allowed: write shorter lists, and fewer comprehensions, joined texts and regular expressions"
    )]
    TooManySteps(u64),
    /// A fact of this cluster is larger than expressions may read.
    #[error(
        "{name} of this cluster is too large: {LABELS} labels and texts of {TEXT} bytes can be read"
    )]
    FactTooLarge {
        /// The variable.
        name: String,
    },
    /// It is not a CEL expression.
    #[error("it is not a CEL expression: {0}")]
    Syntax(String),
    /// It creates a message of a type, which Kubernetes does not define.
    #[error("it creates an object of a type; no types are defined")]
    TypedObject,
    /// It calls a function that does not exist.
    #[error("there is no function {0}")]
    NoSuchFunction(String),
    /// It reads a variable that is not a fact of any cluster.
    #[error("{name} is not a fact of clusters; these are: {}", VARIABLES.map(|variable| variable.name).join(", "))]
    NoSuchFact {
        /// The variable.
        name: String,
    },
    /// It reads a fact that is not known of this cluster.
    #[error("{name} of this cluster is not known; {}", profile::way_to_know(name))]
    NotKnown {
        /// The variable.
        name: String,
    },
    /// It reads a field or variable that does not exist.
    #[error("{0} does not exist")]
    Missing(String),
    /// Its evaluation fails.
    #[error("{0}")]
    Fails(String),
    /// Its result is not a boolean.
    #[error("it is neither true nor false")]
    NotBoolean,
}

/// A compiled expression, whose result is a boolean.
#[derive(Clone, Debug)]
pub struct Expression {
    syntax: Syntax,
    variables: BTreeSet<String>,
    steps: u64,
}

impl Expression {
    /// Compiles an expression that reads the top-level fields of an object, whatever these are.
    ///
    /// # Errors
    /// [`ExpressionError`], also if the result is not a boolean whatever the object is.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        let compiled = Self::compile_with(text, &mut |_| Ok(ValueSize::flat(1)))?;
        match compiled.evaluate(&Map::new()) {
            Err(ExpressionError::NotBoolean) => Err(ExpressionError::NotBoolean),
            _ => Ok(compiled),
        }
    }

    /// Compiles an expression. `size_of` returns the largest size of a variable, or an error if there is no such variable.
    fn compile_with(
        text: &str,
        size_of: &mut dyn FnMut(&str) -> Result<ValueSize, ExpressionError>,
    ) -> Result<Self, ExpressionError> {
        if text.len() > LONGEST {
            return Err(ExpressionError::TooLong(text.len()));
        }
        check_depth(text)?;
        on_large_stack(|| {
            let syntax = Parser::default().parse(text).map_err(|error| {
                let text = error.to_string();
                let line = text.lines().map(str::trim).find(|line| !line.is_empty());
                ExpressionError::Syntax(line.unwrap_or_default().to_owned())
            })?;
            let mut variables = BTreeSet::new();
            let mut read = |name: &str| {
                variables.insert(name.to_owned());
                size_of(name)
            };
            let steps = cost::count_steps(&syntax.expr, &functions(), &mut read)?;
            Ok(Self {
                syntax,
                variables,
                steps: within_bounds(steps)?,
            })
        })
    }

    /// Returns the most steps that it takes.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the names of the variables that it reads.
    #[must_use]
    pub fn variables(&self) -> &BTreeSet<String> {
        &self.variables
    }

    /// Returns whether it holds for these values of its variables.
    ///
    /// # Errors
    /// [`ExpressionError`]. [`ExpressionError::Missing`] names a variable or field that does not exist.
    pub fn evaluate(&self, values: &Map<String, Json>) -> Result<bool, ExpressionError> {
        let read = self.variables.iter();
        let read = read.filter_map(|name| Some((name.as_str(), values.get(name)?)));
        let read: BTreeMap<&str, &Json> = read.collect();
        on_large_stack(|| {
            let mut context = functions();
            let mut size_of = |name: &str| {
                let value = read.get(name);
                Ok(value.map_or_else(|| ValueSize::flat(1), |value| ValueSize::of_json(value)))
            };
            within_bounds(cost::count_steps(
                &self.syntax.expr,
                &context,
                &mut size_of,
            )?)?;
            for (name, value) in &read {
                context.add_variable_from_value(*name, to_cel(value));
            }
            match context.resolve(&self.syntax) {
                Ok(Value::Bool(holds)) => Ok(holds),
                Ok(_) => Err(ExpressionError::NotBoolean),
                Err(error) => Err(describe(&error)),
            }
        })
    }
}

fn within_bounds(steps: u64) -> Result<u64, ExpressionError> {
    match steps > STEPS {
        true => Err(ExpressionError::TooManySteps(steps)),
        false => Ok(steps),
    }
}

fn check_depth(text: &str) -> Result<(), ExpressionError> {
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(ExpressionError::TooDeep);
        }
    }
    Ok(())
}

fn on_large_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(STACK, STACK, work)
}

/// Returns a context with every function and no variable.
fn functions<'a>() -> Context<'a> {
    Context::default().with_all()
}

/// Describes an error without the values that it names, which may be secret and long.
fn describe(error: &ExecutionError) -> ExpressionError {
    match error {
        ExecutionError::NoSuchKey(name) | ExecutionError::UndeclaredReference(name) => {
            ExpressionError::Missing(name.to_string())
        }
        ExecutionError::FunctionError { function, .. } => {
            ExpressionError::Fails(format!("{function}() fails"))
        }
        ExecutionError::IndexOutOfBounds(_) => {
            ExpressionError::Fails("a list has fewer elements than are read".to_owned())
        }
        _ => ExpressionError::Fails("a value does not have the type that it needs".to_owned()),
    }
}

/// Returns a value of JSON as one of CEL. As for Kubernetes, a number without a fraction is an integer.
fn to_cel(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(it) => Value::Bool(*it),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::Int(integer),
            (None, Some(large)) => Value::UInt(large),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(elements) => elements.iter().map(to_cel).collect::<Vec<_>>().into(),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, it)| (name.clone(), to_cel(it)));
            fields.collect::<HashMap<String, Value>>().into()
        }
    }
}

#[cfg(test)]
mod tests;
