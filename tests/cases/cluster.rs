//! Tests on a real control plane: `cargo test -p addons-tests --test cluster`.

mod catalogue;
mod definitions;
mod engine;
mod harness;
mod main_job;
mod plans;
mod webhook;
