//! Every source against a real server on loopback, and what the real helm makes of charts: `cargo test -p addons-tests --test sources`.

#[path = "helm/rendering.rs"]
mod helm;

mod sources {
    mod cache;
    mod chart;
    mod chart_oci;
    mod folder_hash;
    mod git;
    mod image;
    mod object_store;
    mod pages;
    mod reader;
    mod registry;
    mod url;
}
