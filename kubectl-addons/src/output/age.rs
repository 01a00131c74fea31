//! Ages as kubectl prints them.

pub use common::age::age;
