//! The Kubernetes version of a cluster.

use semver::{Prerelease, Version};

use super::tolerant::{self, VersionError};

/// Reads the `gitVersion` of `/version`, such as `v1.30.4-eks-a737599`, without its pre-release.
///
/// As in kops, a range is compared with 1.30.4, and on `v1.6.0-beta.1` with 1.6.0. Build metadata is kept, but never compared.
///
/// # Errors
/// See [`tolerant::parse`].
pub fn parse(git_version: &str) -> Result<Version, VersionError> {
    let version = tolerant::parse(git_version)?;
    Ok(Version {
        pre: Prerelease::EMPTY,
        ..version
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pre_release_is_dropped() {
        let read = |text| parse(text).unwrap().to_string();
        assert_eq!(read("v1.30.4-eks-a737599"), "1.30.4");
        assert_eq!(read("v1.31.2+k3s1"), "1.31.2+k3s1");
        assert_eq!(read("v1.6.0-beta.1"), "1.6.0");
    }
}
