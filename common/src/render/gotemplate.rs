//! Go's text/template, as the seeds' templates use it: a lexer, a parser, an executor and its functions.

mod builtins;
pub mod function;
mod functions;
pub mod value;
