//! The md5 hashes of kops indexes, which verify nothing (semantics 11.4).

use addons_sources::location::LocatedCatalogue;
use common::catalogue::select::SelectionRules;
use common::manifest::digest::HashAlgorithm;

/// Removes md5 hashes from an index if the channels rules are asked for: the content then decides what is due. Returns warnings. With other
/// rules they stay, and are refused like every unusable hash.
pub fn remove_hashes(rules: SelectionRules, located: &mut LocatedCatalogue) -> Vec<String> {
    if !located.is_index || rules != SelectionRules::Channels {
        return Vec::new();
    }
    let addons = located.object.spec.addons.iter_mut();
    let versions = addons.flat_map(|addon| {
        let name = &addon.name;
        let versions = addon.versions.iter_mut();
        versions.map(move |version| (name, version))
    });
    let mut warnings = Vec::new();
    for (name, version) in versions {
        let is_md5 = |hash: &mut String| HashAlgorithm::from_hash(hash) == Some(HashAlgorithm::Md5);
        if let Some(hash) = version.manifest_hash.take_if(is_md5) {
            warnings.push(format!(
                "{name} {}: manifestHash {hash} is an md5 and was not verified",
                version.version
            ));
        }
    }
    warnings
}
