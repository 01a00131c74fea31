//! Catalogues in registries: `oci://HOST/PATH:TAG` is the file `catalogue.yaml` of an artifact.

use common::api::catalogue::DockerSource;
use common::image::is_of_this_machine;
use common::oci::CATALOGUE_FILE;

use super::{Document, UrlError};
use crate::image::{self, ImageError};
use crate::{Access, registry};

pub async fn get(location: &str, access: &Access<'_>) -> Result<Document, UrlError> {
    let failed = |error: ImageError| UrlError::Image(Box::new(error));
    let image = location.strip_prefix("oci://").unwrap_or(location);
    let reference = registry::reference(image).map_err(|error| failed(error.into()))?;
    let source = DockerSource {
        image: image.to_owned(),
        path: Some(CATALOGUE_FILE.to_owned()),
        plain_http: is_of_this_machine(&reference.host),
        ..DockerSource::default()
    };
    let fetched = image::fetch(&source, access).await.map_err(failed)?;
    match fetched.package.as_file() {
        Some(file) => Ok(Document {
            bytes: file.bytes.clone(),
            location: location.to_owned(),
        }),
        None => Err(UrlError::File {
            location: location.to_owned(),
            source: std::io::Error::other(format!("{CATALOGUE_FILE} is a folder")),
        }),
    }
}
