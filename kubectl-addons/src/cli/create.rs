//! Flags of `catalogue create`.

use clap::Args;
use common::catalogue::author::Typed;

/// Flags of `catalogue create`.
#[derive(Args, Debug)]
pub struct CatalogueCreateArgs {
    /// Name of the catalogue
    #[arg(value_parser = super::name::catalogue)]
    pub name: String,
    /// A manifest, a folder or .tgz of manifests or templates, a chart, or a folder of charts or versions: a path, a URL or oci://…/CHART:VERSION; may be repeated
    #[arg(long, required = true, value_name = "LOCATION", value_parser = super::typed::location, value_hint = clap::ValueHint::AnyPath)]
    pub from: Vec<Typed>,
    /// Name of a chart, if LOCATION is a Helm repository (a single LOCATION only)
    #[arg(long, value_name = "NAME")]
    pub chart: Option<String>,
    /// Name of the add-on (a single LOCATION only); default: from the chart, a folder NAME/VERSION, the label app.kubernetes.io/name or the file name
    #[arg(long, value_name = "NAME", value_parser = super::name::addon)]
    pub addon: Option<String>,
    /// Version to list (a single LOCATION only); default: from the chart, a folder NAME/VERSION, the label app.kubernetes.io/version or the file name; the newest one in a registry or repository
    #[arg(long, value_name = "VERSION", value_parser = super::name::version)]
    pub version: Option<String>,
    /// Access the registry of an oci:// location over HTTP without TLS
    #[arg(long)]
    pub plain_http: bool,
}
