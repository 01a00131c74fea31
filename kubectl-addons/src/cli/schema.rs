//! Flags of `schema`.

use clap::{Args, ValueEnum};

/// Flags of `schema`.
#[derive(Args, Debug)]
pub struct Schema {
    /// The kind of file to check
    #[arg(value_enum)]
    pub file: File,
}

/// Files that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum File {
    /// AddonCatalogues
    Catalogue,
    /// AddonInstallations, for apply -f
    Set,
}
