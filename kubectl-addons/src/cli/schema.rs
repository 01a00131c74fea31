//! Flags of `schema`.

use clap::{Args, ValueEnum};

/// Flags of `schema`.
#[derive(Args, Debug)]
pub struct Schema {
    /// The file that an editor is to check
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
