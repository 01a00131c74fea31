//! `reconcile`: what the records ask for is done, and what cannot be done is a condition (semantics 12, 15, 20).

mod pass;
