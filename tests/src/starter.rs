//! The starter catalogue, made of its recipe.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

/// Where the files of public repositories lie, by commit and path.
pub const HOST: &str = "https://raw.githubusercontent.com";

/// `deploy/catalogue/recipe.yaml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// By name.
    pub projects: Vec<Project>,
}

/// An upstream project.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Of the add-on.
    pub name: String,
    /// One line.
    pub description: String,
    /// `OWNER/NAME`.
    pub repository: String,
    /// SPDX.
    pub licence: String,
    /// Of its objects.
    pub namespace: String,
    /// The newest first.
    pub versions: Vec<Version>,
}

/// A version of a project.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Version {
    /// As the project numbers it.
    pub version: String,
    /// 40 hex digits.
    pub commit: String,
    /// Of the manifest, in the repository.
    pub path: String,
    /// Of the bytes of the manifest.
    pub sha256: String,
    /// What the APIs of the manifest need.
    pub k8s_version: String,
}

/// The recipe as it stands in the repository.
///
/// # Errors
/// A recipe that cannot be read.
pub fn recipe() -> Result<Recipe> {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../deploy/catalogue/recipe.yaml"
    ));
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_saphyr::from_str(&text).with_context(|| path.display().to_string())
}

/// File names below `deploy/catalogue`, and what stands in them.
///
/// # Errors
/// A recipe that cannot be read.
pub fn files() -> Result<Vec<(String, String)>> {
    let mut text =
        "# Generated from recipe.yaml: cargo run -p addons-tests --bin generate catalogue\n\
                    apiVersion: kubectl-addons.dev/v1alpha1\n\
                    kind: AddonCatalogue\n\
                    metadata:\n  name: starter\nspec:\n  addons:\n"
            .to_owned();
    for project in recipe()?.projects {
        let Project {
            name,
            description,
            repository,
            licence,
            namespace,
            versions,
        } = project;
        write!(
            text,
            "  # {repository}, {licence}\n  - name: {name}\n    description: {description}\n    \
             support: Optional\n    versions:\n"
        )?;
        for version in versions {
            let Version {
                version,
                commit,
                path,
                sha256,
                k8s_version,
            } = version;
            write!(
                text,
                "    - version: {version}\n      defaultNamespace: {namespace}\n      \
                 source: {{url: {{manifest: \"{HOST}/{repository}/{commit}/{path}\"}}}}\n      \
                 manifestHash: {sha256}\n      constraints: {{k8sVersion: \"{k8s_version}\"}}\n"
            )?;
        }
    }
    Ok(vec![("catalogue.yaml".to_owned(), text)])
}
