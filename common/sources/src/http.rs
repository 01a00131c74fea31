//! Requests to web servers for all sources: one client, one policy for retries and limits, and one check of
//! addresses.
//!
//! | request | redirects followed | credentials after a redirect |
//! |---|---|---|
//! | a document or chart by URL, an index | to any host, at most five | only to the first host and port |
//! | a manifest, tag or blob of a registry | to any host, at most five | only to the first host and port |
//! | the refs of a git repository | on the same host, at most five | yes |
//! | a token, the objects of a commit, an object of a store | none | – |
//!
//! Redirects from https to http or to another scheme are never followed; see [`Redirects`]. Proxies come from
//! the environment.

pub mod bound;
mod client;
mod error;
pub mod guard;
mod policy;
pub mod retry;

pub use client::{CacheCondition, Http, ReceivedResponse, hash_url};
pub use error::HttpError;
pub use guard::RefusedAddress;
pub use policy::Redirects;
