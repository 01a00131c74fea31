//! Every source against a real server on loopback: `cargo test -p addons-tests --test sources`.

mod chart;
mod rendering_helm;
