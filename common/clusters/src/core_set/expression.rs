//! Conditions of core rules, in the Common Expression Language with the functions of Kubernetes.
//!
//! Their authors are users who may write ConfigMaps of the system namespace, but anyone who can connect to the webhook can send it a
//! condition. A condition is therefore bounded before it is parsed (length, brackets) and before it is evaluated (nested comprehensions,
//! steps), so that it takes neither time nor memory that others need. The caller evaluates on a stack of [`STACK`].

mod cost;

use std::collections::HashMap;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::{Context, ExecutionError, Program, Value};

use super::profile::{Profile, VARIABLES};

/// The longest condition, in bytes.
pub const LONGEST: usize = 1000;
/// The deepest nesting of brackets.
pub const DEEPEST: usize = 16;
/// The deepest nesting of comprehensions (`all`, `exists`, `map`, `filter`).
pub const COMPREHENSIONS: usize = 2;
/// The most steps of a condition, which take some tenths of a second at most.
pub const STEPS: u64 = 1_000_000;
/// The most labels that a condition reads.
pub const LABELS: u64 = 64;
/// The longest text of a fact that a condition reads, in bytes.
pub const TEXT: u64 = 256;
/// The size in bytes of the stack on which any condition within these bounds can be parsed and evaluated.
pub const STACK: usize = 64 << 20;

/// The reason why a condition has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// The condition is too long.
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
    /// It may take too many steps in some cluster.
    #[error(
        "it may take {0} steps, and {STEPS} are allowed: write shorter lists, and fewer comprehensions, joined texts and regular expressions"
    )]
    TooManySteps(u64),
    /// A fact of this cluster is larger than conditions may read.
    #[error(
        "{0} of this cluster is too large: {LABELS} labels and texts of {TEXT} bytes can be read"
    )]
    FactTooLarge(&'static str),
    /// It is not a CEL expression.
    #[error("it is not a CEL expression: {0}")]
    Syntax(String),
    /// It reads a variable that does not exist in any cluster.
    #[error("{name} is not a fact of clusters; these are: {}", VARIABLES.map(|(name, _)| name).join(", "))]
    NoSuchFact {
        /// The variable.
        name: String,
    },
    /// It reads a fact that is not known of this cluster.
    #[error(
        "{0} of this cluster is not known; ConfigMap addon-template-data states what cannot be read"
    )]
    NotKnown(String),
    /// Its evaluation fails.
    #[error("{0}")]
    Fails(String),
    /// Its result is not a boolean.
    #[error("it is neither true nor false")]
    NotBoolean,
}

/// Checks a condition: it must parse, read only facts, and have a result for [`Profile::sample`]. Returns the most steps that it takes.
///
/// # Errors
/// [`ExpressionError`].
pub fn check(text: &str) -> Result<u64, ExpressionError> {
    let (program, steps) = parse(text)?;
    match run(&program, &Profile::sample()) {
        // The sample has no labels, so reading one fails.
        Err(ExpressionError::Fails(_)) if text.contains("labels") => Ok(steps),
        other => other.map(|_| steps),
    }
}

/// Returns whether a condition holds in a cluster.
///
/// # Errors
/// [`ExpressionError`].
pub fn evaluate(text: &str, profile: &Profile) -> Result<bool, ExpressionError> {
    let (program, _) = parse(text)?;
    let mut texts = profile.texts();
    let large = texts.find(|(name, value)| is_over(value.len(), TEXT) && text.contains(name));
    if let Some((name, _)) = large {
        return Err(ExpressionError::FactTooLarge(name));
    }
    if is_over(profile.labels.len(), LABELS) && text.contains("labels") {
        return Err(ExpressionError::FactTooLarge("labels"));
    }
    run(&program, profile)
}

fn is_over(length: usize, most: u64) -> bool {
    u64::try_from(length).is_ok_and(|length| length > most)
}

fn run(program: &Program, profile: &Profile) -> Result<bool, ExpressionError> {
    let mut context = Context::default().with_all();
    for (name, value) in profile.texts() {
        context.add_variable_from_value(name, value);
    }
    let labels: HashMap<String, String> = profile.labels.clone().into_iter().collect();
    context.add_variable_from_value("labels", labels);
    match program.execute(&context) {
        Ok(Value::Bool(holds)) => Ok(holds),
        Ok(_) => Err(ExpressionError::NotBoolean),
        // Every variable that is read is a fact, so this one is not known of this cluster.
        Err(ExecutionError::UndeclaredReference(name)) if is_fact(&name) => {
            Err(ExpressionError::NotKnown(name.to_string()))
        }
        Err(error) => Err(ExpressionError::Fails(error.to_string())),
    }
}

fn is_fact(name: &str) -> bool {
    VARIABLES.iter().any(|(fact, _)| *fact == name)
}

/// Parses a condition. Also returns the most steps that it takes.
fn parse(text: &str) -> Result<(Program, u64), ExpressionError> {
    if text.len() > LONGEST {
        return Err(ExpressionError::TooLong(text.len()));
    }
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
    let program = Program::compile(text).map_err(|error| {
        let text = error.to_string();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        ExpressionError::Syntax(line.unwrap_or_default().to_owned())
    })?;
    let steps = cost::count_steps(&program.expression().expr)?;
    if steps > STEPS {
        return Err(ExpressionError::TooManySteps(steps));
    }
    Ok((program, steps))
}
