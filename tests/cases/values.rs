//! Values from every store, without a cluster (semantics 9, 10): `cargo test -p addons-tests --test offline values::`.

mod defaulting;
mod stores;
