//! Checks whether the constraints of an entry fit a cluster.

use semver::{Prerelease, Version};

use super::{ClusterVersions, RejectionReason};
use crate::api::catalogue::Constraints;
use crate::expression::profile::{self, Profile};
use addons_versions::RangeError;
use addons_versions::constraint::Constraint;
use addons_versions::range::Range;

/// Returns why `constraints` exclude the cluster, or `None` if they do not (semantics 3).
///
/// Every constraint must match. A missing or empty constraint matches, and so does an unknown version. The pre-release of the
/// cluster's version is dropped. A range that cannot be read excludes every cluster, and so does an expression without a result, if the
/// facts of the cluster were read.
#[must_use]
pub fn find_misfit(constraints: &Constraints, facts: &ClusterVersions) -> Option<RejectionReason> {
    let blang = |text: &str, version: Option<&Version>| {
        let range = Range::parse(text)?;
        Ok(version.is_none_or(|version| range.matches(version)))
    };
    let masterminds = |text: &str, version: Option<&Version>| {
        let constraint = Constraint::parse(text)?;
        Ok(version.is_none_or(|version| constraint.matches(version)))
    };
    let Constraints {
        kubernetes_version,
        k8s_version,
        kkp_version,
        expression,
    } = constraints;
    let (kubernetes, kkp) = (&facts.kubernetes, &facts.kkp);
    check_range("kubernetesVersion", kubernetes_version, kubernetes, blang)
        .or_else(|| check_range("k8sVersion", k8s_version, kubernetes, masterminds))
        .or_else(|| check_range("kkpVersion", kkp_version, kkp, masterminds))
        .or_else(|| check_expression(expression.as_deref()?, facts))
}

fn check_expression(expression: &str, facts: &ClusterVersions) -> Option<RejectionReason> {
    let known = facts.profile.as_ref()?;
    if expression.trim().is_empty() {
        return None;
    }
    // The version may be another one than that of the cluster: the one after an upgrade.
    let version = facts.kubernetes.as_ref();
    let version = version.map(|it| format!("{}.{}.{}", it.major, it.minor, it.patch));
    let profile = Profile {
        version: version.or_else(|| known.version.clone()),
        ..Profile::clone(known)
    };
    let holds = profile::compile(expression)
        .and_then(|compiled| Ok((profile.evaluate(&compiled)?, profile.describe(&compiled))));
    match holds {
        Ok((true, _)) => None,
        Ok((false, facts)) => Some(RejectionReason::ExpressionIsFalse {
            expression: expression.to_owned(),
            facts,
        }),
        Err(error) => Some(RejectionReason::ExpressionFails {
            expression: expression.to_owned(),
            error: error.to_string(),
        }),
    }
}

fn check_range(
    field: &'static str,
    range: &Option<String>,
    version: &Option<Version>,
    fits: impl Fn(&str, Option<&Version>) -> Result<bool, RangeError>,
) -> Option<RejectionReason> {
    let range = range.as_deref().filter(|range| !range.trim().is_empty())?;
    let version = version.clone().map(|version| Version {
        pre: Prerelease::EMPTY,
        ..version
    });
    match fits(range, version.as_ref()) {
        Ok(true) => None,
        Ok(false) => Some(RejectionReason::DoesNotMatch {
            field,
            range: range.to_owned(),
            version: version
                .map(|version| version.to_string())
                .unwrap_or_default(),
        }),
        Err(error) => Some(RejectionReason::UnreadableRange {
            field,
            range: range.to_owned(),
            error: error.to_string(),
        }),
    }
}
