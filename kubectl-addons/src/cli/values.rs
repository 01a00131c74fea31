//! Flags about values. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::Args;

/// Values of the installation, and where its images come from: kept in the installation.
#[derive(Args, Debug, Default)]
#[group(id = "given")]
pub struct Values {
    /// YAML file with values, - for stdin; later files override earlier ones
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Values in helm's grammar. The help stands below, for rustdoc reads an index as a link.
    #[arg(
        long = "set",
        value_name = "PATH=VALUE",
        help = "Values in helm's syntax: a.b=1, list[0]=x, list={x,y}, a=1,b=2; \
                ADDON:a=1 for one of several add-ons; overrides files and --set-json"
    )]
    pub set: Vec<String>,
    /// Like --set, but every value is text; overrides --set
    #[arg(long, value_name = "PATH=TEXT")]
    pub set_string: Vec<String>,
    /// A value in JSON, or a map of values; overrides files
    #[arg(long, value_name = "PATH=JSON")]
    pub set_json: Vec<String>,
    /// Use the text of a file as a value; overrides all other flags for values
    #[arg(long, value_name = "PATH=FILE")]
    pub set_file: Vec<String>,
    /// Private registry to which all images, and sources in registries, are rewritten
    #[arg(long, value_name = "HOST[/PATH]")]
    pub registry: Option<String>,
}

/// What is changed in the values of an installation that exists: values are taken away first.
#[derive(Args, Debug, Default)]
pub struct Changes {
    #[command(flatten)]
    pub values: Values,
    /// Take values of the installation away, and go back to the defaults. The help stands below, for rustdoc reads an index as a link.
    #[arg(
        long,
        value_name = "PATH",
        requires = "addons",
        help = "Remove a value from the installation and go back to the default: a.b, list[0]; \
                takes effect before all other flags"
    )]
    pub unset: Vec<String>,
    /// Remove all values of the installation before the other flags apply
    #[arg(long, requires = "addons", conflicts_with = "unset")]
    pub reset_values: bool,
}
