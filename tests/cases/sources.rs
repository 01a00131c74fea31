//! Every source against a real server on loopback: `cargo test -p addons-tests --test sources`.

mod sources {
    mod cache;
    mod chart_oci;
    mod git;
    mod image;
    mod object_store;
    mod reader;
    mod url;
}
