//! Real servers of sources on loopback ports: registries, git, chart repositories, object stores.

pub mod charts;
