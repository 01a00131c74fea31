//! The md5 hashes of kops indexes: nothing can be verified with them (semantics 11).

use addons_sources::location::LocatedCatalogue;
use common::catalogue::select::Rules;
use common::manifest::digest::Algorithm;

/// Takes them out of an index where the channels rules are asked for: what is due goes by the content then. Returns warnings. With
/// other rules they stay, and are refused like every hash that cannot be used.
pub fn take_out(rules: Rules, located: &mut LocatedCatalogue) -> Vec<String> {
    if !located.is_index || rules != Rules::Channels {
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
        let is_md5 = |hash: &mut String| Algorithm::of(hash) == Some(Algorithm::Md5);
        if let Some(hash) = version.manifest_hash.take_if(is_md5) {
            warnings.push(format!(
                "{name} {}: manifestHash {hash} is an md5 and was not verified",
                version.version
            ));
        }
    }
    warnings
}
