//! Rendering without a cluster: what Go and KKP make of templates, byte for byte.

mod kkp;
mod limits;
mod templates;
mod work;
