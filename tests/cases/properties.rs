//! Laws, tried on random inputs.

mod admission;
