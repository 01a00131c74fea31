#![expect(missing_docs, reason = "stub")]
//! Stub.
pub mod tolerant {
    /// s
    pub fn parse(s: &str) -> Result<semver::Version, super::VersionError> {
        let t = s.trim().trim_start_matches('v');
        let mut u = t.to_string();
        let n = t
            .split(['-', '+'])
            .next()
            .unwrap_or("")
            .matches('.')
            .count();
        if n < 2 && !t.contains(['-', '+']) {
            for _ in n..2 {
                u.push_str(".0");
            }
        }
        semver::Version::parse(&u).map_err(|e| super::VersionError(format!("{s:?} {e}")))
    }
}
pub mod constraint {
    /// s
    pub struct Constraint;
    impl Constraint {
        /// s
        pub fn parse(s: &str) -> Result<Self, super::VersionError> {
            if s.ends_with(['<', '=', '>']) {
                Err(super::VersionError(format!("{s:?} ends in an operator")))
            } else {
                Ok(Self)
            }
        }
    }
}
pub mod range {
    /// s
    pub struct Range;
    impl Range {
        /// s
        pub fn parse(s: &str) -> Result<Self, super::VersionError> {
            if s.ends_with(['<', '=', '>']) {
                Err(super::VersionError(format!("{s:?} ends in an operator")))
            } else {
                Ok(Self)
            }
        }
    }
}

pub mod kubernetes {
    pub fn parse(s: &str) -> Result<semver::Version, super::VersionError> {
        let mut v = super::tolerant::parse(s)?;
        v.pre = semver::Prerelease::EMPTY;
        v.build = semver::BuildMetadata::EMPTY;
        Ok(v)
    }
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct VersionError(pub String);
