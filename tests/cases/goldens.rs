//! Golden tables: what the original libraries answer.

mod channel;
mod corpus;
mod ranges;
mod replaces;
mod yaml;
