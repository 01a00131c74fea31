//! Laws that hold for every input.

mod plan;
mod values;
mod yaml;
