//! Golden tables: what the original libraries answer.

mod channel;
mod corpus;
mod order;
mod ranges;
mod replaces;
mod yaml;
