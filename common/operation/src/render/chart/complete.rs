//! A chart that helm itself installs.

use addons_render::package::Package;
use common::values::mask::SecretMask;
use serde_json::Value;

/// A chart with everything that helm needs to install it.
#[derive(Clone, Debug)]
pub struct CompleteChart {
    /// Name of the release.
    pub release: String,
    /// The chart, with its dependencies.
    pub package: Package,
    /// The merged values.
    pub values: Value,
    /// The paths of values that have to stay whole numbers, for helm's `--set`.
    pub whole_numbers: Vec<String>,
    /// Whether the definitions in `crds/` are left out.
    pub skips_crds: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// Masks content of Secrets in errors.
    pub mask: SecretMask,
}
