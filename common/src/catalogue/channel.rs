#![allow(missing_docs)]
//! Stub.
use crate::api::catalogue::*;
use serde_json::Value;
pub struct Channel { pub name: String, pub spec: AddonCatalogueSpec, pub warnings: Vec<String> }
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ChannelError(String);
pub fn parse(bytes: &[u8], location: &str) -> Result<Channel, ChannelError> {
    let v: Value = serde_saphyr::from_slice(bytes).map_err(|e| ChannelError(format!("{location}: {e}")))?;
    let name = v.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("").to_owned();
    let mut spec = AddonCatalogueSpec::default();
    for a in v.pointer("/spec/addons").and_then(Value::as_array).ok_or_else(|| ChannelError(format!("{location}: no spec.addons")))? {
        let s = |k: &str| a.get(k).and_then(Value::as_str).map(str::to_owned);
        let n = s("name").unwrap_or(name.clone());
        let version = AddonVersion { version: s("version").unwrap_or_default(), id: s("id").unwrap_or_default(), manifest_hash: s("manifestHash"),
            default_namespace: s("namespace"),
            source: Source { url: Some(UrlSource { manifest: s("manifest").unwrap_or_default() }), ..Default::default() },
            constraints: Constraints { kubernetes_version: s("kubernetesVersion"), ..Default::default() }, ..Default::default() };
        match spec.addons.iter_mut().find(|x| x.name == n) {
            Some(x) => x.versions.push(version),
            None => spec.addons.push(Addon { name: n, versions: vec![version], ..Default::default() }),
        }
    }
    Ok(Channel { name, spec, warnings: vec![] })
}
pub fn resolve_manifest(base: &str, manifest: &str) -> Result<String, ChannelError> {
    if manifest.contains("://") { return Ok(manifest.to_owned()); }
    let base = if base.contains("://") { base.to_owned() } else { format!("file://{base}") };
    url::Url::parse(&base).and_then(|b| b.join(manifest)).map(String::from).map_err(|e| ChannelError(e.to_string()))
}
