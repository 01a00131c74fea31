//! Evaluates the steps of an expression on a value.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::path::{FilterOperator, ListSlice, TemplateStep};

/// A value, or a constant of the expression.
pub type FoundValue<'a> = Cow<'a, Value>;

/// Takes each value through the steps, one after the other. Missing fields are left out.
///
/// # Errors
/// A step does not fit a value.
pub fn find_values<'a>(
    values: Vec<FoundValue<'a>>,
    steps: &[TemplateStep],
) -> Result<Vec<FoundValue<'a>>, String> {
    steps.iter().try_fold(values, apply_step)
}

fn apply_step<'a>(
    values: Vec<FoundValue<'a>>,
    step: &TemplateStep,
) -> Result<Vec<FoundValue<'a>>, String> {
    match step {
        // A text stands for itself, whatever the value.
        TemplateStep::Constant(text @ Value::String(_)) => {
            return Ok(vec![Cow::Owned(text.clone())]);
        }
        TemplateStep::Union(all) => {
            let all = all.iter().map(|steps| find_values(values.clone(), steps));
            return Ok(all.collect::<Result<Vec<_>, _>>()?.concat());
        }
        _ => {}
    }
    let mut found = Vec::new();
    for value in values {
        match step {
            TemplateStep::Field(name) => found.extend(field_of_map(value, name)),
            TemplateStep::Wildcard => found.extend(children(value)),
            TemplateStep::Recursive => collect_below(value, &mut found),
            TemplateStep::Slice(_) if value.is_null() => {}
            TemplateStep::Slice(slice) => found.extend(slice_list(value, *slice)?),
            TemplateStep::Filter(left, right) => {
                if !value.is_array() {
                    return Err(format!("{} cannot be filtered", kind_name(&value)));
                }
                for one in children(value) {
                    if passes_filter(&one, left, right.as_ref())? {
                        found.push(one);
                    }
                }
            }
            TemplateStep::Constant(constant) => found.push(Cow::Owned(constant.clone())),
            TemplateStep::Union(_) => {}
        }
    }
    Ok(found)
}

fn field_of_map<'a>(value: FoundValue<'a>, name: &str) -> Option<FoundValue<'a>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(_) => None,
    }
}

/// Returns the elements of a list, or the values of a map.
fn children(value: FoundValue<'_>) -> Vec<FoundValue<'_>> {
    match value {
        Cow::Borrowed(Value::Array(all)) => all.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(all)) => all.values().map(Cow::Borrowed).collect(),
        _ => Vec::new(),
    }
}

/// Collects a value that is not empty, and everything below it that is not.
fn collect_below<'a>(value: FoundValue<'a>, found: &mut Vec<FoundValue<'a>>) {
    let all = children(value.clone());
    let is_text = value.as_str().is_some_and(|text| !text.is_empty());
    if !all.is_empty() || is_text {
        found.push(value);
    }
    for one in all {
        collect_below(one, found);
    }
}

fn slice_list(value: FoundValue<'_>, slice: ListSlice) -> Result<Vec<FoundValue<'_>>, String> {
    if !value.is_array() {
        return Err(format!("{} is not a list", kind_name(&value)));
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

fn passes_filter(
    value: &FoundValue<'_>,
    left: &[TemplateStep],
    right: Option<&(FilterOperator, Vec<TemplateStep>)>,
) -> Result<bool, String> {
    let found = find_values(vec![value.clone()], left);
    let Some((operator, right)) = right else {
        return Ok(found.is_ok_and(|found| !found.is_empty()));
    };
    let left = found?;
    let right = find_values(vec![value.clone()], right)?;
    match (left.as_slice(), right.as_slice()) {
        ([], _) | (_, []) => Ok(false),
        ([left], [right]) => compare(left, right, *operator),
        _ => Err("only one value can be compared at a time".to_owned()),
    }
}

/// Compares as Go's templates do: values of different kinds cannot be compared.
fn compare(left: &Value, right: &Value, operator: FilterOperator) -> Result<bool, String> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) if left.is_f64() == right.is_f64() => {
            match (left.as_i64(), right.as_i64()) {
                (Some(left), Some(right)) => Some(left.cmp(&right)),
                _ => left.as_f64().partial_cmp(&right.as_f64()),
            }
        }
        (Value::Bool(left), Value::Bool(right))
            if matches!(operator, FilterOperator::Equal | FilterOperator::NotEqual) =>
        {
            Some(left.cmp(right))
        }
        _ => None,
    };
    let order = order.ok_or_else(|| {
        let (left, right) = (kind_name(left), kind_name(right));
        format!("{left} and {right} cannot be compared so")
    })?;
    Ok(match operator {
        FilterOperator::Equal => order == Ordering::Equal,
        FilterOperator::NotEqual => order != Ordering::Equal,
        FilterOperator::Less => order == Ordering::Less,
        FilterOperator::LessOrEqual => order != Ordering::Greater,
        FilterOperator::Greater => order == Ordering::Greater,
        FilterOperator::GreaterOrEqual => order != Ordering::Less,
    })
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
