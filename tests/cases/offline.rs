//! Tests that need no cluster: `cargo test -p addons-tests --test offline`.

mod cli;
mod goldens;
mod properties;
