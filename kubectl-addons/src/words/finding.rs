//! Findings as lines on stderr.

use addons_operation::Finding;
use addons_operation::required_types::named;

/// A line for people.
pub fn text(finding: &Finding) -> String {
    match finding {
        Finding::Suspended(installation) => format!("{} is suspended", installation.name),
        Finding::DoesNotFit { addon } => format!("{addon}  does not fit this cluster"),
        Finding::Index(warning)
        | Finding::Verdict(warning)
        | Finding::Requirement(warning)
        | Finding::Selection { warning, .. } => format!("warning: {warning}"),
        Finding::NewerInstalled {
            installation,
            installed,
            newest,
        } => format!(
            "warning: {} {installed} is newer than {newest}, the newest that fits; it stays",
            installation.name
        ),
        Finding::TypesNotServed { addon, missing } => format!(
            "warning: {addon} requires {}, which this cluster does not serve; installing it waits for that",
            named(missing)
        ),
        Finding::ReleaseRecovered { release, recovery } => {
            format!("warning: {release}: {recovery}")
        }
    }
}
