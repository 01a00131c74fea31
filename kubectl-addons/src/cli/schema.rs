//! Flags of `schema`.

use clap::{Args, ValueEnum};

/// Flags of `schema`.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// The kind of file to check
    #[arg(value_enum)]
    pub file: SchemaFile,
}

/// Files that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaFile {
    /// AddonCatalogues
    Catalogue,
    /// AddonInstallations, for apply -f
    Set,
}
