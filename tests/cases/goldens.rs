//! Golden tables: what the original libraries answer.

mod channel;
mod ranges;
mod replaces;
mod yaml;
