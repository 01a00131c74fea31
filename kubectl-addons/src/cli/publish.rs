//! Flags of `catalogue publish`.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::Args;
use common::catalogue::author::Typed;
use common::image::{Image, ImageError};

use super::Output;

/// How the name of a target begins.
const SCHEME: &str = "oci://";
/// The tag of a target that names none.
const DEFAULT_TAG: &str = "latest";

/// Flags of `catalogue publish`.
#[derive(Args, Debug)]
pub struct CataloguePublishArgs {
    /// Name in a registry; default for TAG: latest
    #[arg(value_name = "oci://HOST/NAME[:TAG]", value_parser = parse_target)]
    pub target: Image,
    /// The catalogue: an AddonCatalogue manifest, or a folder with a file catalogue.yaml
    #[arg(value_name = "LOCATION", default_value = ".", value_parser = super::typed::location, value_hint = clap::ValueHint::FilePath)]
    pub location: Typed,
    /// Sign the catalogue and its packages with this private key: ECDSA (P-256) in PEM format (PKCS #8), without a password
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub sign_key: Option<PathBuf>,
    /// Show what would be pushed, and push nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output: Output,
}

/// Why a text is not a target.
#[derive(Debug, thiserror::Error)]
enum TargetError {
    #[error("write oci://HOST/NAME or oci://HOST/NAME:TAG")]
    Scheme,
    #[error("name the registry as well: oci://HOST/{name}")]
    NoHost { name: String },
    #[error("a digest cannot be chosen; write oci://{name}, or add a tag")]
    Digest { name: String },
    #[error(transparent)]
    Image(#[from] ImageError),
}

/// Parses the name of a catalogue in a registry.
fn parse_target(text: &str) -> Result<Image, TargetError> {
    let name = text.strip_prefix(SCHEME).ok_or(TargetError::Scheme)?;
    let image = Image::parse(name.trim_end_matches('/'))?;
    if name.split('/').next() != Some(&image.host) {
        let name = name.to_owned();
        return Err(TargetError::NoHost { name });
    }
    if image.digest.is_some() {
        let name = format!("{}/{}", image.host, image.repository);
        return Err(TargetError::Digest { name });
    }
    Ok(Image {
        tag: Some(image.tag.unwrap_or_else(|| DEFAULT_TAG.to_owned())),
        ..image
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_names_a_registry_and_gets_a_tag() {
        let digest = "a".repeat(64);
        for (text, expected) in [
            ("oci://h.example/team/c", "h.example/team/c:latest"),
            ("oci://127.0.0.1:5000/c:1.0", "127.0.0.1:5000/c:1.0"),
            ("oci://h.example/c/", "h.example/c:latest"),
            (
                "h.example/c",
                "write oci://HOST/NAME or oci://HOST/NAME:TAG",
            ),
            (
                "https://h.example/c",
                "write oci://HOST/NAME or oci://HOST/NAME:TAG",
            ),
            ("oci://c", "name the registry as well: oci://HOST/c"),
            (
                "oci://team/c",
                "name the registry as well: oci://HOST/team/c",
            ),
            (
                &format!("oci://h.example/c@sha256:{digest}"),
                "a digest cannot be chosen; write oci://h.example/c, or add a tag",
            ),
        ] {
            let found = parse_target(text);
            let found = found.map_or_else(|error| error.to_string(), |it| it.to_string());
            assert_eq!(found, expected, "{text}");
        }
        assert!(parse_target("oci://h.example/C").is_err());
    }
}
