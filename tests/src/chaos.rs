//! What the modules `crash` and `faults` share: an add-on with everything in it, operations on it, a user whose requests
//! are broken, and what has to be there in the end.

pub mod addon;
pub mod matrix;
pub mod operation;
pub mod point;
pub mod rig;
pub mod seed;
pub mod state;
