//! `AddonCatalogue`: the versions of add-ons that can be installed.
//!
//! A kops index is read into the same type (`catalogue::channel`), so that the rest of the code knows only one model.

#![expect(
    dead_code,
    reason = "the copy of a spec that its schema is derived from never reads `unreadable`"
)]

mod from;
mod health;
mod read;
mod signature;
mod source;
mod template;

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conditions::Condition;
use crate::entrance::UnreadableField;

pub use from::{CatalogueFrom, MergedFrom, with_digest};
pub use health::{HealthCheckExpr, HealthField};
pub use signature::{Keyless, SignaturePolicy};
pub use source::{
    Auth, CatalogueSource, DockerSource, GitRef, GitSource, HelmSource, InlineSource, NotOneKind,
    SecretRef, Source, SourceKind, UrlSource,
};
pub use template::{
    AddonTemplate, FieldType, FormField, HelmMode, HelmTemplate, Method, ResourceType,
};

#[expect(
    clippy::duplicated_attributes,
    reason = "every printed column has a type"
)]
/// A catalogue of add-ons: what can be installed, in which versions, from where, on which clusters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kubectl-addons.dev",
    version = "v1alpha1",
    kind = "AddonCatalogue",
    namespaced,
    shortname = "acat",
    category = "addons",
    doc = "A catalogue of add-ons: what can be installed, in which versions, from where, on which clusters.",
    status = "AddonCatalogueStatus",
    derive = "PartialEq",
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.class"),
    printcolumn(
        name = "Base URL",
        type_ = "string",
        json_path = ".spec.baseURL",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("!has(self.from) || !has(self.from.digest) || !has(self.addons) || self.addons.all(addon, size(addon.versions) == 0)")
    .message("with from.digest the catalogue is by reference: its addons have names only, and versions: []"))]
pub struct AddonCatalogueSpec {
    /// Custom (default) or Core. Only the core group may change a catalogue of class Core, which is hidden by default.
    #[serde(default)]
    pub class: CatalogueClass,
    /// The file from which `catalogue sync` updates `addons`. Set by `catalogue add` if the file is on a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<CatalogueFrom>,
    /// Resolves relative manifests. Set by `catalogue add` to the location of the catalogue.
    #[serde(default, rename = "baseURL", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub base_url: Option<String>,
    /// `HOST[/PATH]` of a private registry. Images of rendered objects and registries of sources are rewritten to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub registry: Option<String>,
    /// The signatures that the sources must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<SignaturePolicy>,
    /// The add-ons. Each name is unique.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub addons: Vec<Addon>,
    /// The part of the stored catalogue that cannot be read, if any. Then only the names of the entries are known. Never written.
    #[serde(skip)]
    #[schemars(skip)]
    pub unreadable: Option<UnreadableField>,
}

impl AddonCatalogueSpec {
    /// Returns the digest of the file if the catalogue is by reference: its add-ons are only names, and their versions are in the
    /// file (semantics 1.5).
    #[must_use]
    pub fn reference(&self) -> Option<&str> {
        self.from.as_ref()?.digest.as_deref()
    }

    /// Returns the signature policy for one of its versions. The catalogue's own policy takes precedence over the one that a version
    /// brings along, because the author of a synced file must not be able to change the policy of the object (semantics 11.5).
    #[must_use]
    pub fn signature_for<'a>(&'a self, version: &'a AddonVersion) -> Option<&'a SignaturePolicy> {
        let merged = version.merged_from.as_ref();
        let own = self.signature.as_ref();
        own.or_else(|| merged?.signature.as_ref())
    }

    /// Returns the private registry for one of its versions. The catalogue's own takes precedence (semantics 1.6).
    #[must_use]
    pub fn registry_for<'a>(&'a self, version: &'a AddonVersion) -> Option<&'a str> {
        let merged = version.merged_from.as_ref();
        let own = self.registry.as_deref();
        own.or_else(|| merged?.registry.as_deref())
    }
}

/// Who may change and see a catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CatalogueClass {
    /// A catalogue for everyone.
    #[default]
    Custom,
    /// Only the core group may change it. It is hidden from list, search, prompts and completion unless `--core` is set.
    Core,
}

/// An add-on with all its versions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Addon {
    /// The name, as in RFC 1123.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
    /// A description in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
    /// Who is responsible for the add-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<Support>,
    /// Set once the add-on has ended. Counts for each of its versions that is not deprecated itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecation>,
    /// The versions. Each combination of version and id is unique, also after versions are normalised (semantics 2.1).
    #[schemars(length(max = 1000))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["version".into(), "id".into()]))]
    pub versions: Vec<AddonVersion>,
}

/// Who ships, tests and supports an add-on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Support {
    /// Installed on all clusters, and not deletable by users. Only allowed in catalogues of class Core.
    Core,
    /// Supported by the platform, installed on demand.
    Optional,
    /// Provided and supported by the customer.
    Customer,
}

