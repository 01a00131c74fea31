//! Flags of `export` and `import`.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use common::render::registry::Registry;

use super::operation::Source;
use super::reading::Fit;
use crate::completion;

/// Flags of `export`.
#[derive(Args, Debug)]
pub struct Export {
    /// The add-ons; what they require is exported only if it is named, too
    #[arg(value_name = "NAME[@VERSION]", required_unless_present = "all", conflicts_with = "all", value_parser = super::name::addon, add = ArgValueCandidates::new(completion::addons))]
    pub addons: Vec<String>,
    /// Export every add-on that fits, but core add-ons
    #[arg(long)]
    pub all: bool,
    /// Write this archive; an interrupted export to the same file continues
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub archive: PathBuf,
    /// Export this image as well; may be repeated
    ///
    /// For images that only arguments, variables or values name. Images of containers are found without it.
    #[arg(long = "image", value_name = "IMAGE")]
    pub images: Vec<String>,
    #[command(flatten)]
    pub source: Source,
    #[command(flatten)]
    pub fit: Fit,
}

/// Flags of `import`.
#[derive(Args, Debug)]
pub struct Import {
    /// The archive that `export` wrote
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub archive: PathBuf,
    /// Push to this registry, which `install --registry` then names
    #[arg(long, value_name = "HOST[/PATH]")]
    pub registry: Registry,
}
