//! Every source against a real server on loopback: `cargo test -p addons-tests --test sources`.

#[path = "sources/cache.rs"]
mod cache;
#[path = "sources/object_store.rs"]
mod object_store;
#[path = "sources/reader.rs"]
mod reader;
#[path = "sources/url.rs"]
mod url;
