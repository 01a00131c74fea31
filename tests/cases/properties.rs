//! What holds for every input.

mod selection;
