//! Findings as lines on stderr.

use addons_operation::Finding;
use addons_operation::event::SuccessorPath;
use addons_operation::text::join_types;
use addons_operation::text::shell_word;
use common::api::names::InstallationName;
use common::foreign::ForeignText;

use super::hint;

/// Describes a finding in one line for people, with a fix below it.
pub fn describe_finding(finding: &Finding) -> String {
    match finding {
        Finding::OtherNamespace(namespace) => format!(
            "using installations in namespace {namespace}: anyone who may write them acts with your rights"
        ),
        Finding::Uses(used) => used.to_string(),
        Finding::NotSet { installation, path } => {
            let look = hint::indent_lines(&hint::look_line(&format!(
                "{} --explain",
                hint::command("values", installation)
            )));
            format!(
                "warning: {}: spec.values.{path} is not set, so there is nothing to unset{look}",
                installation.name
            )
        }
        Finding::Pinned {
            installation,
            version,
            newest,
        } => format!(
            "{} is pinned to {version} and stays; to upgrade it to {newest}: {}",
            installation.name,
            hint::command("upgrade", installation)
        ),
        Finding::Successor {
            installation,
            successor,
            path,
        } => describe_successor(installation, successor, path),
        Finding::Suspended(installation) => {
            let fix = hint::indent_lines(&hint::patch_hint(installation, r#""suspend":false"#));
            format!("{} is suspended{fix}", installation.name)
        }
        Finding::Moved {
            location,
            before,
            now,
        } => format!("warning: {location} has other content than recorded: {before} was installed, and it is {now} now"),
        Finding::CoreStays(InstallationName { namespace, name }) => format!(
            "{name} is a core add-on and stays; to uninstall it, release it first: kubectl addons core release {name} -n {namespace}"
        ),
        Finding::OtherChannel { addon, channel } => {
            format!("warning: {addon}: {}", describe_other_channel(channel))
        }
        Finding::DoesNotFit { addon } => format!("{addon}  does not fit this cluster"),
        Finding::Index(warning)
        | Finding::KopsRecord(warning)
        | Finding::Verdict(warning)
        | Finding::Selection { warning, .. }
        | Finding::Stays(warning) => format!("warning: {}", ForeignText::new(warning)),
        Finding::Unmanaged(ignored) => {
            let why = format!("{}: {} is ignored: {}", ignored.place, ignored.key, ignored.why);
            format!("warning: {}", ForeignText::new(&why))
        }
        Finding::LeftOut(files) => format!(
            "warning: {}: left out; the other files of its add-on are applied, and nothing of it is pruned",
            ForeignText::new(files)
        ),
        Finding::OfDirectory {
            installation,
            directory,
        } => format!(
            "{} comes from a directory and stays; to change it: kubectl addons sync {}",
            installation.name,
            shell_word(directory)
        ),
        Finding::NumbersIgnored => {
            "warning: the numbers of the files contradict the order that their objects need; the order of the objects is used".to_owned()
        }
        Finding::OriginalRuns { pod } => format!(
            "warning: {pod} is running, and applies and prunes the same objects: remove its manifest from the node first"
        ),
        Finding::KopsRuns {
            controller,
            channel,
        } => format!(
            "warning: {controller} is running: the control planes of kops apply {channel} as well"
        ),
        Finding::Requirement(unready) => {
            let (namespace, name) = unready.installation.split_once('/').unwrap_or_default();
            let look = hint::indent_lines(&hint::look_line(&format!(
                "kubectl addons status {name} -n {namespace}"
            )));
            format!("warning: {unready}{look}")
        }
        Finding::Deprived(dependent) => format!(
            "warning: {} requires {}, and stays without it",
            dependent.installation, dependent.requires
        ),
        Finding::NewerInstalled {
            installation,
            installed,
            newest,
        } => format!(
            "warning: {} {installed} is newer than {newest}, the newest that fits; it stays",
            installation.name
        ),
        Finding::SecretsOfToday(installation) => format!(
            "warning: {}: values from Secrets are read as they are now; their former content is not kept",
            installation.name
        ),
        Finding::TypesNotServed { addon, missing } => format!(
            "warning: {addon} requires {}, which this cluster does not serve yet; the install waits for it",
            join_types(missing)
        ),
        Finding::ReleaseRecovered { release, recovery } => {
            format!("warning: {release}: {recovery}")
        }
    }
}

/// Describes how the successor of an add-on replaces an installation of it.
fn describe_successor(
    installation: &InstallationName,
    successor: &str,
    path: &SuccessorPath,
) -> String {
    let name = &installation.name;
    let of_successor = |verb: &str| {
        let successor = InstallationName {
            namespace: installation.namespace.clone(),
            name: successor.to_owned(),
        };
        hint::command(verb, &successor)
    };
    match path {
        SuccessorPath::TakesOver {
            objects,
            of,
            target_namespace,
        } => {
            let target = target_namespace.as_ref();
            let target = target.map_or_else(String::new, |at| format!(" --target-namespace {at}"));
            let install = format!("{} --replace {name}{target}", of_successor("install"));
            let fix = hint::indent_lines(&hint::fix_line(&install));
            format!("{name}: {successor} takes over {objects} of its {of} objects{fix}")
        }
        SuccessorPath::Beside => {
            let look = hint::look_line(&format!("kubectl addons show {successor}"));
            let look = hint::indent_lines(&look);
            format!(
                "{name}: {successor} has other objects: install it, move to it what uses {name}, then uninstall {name}{look}"
            )
        }
        SuccessorPath::Unavailable(why) => {
            format!(
                "{name}: {successor} cannot be installed: {}",
                ForeignText::new(why)
            )
        }
    }
}

/// Returns the add-on of a finding that many add-ons may have alike, and the text about it.
pub fn shared_warning(finding: &Finding) -> Option<(&str, String)> {
    match finding {
        Finding::OtherChannel { addon, channel } => Some((addon, describe_other_channel(channel))),
        _ => None,
    }
}

fn describe_other_channel(channel: &str) -> String {
    format!(
        "installed from another channel, {}",
        ForeignText::new(channel)
    )
}
