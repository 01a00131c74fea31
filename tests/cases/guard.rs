//! What is protected cannot be reached from the side. The number in a name is that of the kind of its rule.

mod budget;
mod core;
mod entrance;
mod facts;
mod hostile;
mod jail;
mod judged;
mod operations;
mod proofs;
mod reach;
mod rights;
mod views;
