//! Functions for numbers: whole numbers wrap around as in Go, floats are computed as decimals.

use super::cast::{atoi, octal, to_float, to_int};
use super::decimal::Decimal;
use super::pieces;
use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::{Any, Float, Int, Text};
use crate::value::Value;

pub(super) const MATH: &[Function<'static>] = &[
    Function::new("atoi", &[Text], &|_, args| {
        Ok(Value::Int(atoi(args.text(0)?)))
    }),
    Function::new("int", &[Any], &|_, args| {
        Ok(Value::Int(to_int(args.value(0))))
    }),
    Function::new("int64", &[Any], &|_, args| {
        Ok(Value::Int64(to_int(args.value(0))))
    }),
    Function::new("float64", &[Any], &|_, args| {
        Ok(Value::Float(to_float(args.value(0))))
    }),
    Function::new("toDecimal", &[Any], &|ctx, args| {
        Ok(Value::Int64(octal(&pieces::to_reserved_text(
            ctx,
            args.value(0),
        )?)))
    }),
    Function::new("add1", &[Any], &|_, args| {
        Ok(Value::Int64(to_int(args.value(0)).wrapping_add(1)))
    }),
    Function::variadic("add", &[], Any, &|_, args| {
        let numbers = args.rest(0).iter().map(to_int);
        Ok(Value::Int64(numbers.fold(0, i64::wrapping_add)))
    }),
    Function::new("sub", &[Any, Any], &|_, args| {
        compute_whole(args, |a, b| Some(a.wrapping_sub(b)))
    }),
    Function::new("div", &[Any, Any], &|_, args| {
        compute_whole(args, |a, b| (b != 0).then(|| a.wrapping_div(b)))
    }),
    Function::new("mod", &[Any, Any], &|_, args| {
        compute_whole(args, |a, b| (b != 0).then(|| a.wrapping_rem(b)))
    }),
    Function::variadic("mul", &[Any], Any, &|_, args| {
        let numbers = args.rest(0).iter().map(to_int);
        Ok(Value::Int64(numbers.fold(1, i64::wrapping_mul)))
    }),
    Function::variadic("max", &[Any], Any, &largest).with_aliases(&["biggest"]),
    Function::variadic("min", &[Any], Any, &|_, args| {
        let numbers = args.rest(0).iter().map(to_int);
        Ok(Value::Int64(numbers.min().unwrap_or_default()))
    }),
    Function::variadic("maxf", &[Any], Any, &|_, args| Ok(extreme(args, f64::max))),
    Function::variadic("minf", &[Any], Any, &|_, args| Ok(extreme(args, f64::min))),
    Function::new("add1f", &[Any], &|_, args| {
        compute_float(
            to_float(args.value(0)),
            &[Value::Int(1)],
            ArithmeticOperation::Add,
        )
    }),
    Function::variadic("addf", &[], Any, &|_, args| {
        compute_float(0.0, args.rest(0), ArithmeticOperation::Add)
    }),
    Function::variadic("subf", &[Any], Any, &|_, args| {
        compute_float(
            to_float(args.value(0)),
            args.rest(1),
            ArithmeticOperation::Subtract,
        )
    }),
    Function::variadic("mulf", &[Any], Any, &|_, args| {
        compute_float(
            to_float(args.value(0)),
            args.rest(1),
            ArithmeticOperation::Multiply,
        )
    }),
    Function::variadic("divf", &[Any], Any, &|_, args| {
        compute_float(
            to_float(args.value(0)),
            args.rest(1),
            ArithmeticOperation::Divide,
        )
    }),
    Function::new("floor", &[Any], &|_, args| {
        Ok(Value::Float(to_float(args.value(0)).floor()))
    }),
    Function::new("ceil", &[Any], &|_, args| {
        Ok(Value::Float(to_float(args.value(0)).ceil()))
    }),
    Function::variadic("round", &[Any, Int], Float, &|_, args| {
        let places = args.int(1)?;
        let half = if args.len() > 2 { args.float(2)? } else { 0.5 };
        Ok(Value::Float(round(to_float(args.value(0)), places, half)))
    }),
];

#[derive(Clone, Copy)]
enum ArithmeticOperation {
    Add,
    Subtract,
    Multiply,
    Divide,
}

fn compute_whole(args: Arguments<'_>, operation: fn(i64, i64) -> Option<i64>) -> FunctionResult {
    let result = operation(to_int(args.value(0)), to_int(args.value(1)));
    let result = result.ok_or("division by zero")?;
    Ok(Value::Int64(result))
}

fn largest(_: &mut FunctionContext, args: Arguments<'_>) -> FunctionResult {
    let numbers = args.rest(0).iter().map(to_int);
    Ok(Value::Int64(numbers.max().unwrap_or_default()))
}

/// The largest or smallest number; NaN if one of them is NaN.
fn extreme(args: Arguments<'_>, choose: fn(f64, f64) -> f64) -> Value {
    let numbers = args.rest(0).iter().map(to_float);
    let chosen = numbers.reduce(|a, b| {
        if a.is_nan() || b.is_nan() {
            f64::NAN
        } else {
            choose(a, b)
        }
    });
    Value::Float(chosen.unwrap_or_default())
}

/// Computes with decimals, so that 0.1 + 0.2 is 0.3, or with floats if the digits do not fit into a decimal.
fn compute_float(first: f64, others: &[Value], operation: ArithmeticOperation) -> FunctionResult {
    let decimal = |number: f64| {
        Decimal::new(number)
            .ok_or_else(|| FunctionError::new(format!("{number} is not a finite number")))
    };
    let mut float = first;
    let mut exact = Some(decimal(first)?);
    for value in others {
        let number = to_float(value);
        let other = decimal(number)?;
        if matches!(operation, ArithmeticOperation::Divide) && other.is_zero() {
            return Err("division by zero".into());
        }
        exact = exact.and_then(|exact| match operation {
            ArithmeticOperation::Add => exact.add(other),
            ArithmeticOperation::Subtract => exact.add(other.negate()),
            ArithmeticOperation::Multiply => exact.multiply(other),
            ArithmeticOperation::Divide => exact.divide(other),
        });
        float = match operation {
            ArithmeticOperation::Add => float + number,
            ArithmeticOperation::Subtract => float - number,
            ArithmeticOperation::Multiply => float * number,
            ArithmeticOperation::Divide => float / number,
        };
    }
    Ok(Value::Float(exact.map_or(float, Decimal::to_float)))
}

/// Rounds as sprig does: a negative number always down, -2.5 to -3.
fn round(number: f64, places: i64, half: f64) -> f64 {
    let power = 10_f64.powf(places as f64);
    let shifted = number * power;
    let whole = if shifted.fract() >= half {
        shifted.ceil()
    } else {
        shifted.floor()
    };
    whole / power
}
