//! Laws, tried on random inputs.

mod plan;
