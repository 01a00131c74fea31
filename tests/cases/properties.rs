//! What holds for every input.

mod admission;
mod selection;
