//! Certificates of the admission webhook: issuing, verifying, swapping while serving, and announcing to the API server.
//!
//! | module | what it does |
//! |---|---|
//! | [`authority`] | issues an authority and certificates under it (ECDSA P-256) |
//! | [`serving`] | verifies chain, key, names and dates of a certificate before it is served, and swaps the served one while connections come in |
//! | [`reload`] | re-reads certificate files and serves new content once it is verified; a bad rotation keeps the old certificate |
//! | [`shared`] | the Secret in which all replicas keep the current authority, the next one and the previous ones |
//! | [`rotation`] | which step of the rotation is due, for the authority and for a certificate |
//! | [`inject`] | reads and patches the `caBundle` of our two webhook configurations |
//!
//! This crate does not talk to the API server: the webhook does, with these values.
//!
//! All modules name one TLS provider, aws-lc-rs, explicitly, and do not depend on a process default.

pub mod authority;
pub mod inject;
pub mod reload;
pub mod rotation;
pub mod serving;
pub mod shared;
