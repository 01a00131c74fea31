//! Catalogues by location: an AddonCatalogue manifest or a kops index, told apart by their content.

use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::{AddonCatalogue, AddonCatalogueSpec};
use common::api::names;
use common::catalogue::{Catalogue, Origin, channel};
use common::manifest::yaml::{YamlOptions, documents};

use crate::source;

/// What stands at a location.
#[derive(Debug)]
pub struct Located {
    /// The name that the file gives; empty where it gives none.
    pub name: String,
    /// The entries, with the location as base of relative manifests where the file names none.
    pub spec: AddonCatalogueSpec,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// The absolute location.
    pub location: String,
}

impl Located {
    /// The entries, for commands that need no catalogue in a cluster.
    pub fn catalogue(&self) -> Catalogue {
        Catalogue::of_spec(&self.spec, Origin::Index { location: self.location.clone() })
    }
}

/// Fetches and reads a catalogue or an index.
///
/// # Errors
/// It cannot be fetched, or is neither; with its place.
pub async fn read(location: &str) -> Result<Located> {
    let location = source::absolute(location)?;
    let fetched = source::fetch(&location).await?;
    if let Some(object) = object(&fetched.bytes) {
        let mut catalogue: AddonCatalogue =
            serde_json::from_value(object).with_context(|| format!("{location}: not an AddonCatalogue"))?;
        let base = catalogue.spec.base_url.get_or_insert_with(|| location.clone());
        ensure!(!base.is_empty(), "{location}: spec.baseURL is empty; leave it out or give a URL");
        let name = catalogue.metadata.name.unwrap_or_default();
        return Ok(Located { name, spec: catalogue.spec, warnings: Vec::new(), location });
    }
    let channel = channel::parse(&fetched.bytes, &location)?;
    Ok(Located { name: channel.name, spec: channel.spec, warnings: channel.warnings, location })
}

/// The first document, where it is of our own group; what is wrong with others the parser of indexes says.
fn object(bytes: &[u8]) -> Option<serde_json::Value> {
    let first = documents(bytes, &YamlOptions::default()).next()?.ok()?.value;
    let api_version = first.get("apiVersion")?.as_str()?;
    (api_version.starts_with(names::GROUP) && first.get("kind")?.as_str()? == "AddonCatalogue").then_some(first)
}
