//! The documentation in a package: its default values, and its README.

use std::borrow::Cow;

use addons_render::package::File;
use addons_render::text;
use common::api::catalogue::Method;
use common::catalogue::Entry;

use crate::context::Context;
use crate::error::{OperationError, within};
use crate::fetch;
use crate::render;

/// The documents of a package, as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Documents {
    /// `values.yaml`; plain manifests have none.
    pub values: Option<File>,
    /// The README.
    pub readme: Option<File>,
}

/// Fetches the package of an entry and reads its documents, without rendering anything.
///
/// # Errors
/// Those of [`fetch::package`]; a chart archive cannot be read.
pub async fn of_entry(ctx: &Context, entry: &Entry) -> Result<Documents, OperationError> {
    let resolved = render::uninstalled(ctx, entry);
    let package = fetch::package(ctx, &resolved).await?.fetched.package;
    let method = entry.version.template.method;
    let files = match method {
        Method::Helm => within(addons_helm::files(&package), || resolved.place())?,
        Method::Manifest | Method::GoTemplate => Cow::Borrowed(&package),
    };
    let values = text::values_file(&files).filter(|_| method != Method::Manifest);
    Ok(Documents {
        values: values.cloned(),
        readme: files.readme().cloned(),
    })
}
