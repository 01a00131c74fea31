//! Flags of `catalogue create`.

use clap::Args;

/// Flags of `catalogue create`.
#[derive(Args, Debug)]
pub struct CatalogueCreate {
    /// Name of the catalogue
    #[arg(value_parser = super::name::catalogue)]
    pub name: String,
    /// What it lists: a manifest, a folder or .tgz of manifests or templates, a chart; a path, a URL or oci://…/CHART:VERSION, and may be repeated
    #[arg(long, required = true, value_name = "LOCATION", value_hint = clap::ValueHint::AnyPath)]
    pub from: Vec<String>,
    /// A chart of the Helm repository that LOCATION is (one only)
    #[arg(long, value_name = "NAME")]
    pub chart: Option<String>,
    /// Version of what it lists (one only); default: that of the chart, of the label app.kubernetes.io/version, or of the file name; the newest in a registry or repository
    #[arg(long, value_name = "VERSION", value_parser = super::version)]
    pub version: Option<String>,
    /// The registry of an oci:// location speaks HTTP without TLS
    #[arg(long)]
    pub plain_http: bool,
}
