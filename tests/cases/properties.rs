//! Laws that hold for every input.

mod admission;
mod echo;
mod law;
mod layers;
mod order;
mod plan;
mod selection;
mod values;
mod yaml;