/// Says that an add-on or a version has ended, and what replaces it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deprecation {
    /// The day since which it is deprecated, `2026-03-31`. Only shown: the field counts from when it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"))]
    pub since: Option<String>,
    /// Why, in one line.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// The name of the add-on that replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub successor: Option<String>,
}

impl fmt::Display for Deprecation {
    /// `deprecated since 2026-03-31: no more fixes; use traefik`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("deprecated")?;
        if let Some(since) = &self.since {
            write!(f, " since {since}")?;
        }
        write!(f, ": {}", self.reason)?;
        match &self.successor {
            Some(successor) => write!(f, "; use {successor}"),
            None => Ok(()),
        }
    }
}

/// A version of an add-on: a source, the way it is rendered, and the clusters that it fits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = kube::core::Rule::new("self.version != '' || self.id != '' || has(self.manifestHash)")
    .message("a version needs a version, an id or a manifestHash"))]
#[x_kube(validation = kube::core::Rule::new("!has(self.source.helm) || self.template.method == 'helm'")
    .message("source.helm requires template.method helm"))]
#[x_kube(validation = kube::core::Rule::new("!has(self.source.inline) || self.template.method != 'helm'")
    .message("a chart cannot be written inline"))]
pub struct AddonVersion {
    /// Semver, read tolerantly (`v1`, `1.2`, `v1.2.3-rc.1`). Empty in current kops indexes.
    #[serde(default)]
    #[schemars(length(max = 128))]
    pub version: String,
    /// Distinguishes entries with equal versions (kops).
    #[serde(default)]
    #[schemars(length(max = 128))]
    pub id: String,
    /// The namespace of objects that do not name one, unless the installation sets another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub default_namespace: Option<String>,
    /// How the source is turned into manifests.
    #[serde(default)]
    pub template: AddonTemplate,
    /// Where the manifests come from.
    pub source: Source,
    /// Hex sha256 or sha1 of the manifest, verified before anything is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 128),
        regex(pattern = r"^([0-9a-fA-F]{32}|[0-9a-fA-F]{40}|[0-9a-fA-F]{64})?$")
    )]
    pub manifest_hash: Option<String>,
    /// The clusters that this version fits.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Set once the version has ended, for example because of a fault in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<Deprecation>,
    /// Values that override the package's defaults, e.g. for a private registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_form")]
    pub values: Option<Value>,
    /// Other add-ons that must be installed. They are checked and ordered, and never installed unasked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["name".into()]))]
    pub requires: Vec<Requirement>,
    /// When objects of certain kinds are ready, as in Flux: expressions in CEL. Objects of other kinds are judged by general rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub health_check_exprs: Vec<HealthCheckExpr>,
    /// The original catalogue; set in merged catalogues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_from: Option<MergedFrom>,
    /// kops: labels of the objects of the add-on. Used for the first update of an add-on that kops installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<BTreeMap<String, String>>,
    /// kops: the objects to prune while no inventory is recorded (kept for adoption).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prune: Option<PruneSpec>,
    /// kops: the nodes that an update marks for a rolling update: `control-plane`, `workers` or `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_rolling_update: Option<String>,
    /// kops: create a certificate authority (Secret `NAME-ca`) and a cert-manager Issuer in kube-system.
    #[serde(
        default,
        rename = "needsPKI",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub needs_pki: bool,
}

/// The clusters that a version fits. A missing or empty constraint matches every cluster (semantics 3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Constraints {
    /// A Masterminds constraint on the Kubernetes version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub k8s_version: Option<String>,
    /// A Masterminds constraint on the KKP version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub kkp_version: Option<String>,
    /// A blang range of Kubernetes versions, as in kops indexes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub kubernetes_version: Option<String>,
    /// A condition in CEL over the facts of the cluster: `provider == 'aws' && 'arm64' in architectures`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000))]
    pub expression: Option<String>,
}

impl Constraints {
    /// Whether no constraint is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.k8s_version.is_none()
            && self.kkp_version.is_none()
            && self.kubernetes_version.is_none()
            && self.expression.is_none()
    }
}

/// Another add-on that must be installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// The name of the add-on.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// A Masterminds constraint on its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub version: Option<String>,
}

/// kops: the objects that `channels` prunes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PruneSpec {
    /// The kinds to prune, and where to look for them.
    #[serde(default)]
    pub kinds: Vec<PruneKind>,
}

/// kops: one kind to prune.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PruneKind {
    /// The API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespaces to search; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// A label selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// A field selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_selector: Option<String>,
}

/// The observed state of a catalogue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonCatalogueStatus {
    /// Generation for which the conditions were determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The conditions.
    #[serde(default)]
    #[x_kube(merge_strategy = kube::core::ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The state of `spec.from` from which `spec.addons` was last read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced: Option<SyncedRevision>,
}

/// A state of the file that `spec.from` names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SyncedRevision {
    /// The commit, the digest of the image, or the sha256 of the file.
    pub revision: String,
    /// When it was first read.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub at: Time,
}

/// Returns the schema for any JSON object, whose fields are kept unchanged.
pub(crate) fn free_form(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
