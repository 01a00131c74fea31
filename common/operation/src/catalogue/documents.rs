//! The documentation in a package: its default values, and its README.

use std::borrow::Cow;

use addons_render::package::PackagedFile;
use addons_render::text;
use common::api::catalogue::Method;
use common::catalogue::CatalogueEntry;

use crate::context::Context;
use crate::error::{OperationError, within};
use crate::{fetch, render};

/// The documents of a package, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageDocuments {
    /// `values.yaml`; plain manifests have none.
    pub values: Option<PackagedFile>,
    /// The README.
    pub readme: Option<PackagedFile>,
}

/// Fetches the package of an entry and reads its documents, without rendering anything.
///
/// # Errors
/// Those of [`fetch::package`]; a chart archive cannot be read.
pub async fn read_documents(
    ctx: &Context,
    entry: &CatalogueEntry,
) -> Result<PackageDocuments, OperationError> {
    let resolved = render::resolve_uninstalled(ctx, entry);
    let package = fetch::package(ctx, &resolved).await?.fetched.package;
    let method = entry.version.template.method;
    let files = match method {
        Method::Helm => within(addons_helm::chart_files(&package), || resolved.place())?,
        Method::Manifest | Method::GoTemplate => Cow::Borrowed(&package),
    };
    let values = text::values_file(&files).filter(|_| method != Method::Manifest);
    Ok(PackageDocuments {
        values: values.cloned(),
        readme: files.readme().cloned(),
    })
}
