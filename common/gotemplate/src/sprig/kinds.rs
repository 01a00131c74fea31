//! Functions that return types and kinds by Go's names.

use crate::function::Function;
use crate::value::Type::{Any, Text};
use crate::value::Value;

pub(super) const KINDS: &[Function<'static>] = &[
    Function::new("typeOf", &[Any], &|_, args| {
        Ok(Value::text(args.value(0).type_name()))
    }),
    Function::new("typeIs", &[Text, Any], &|_, args| {
        Ok(Value::Bool(args.text(0)? == args.value(1).type_name()))
    }),
    // True as well if the value is a pointer to the type.
    Function::new("typeIsLike", &[Text, Any], &|_, args| {
        let (target, name) = (args.text(0)?, args.value(1).type_name());
        let is_pointer = name.strip_prefix('*') == Some(target);
        Ok(Value::Bool(target == name || is_pointer))
    }),
    Function::new("kindOf", &[Any], &|_, args| {
        Ok(Value::text(args.value(0).kind_name()))
    }),
    Function::new("kindIs", &[Text, Any], &|_, args| {
        Ok(Value::Bool(args.text(0)? == args.value(1).kind_name()))
    }),
    Function::new("deepEqual", &[Any, Any], &|ctx, args| {
        Ok(Value::Bool(ctx.deep_equal(args.value(0), args.value(1))?))
    }),
];
