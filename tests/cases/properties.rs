//! Laws that hold for every input.

mod admission;
mod plan;
mod values;
mod yaml;
