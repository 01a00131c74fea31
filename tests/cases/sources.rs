//! Every source against a real server on loopback: `cargo test -p addons-tests --test sources`.

mod rendering_helm;

mod sources {
    mod cache;
    mod chart;
    mod chart_oci;
    mod git;
    mod image;
    mod object_store;
    mod reader;
    mod url;
}
