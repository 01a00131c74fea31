//! Functions that return sequences of numbers.

use super::{ITEM, reserve_items};
use crate::function::{Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::Int;
use crate::value::{ListValue, Type, Value};

pub(super) const SEQUENCES: &[Function<'static>] = &[
    Function::new("until", &[Int], &|ctx, args| {
        let count = args.int(0)?;
        list_numbers(ctx, 0, count, if count < 0 { -1 } else { 1 })
    }),
    Function::new("untilStep", &[Int, Int, Int], &|ctx, args| {
        list_numbers(ctx, args.int(0)?, args.int(1)?, args.int(2)?)
    }),
    // `seq END`, `seq START END`, `seq START STEP END`; the end is included.
    Function::variadic("seq", &[], Int, &|ctx, args| {
        let (start, step, end) = match args.len() {
            1 => (1, None, args.int(0)?),
            2 => (args.int(0)?, None, args.int(1)?),
            3 => (args.int(0)?, Some(args.int(1)?), args.int(2)?),
            _ => return Ok(Value::text("")),
        };
        let towards = if end < start { -1 } else { 1 };
        if end < start && step.is_some_and(|step| step > 0) {
            return Ok(Value::text(""));
        }
        let end = end.wrapping_add(towards);
        let numbers = numbers(ctx, start, end, step.unwrap_or(towards))?;
        let texts: Vec<_> = numbers.map(|number| number.to_string()).collect();
        Ok(Value::text(texts.join(" ")))
    }),
];

fn list_numbers(ctx: &mut FunctionContext, start: i64, stop: i64, step: i64) -> FunctionResult {
    let numbers = numbers(ctx, start, stop, step)?.map(Value::Int);
    Ok(Value::List(ListValue::new(&Type::Int, numbers.collect())))
}

/// Returns the numbers from `start` to before `stop`; none if `step` leads in the other direction.
fn numbers(
    ctx: &mut FunctionContext,
    start: i64,
    stop: i64,
    step: i64,
) -> Result<impl Iterator<Item = i64>, FunctionError> {
    let distance = i128::from(stop) - i128::from(start);
    let leads_there = step != 0 && (distance < 0) == (step < 0);
    let count = if leads_there {
        distance
            .unsigned_abs()
            .div_ceil(u128::from(step.unsigned_abs()))
    } else {
        0
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    reserve_items(ctx, count, ITEM)?;
    Ok(std::iter::successors(Some(start), move |number| number.checked_add(step)).take(count))
}
