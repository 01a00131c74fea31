//! Certificates of the admission webhook: issued, verified, swapped while serving, announced to the API server.
//!
//! | module | what it does |
//! |---|---|
//! | [`authority`] | issues an authority and certificates under it (ECDSA P-256) |
//! | [`serving`] | verifies chain, key, names and dates before a certificate is served |
//! | [`reload`] | re-reads the files by content and swaps what verified; a bad rotation keeps the old one |
//! | [`inject`] | the `caBundle` patches of our two webhook configurations, as values |
//!
//! Everything uses one TLS provider, aws-lc-rs, named explicitly: nothing depends on a process default.

pub mod authority;
pub mod inject;
pub mod reload;
pub mod serving;
