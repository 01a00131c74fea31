//! Flags of `render`. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use common::api::catalogue;

use super::name::Candidates;
use super::operation::SourceArgs;
use super::reading::FitArgs;
use super::values::ValueEditArgs;

/// Flags of `render`.
#[derive(Args, Debug)]
pub struct RenderArgs {
    /// Add-on from a catalogue, or with --channel, from an index
    #[arg(value_name = "NAME[@VERSION]", required_unless_present = "dir", value_parser = super::name::addon, add = Candidates::Addons)]
    pub addon: Option<String>,
    /// Folder with manifests, templates or a chart, instead of an add-on from a catalogue
    #[arg(long, value_name = "DIR", conflicts_with_all = ["addon", "channel", "catalogue"], requires = "method")]
    pub dir: Option<PathBuf>,
    /// How the folder is rendered into manifests
    #[arg(long, value_enum, value_name = "METHOD", requires = "dir")]
    pub method: Option<RenderMethod>,
    /// Template data in JSON or YAML, instead of facts from the cluster; no cluster is needed
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Name of the installation; default: the name of the add-on or folder
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Namespace for objects that do not name one; default: that of the version, otherwise the name of the add-on
    #[arg(long, value_name = "NAMESPACE", add = Candidates::AllNamespaces)]
    pub target_namespace: Option<String>,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub fit: FitArgs,
    #[command(flatten)]
    pub values: ValueEditArgs,
    /// Output format
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: RenderFormat,
    /// Write one YAML file for each object into this folder, which must be new, empty, or written by render before
    #[arg(long, value_name = "DIR", conflicts_with = "output", value_hint = clap::ValueHint::DirPath)]
    pub output_dir: Option<PathBuf>,
    /// Do not mask the values of Secrets, so that the objects can be applied or compared
    #[arg(long)]
    pub show_secrets: bool,
}

/// Methods of `--method`, as `template.method` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RenderMethod {
    /// Plain YAML
    Manifest,
    /// Go templates
    GoTemplate,
    /// A Helm chart
    Helm,
}

impl From<RenderMethod> for catalogue::Method {
    fn from(method: RenderMethod) -> Self {
        match method {
            RenderMethod::Manifest => Self::Manifest,
            RenderMethod::GoTemplate => Self::GoTemplate,
            RenderMethod::Helm => Self::Helm,
        }
    }
}

/// Formats of `render`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RenderFormat {
    /// the objects, one document each
    #[default]
    Yaml,
    /// the same as KYAML, with braces and quotes
    Kyaml,
    /// the objects as one List
    Json,
    /// the text as it was rendered, except for Secrets
    Raw,
}
