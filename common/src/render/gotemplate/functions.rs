//! Functions that are not Go's own: sprig's text functions and those of KKP.

use super::function::Function;

/// sprig's text functions, one table a family.
pub const SPRIG: &[&[Function]] = &[];

/// What KKP adds to sprig, or replaces.
pub const KKP: &[&[Function]] = &[];
