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

    /// What a location opens that a user typed.
    fn typed(location: &str) -> addons_sources::Reach {
        let typed = common::catalogue::author::Typed::on_command_line(location);
        addons_sources::Reach::typed(&typed, &std::sync::Arc::default())
    }
}
