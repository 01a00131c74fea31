//! Conditions of core rules, in the Common Expression Language with the functions of Kubernetes.
//!
//! They are written by people who may write ConfigMaps of the system namespace. A condition is bounded before it is parsed (length,
//! brackets) and before it is evaluated (comprehensions within one another), so that what it costs is bounded too. The caller
//! evaluates on a stack of [`STACK`] and sets a time-out: there is no clock here.

use std::collections::HashMap;

use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{EntryExpr, Expr};
use kube_cel::cel::{Context, ExecutionError, Program, Value};

use super::profile::{Profile, VARIABLES};

/// Longest condition, in bytes.
pub const LONGEST: usize = 1000;
/// Most brackets within one another.
pub const DEEPEST: usize = 16;
/// Most comprehensions (`all`, `exists`, `map`, `filter`) within one another.
pub const COMPREHENSIONS: usize = 2;
/// The stack that every condition within these bounds is parsed and evaluated on, in bytes.
pub const STACK: usize = 64 << 20;

/// Why a condition has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It is too long.
    #[error("{0} bytes; {LONGEST} are allowed")]
    TooLong(usize),
    /// Its brackets are too deep.
    #[error("more than {DEEPEST} brackets within one another")]
    TooDeep,
    /// Its comprehensions are.
    #[error(
        "more than {COMPREHENSIONS} comprehensions (all, exists, map, filter) within one another"
    )]
    TooExpensive,
    /// It cannot be parsed.
    #[error("it is not a CEL expression: {0}")]
    Syntax(String),
    /// It reads a variable that no cluster has.
    #[error("{name} is not a fact of clusters; these are: {}", VARIABLES.map(|(name, _)| name).join(", "))]
    NoSuchFact {
        /// The variable.
        name: String,
    },
    /// It reads a fact of this cluster that is not known.
    #[error(
        "{0} of this cluster is not known; ConfigMap addon-template-data states what cannot be read"
    )]
    NotKnown(String),
    /// It fails.
    #[error("{0}")]
    Fails(String),
    /// It is something else than true or false.
    #[error("it is neither true nor false")]
    NotBoolean,
}

/// Checks a condition: it parses, reads nothing but facts, and has an answer for [`Profile::sample`].
///
/// # Errors
/// [`ExpressionError`].
pub fn check(text: &str) -> Result<(), ExpressionError> {
    match evaluate(text, &Profile::sample()) {
        // The sample has no labels.
        Err(ExpressionError::Fails(_)) if text.contains("labels") => Ok(()),
        other => other.map(drop),
    }
}

/// Whether a condition holds in a cluster.
///
/// # Errors
/// [`ExpressionError`].
pub fn evaluate(text: &str, profile: &Profile) -> Result<bool, ExpressionError> {
    let program = parse(text)?;
    let mut context = Context::default().with_all();
    for (name, value) in profile.texts() {
        context.add_variable_from_value(name, value);
    }
    let labels: HashMap<String, String> = profile.labels.clone().into_iter().collect();
    context.add_variable_from_value("labels", labels);
    match program.execute(&context) {
        Ok(Value::Bool(holds)) => Ok(holds),
        Ok(_) => Err(ExpressionError::NotBoolean),
        // Every variable that is read is a fact: this one is not known here.
        Err(ExecutionError::UndeclaredReference(name)) if is_fact(&name) => {
            Err(ExpressionError::NotKnown(name.to_string()))
        }
        Err(error) => Err(ExpressionError::Fails(error.to_string())),
    }
}

fn is_fact(name: &str) -> bool {
    VARIABLES.iter().any(|(fact, _)| *fact == name)
}

fn parse(text: &str) -> Result<Program, ExpressionError> {
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
    inspect(&program.expression().expr, &mut Vec::new())?;
    Ok(program)
}

/// Looks at every part of an expression. `bound`: the variables of the comprehensions around it.
fn inspect<'a>(expression: &'a Expr, bound: &mut Vec<&'a str>) -> Result<(), ExpressionError> {
    match expression {
        Expr::Unspecified | Expr::Literal(_) => Ok(()),
        Expr::Ident(name) if is_fact(name) || bound.contains(&name.as_str()) => Ok(()),
        Expr::Ident(name) => Err(ExpressionError::NoSuchFact { name: name.clone() }),
        Expr::Select(select) => inspect(&select.operand.expr, bound),
        Expr::Call(call) => {
            let parts = call.target.as_deref().into_iter().chain(&call.args);
            inspect_all(parts.map(|part| &part.expr), bound)
        }
        Expr::List(list) => inspect_all(list.elements.iter().map(|part| &part.expr), bound),
        Expr::Map(map) => inspect_entries(map.entries.iter().map(|entry| &entry.expr), bound),
        Expr::Struct(of) => inspect_entries(of.entries.iter().map(|entry| &entry.expr), bound),
        Expr::Comprehension(comprehension) => {
            inspect(&comprehension.iter_range.expr, bound)?;
            inspect(&comprehension.accu_init.expr, bound)?;
            let before = bound.len();
            // One comprehension binds its accumulator and one or two variables.
            let within = bound.iter().filter(|name| **name == comprehension.accu_var);
            if within.count() >= COMPREHENSIONS {
                return Err(ExpressionError::TooExpensive);
            }
            bound.extend([comprehension.accu_var.as_str(), &comprehension.iter_var]);
            bound.extend(comprehension.iter_var2.as_deref());
            let parts = [
                &comprehension.loop_cond,
                &comprehension.loop_step,
                &comprehension.result,
            ];
            inspect_all(parts.into_iter().map(|part| &part.expr), bound)?;
            bound.truncate(before);
            Ok(())
        }
    }
}

fn inspect_all<'a>(
    mut parts: impl Iterator<Item = &'a Expr>,
    bound: &mut Vec<&'a str>,
) -> Result<(), ExpressionError> {
    parts.try_for_each(|part| inspect(part, bound))
}

fn inspect_entries<'a>(
    mut entries: impl Iterator<Item = &'a EntryExpr>,
    bound: &mut Vec<&'a str>,
) -> Result<(), ExpressionError> {
    entries.try_for_each(|entry| match entry {
        EntryExpr::StructField(field) => inspect(&field.value.expr, bound),
        EntryExpr::MapEntry(entry) => {
            inspect(&entry.key.expr, bound)?;
            inspect(&entry.value.expr, bound)
        }
    })
}
