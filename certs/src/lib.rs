//! Certificates of the admission webhook: issued, verified, swapped while serving, announced to the API server.
//!
//! | module | what it does |
//! |---|---|
//! | [`authority`] | issues an authority and certificates under it (ECDSA P-256) |
//! | [`serving`] | verifies chain, key, names and dates before a certificate is served |
//! | [`served`] | the certificate that is served now, swapped while connections come in |
//! | [`reload`] | re-reads files by content and serves what verified; a bad rotation keeps the old one |
//! | [`shared`] | the Secret in which all replicas keep one authority, the next one and the previous ones |
//! | [`rotation`] | what is due by the clock, for the authority and for a certificate |
//! | [`inject`] | the `caBundle` of our two webhook configurations: what it holds, and the patch that sets it |
//!
//! Nothing here talks to the API server: the webhook does, with these values.
//!
//! Everything uses one TLS provider, aws-lc-rs, named explicitly: nothing depends on a process default.

pub mod authority;
pub mod inject;
pub mod reload;
pub mod rotation;
pub mod served;
pub mod serving;
pub mod shared;
