//! How web servers are asked, whatever the source: one client, one policy for retries and limits, one guard for addresses.
//!
//! | what is asked for | redirects followed | credentials behind a redirect |
//! |---|---|---|
//! | a document or chart by URL, an index | to any host, five at most | only back at the first host and port |
//! | a manifest, tag or blob of a registry | to any host, five at most | only back at the first host and port |
//! | the refs of a git repository | on the same host, five at most | yes |
//! | a token, the objects of a commit, an object of a store | none | – |
//!
//! No redirect leads from https to http, or to another scheme; see [`Redirects`]. Proxies are those of the environment.

pub mod bound;
mod client;
mod error;
pub mod guard;
mod policy;
pub mod retry;

pub use client::{Condition, Http, Received, hashed};
pub use error::HttpError;
pub use guard::Refused;
pub use policy::Redirects;
