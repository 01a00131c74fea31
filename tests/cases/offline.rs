//! Tests that need no cluster: `cargo test -p addons-tests --test offline`.

mod architecture;
mod cli;
mod generated;
mod goldens;
mod monitoring;
mod pages;
mod properties;
mod proposal;
mod release;
mod rendering;
mod schemas;
#[path = "starter/pins.rs"]
mod starter;
mod values;
mod workflows;
