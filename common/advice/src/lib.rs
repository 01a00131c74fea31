//! Advice: what is wrong with a cluster ([`doctor`]), and what a future release of Kubernetes would do to it ([`preflight`]). Both only
//! read.
//!
//! The rules are pure functions of facts; [`doctor::reading`] and [`preflight::check`] read these facts.

pub mod doctor;
pub mod preflight;
