//! Evaluates the steps of an expression on a value.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::path::{Operator, Slice, Step};

/// A value, or a constant of the expression.
pub type Found<'a> = Cow<'a, Value>;

/// Takes each value through the steps, one after the other. Missing fields are left out.
///
/// # Errors
/// A step does not fit a value.
pub fn find<'a>(values: Vec<Found<'a>>, steps: &[Step]) -> Result<Vec<Found<'a>>, String> {
    steps.iter().try_fold(values, step)
}

fn step<'a>(values: Vec<Found<'a>>, step: &Step) -> Result<Vec<Found<'a>>, String> {
    match step {
        // A text stands for itself, whatever the value.
        Step::Constant(text @ Value::String(_)) => return Ok(vec![Cow::Owned(text.clone())]),
        Step::Union(all) => {
            let all = all.iter().map(|steps| find(values.clone(), steps));
            return Ok(all.collect::<Result<Vec<_>, _>>()?.concat());
        }
        _ => {}
    }
    let mut found = Vec::new();
    for value in values {
        match step {
            Step::Field(name) => found.extend(of_map(value, name)),
            Step::Wildcard => found.extend(children(value)),
            Step::Recursive => below(value, &mut found),
            Step::Slice(_) if value.is_null() => {}
            Step::Slice(slice) => found.extend(cut(value, *slice)?),
            Step::Filter(left, right) => {
                if !value.is_array() {
                    return Err(format!("{} cannot be filtered", kind(&value)));
                }
                for one in children(value) {
                    if passes(&one, left, right.as_ref())? {
                        found.push(one);
                    }
                }
            }
            Step::Constant(constant) => found.push(Cow::Owned(constant.clone())),
            Step::Union(_) => {}
        }
    }
    Ok(found)
}

fn of_map<'a>(value: Found<'a>, name: &str) -> Option<Found<'a>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(_) => None,
    }
}

/// Returns the elements of a list, or the values of a map.
fn children(value: Found<'_>) -> Vec<Found<'_>> {
    match value {
        Cow::Borrowed(Value::Array(all)) => all.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(all)) => all.values().map(Cow::Borrowed).collect(),
        _ => Vec::new(),
    }
}

/// Collects a value that is not empty, and everything below it that is not.
fn below<'a>(value: Found<'a>, found: &mut Vec<Found<'a>>) {
    let all = children(value.clone());
    let is_text = value.as_str().is_some_and(|text| !text.is_empty());
    if !all.is_empty() || is_text {
        found.push(value);
    }
    for one in all {
        below(one, found);
    }
}

fn cut(value: Found<'_>, slice: Slice) -> Result<Vec<Found<'_>>, String> {
    if !value.is_array() {
        return Err(format!("{} is not a list", kind(&value)));
    }
    let all = children(value);
    let length = i64::try_from(all.len()).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { at + length } else { at };
    let from = from_end(slice.from.unwrap_or(0));
    let to = match slice.to {
        // `[-1]` ends behind the last element, which is counted from the end.
        Some(0) if slice.is_one => length,
        to => from_end(to.unwrap_or(length)),
    };
    if from == to {
        return Ok(Vec::new());
    }
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    let within = range.and_then(|(from, to)| all.get(from..to));
    let within = within.ok_or_else(|| format!("index {from} is not in a list of {length}"))?;
    let step = usize::try_from(slice.step.unwrap_or(1));
    let step = step.ok().filter(|step| *step > 0);
    let step = step.ok_or("a step is at least 1")?;
    Ok(within.iter().step_by(step).cloned().collect())
}

fn passes(
    value: &Found<'_>,
    left: &[Step],
    right: Option<&(Operator, Vec<Step>)>,
) -> Result<bool, String> {
    let found = find(vec![value.clone()], left);
    let Some((operator, right)) = right else {
        return Ok(found.is_ok_and(|found| !found.is_empty()));
    };
    let left = found?;
    let right = find(vec![value.clone()], right)?;
    match (left.as_slice(), right.as_slice()) {
        ([], _) | (_, []) => Ok(false),
        ([left], [right]) => compare(left, right, *operator),
        _ => Err("only one value can be compared at a time".to_owned()),
    }
}

/// Compares as Go's templates do: values of different kinds cannot be compared.
fn compare(left: &Value, right: &Value, operator: Operator) -> Result<bool, String> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                _ => left.as_f64().partial_cmp(&right.as_f64()),
            }
        }
        (Value::Bool(left), Value::Bool(right))
            if matches!(operator, Operator::Equal | Operator::NotEqual) =>
        {
            Some(left.cmp(right))
        }
        _ => None,
    };
    let order = order.ok_or_else(|| {
        let (left, right) = (kind(left), kind(right));
        format!("{left} and {right} cannot be compared so")
    })?;
    Ok(match operator {
        Operator::Equal => order == Ordering::Equal,
        Operator::NotEqual => order != Ordering::Equal,
        Operator::Less => order == Ordering::Less,
        Operator::LessOrEqual => order != Ordering::Greater,
        Operator::Greater => order == Ordering::Greater,
        Operator::GreaterOrEqual => order != Ordering::Less,
    })
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
