//! Flags of `export` and `import`.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::Args;
use common::registry::Registry;

use super::name::Candidates;
use super::operation::SourceArgs;
use super::reading::FitArgs;

/// Flags of `export`.
#[derive(Args, Debug)]
pub struct ExportArgs {
    /// The add-ons; add-ons that they require are exported only if they are named as well
    #[arg(value_name = "NAME[@VERSION]", required_unless_present = "all", conflicts_with = "all", value_parser = super::name::addon, add = Candidates::Addons)]
    pub addons: Vec<String>,
    /// Export every add-on that fits, except core add-ons
    #[arg(long)]
    pub all: bool,
    /// Archive to write; an interrupted export to the same file continues
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub archive: PathBuf,
    /// Export this image as well; may be repeated
    ///
    /// Needed for images that are named only in arguments, variables or values. Images of containers are found automatically.
    #[arg(long = "image", value_name = "IMAGE")]
    pub images: Vec<String>,
    /// Leave out the images: only the charts, packages and manifests of the add-ons, and their catalogue
    #[arg(long, conflicts_with = "images")]
    pub charts_only: bool,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub fit: FitArgs,
}

/// Flags of `import`.
#[derive(Args, Debug)]
pub struct ImportArgs {
    /// The archive, as written by `export`
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub archive: PathBuf,
    /// Registry to push to, which is then passed to `install --registry`
    #[arg(long, value_name = "HOST[/PATH]")]
    pub registry: Registry,
}
