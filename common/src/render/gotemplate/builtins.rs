//! Go's own functions.

use super::function::Function;

/// All of them.
pub const BUILTINS: &[Function] = &[];
