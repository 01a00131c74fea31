//! What the tool says holds, and what it does is what was said. The number in a name is that of the rule's kind.

mod absence;
mod adoption;
mod charts;
mod in_force;
mod late;
mod named;
mod refused;
mod sent;
mod shared;
mod standing;
mod waits;
mod ways_out;
