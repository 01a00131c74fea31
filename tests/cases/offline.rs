//! Tests that need no cluster: `cargo test -p addons-tests --test offline`.

mod architecture;
mod cli;
mod goldens;
mod pages;
mod properties;
mod proposal;
mod rendering;
mod schemas;
mod sizes;
mod values;
