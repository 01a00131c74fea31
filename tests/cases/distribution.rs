//! Catalogues that are brought up to date from where they came, and brought to other clusters (semantics 1).

mod pushed;
mod synced;
