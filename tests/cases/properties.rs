//! Properties: laws that hold for every input.

mod values;
mod yaml;
