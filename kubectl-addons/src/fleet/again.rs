//! The command that goes on with the clusters of a fleet that are left.

use std::ffi::OsString;

use common::plan::file::Place;

use addons_operation::shell::word;
use common::api::names::LABEL_NAMESPACE_NAME;

/// The command as it was typed, for these clusters alone; where none are named, as it was typed. A bearer token is left out of it: what is printed may be kept.
pub fn command(args: impl IntoIterator<Item = OsString>, rest: &[&Place]) -> String {
    let mut words = vec!["kubectl addons".to_owned()];
    let args = args.into_iter().skip(1);
    let mut args = args.map(|arg| arg.to_string_lossy().into_owned());
    while let Some(arg) = args.next() {
        let (flag, value) = match arg.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (arg.as_str(), None),
        };
        if !matches!(flag, "--context" | "--clusters" | "--token") {
            words.push(word(&arg));
            continue;
        }
        let typed = match value {
            Some(value) => value.to_owned(),
            None => args.next().unwrap_or_default(),
        };
        match flag {
            "--token" => {}
            "--context" if matches!(rest, [] | [Place::Namespace(_), ..]) => {
                words.push(format!("--context {}", word(&typed)));
            }
            _ => words.push(selection(rest)),
        }
    }
    words.join(" ")
}

/// The flag that selects these clusters.
fn selection(members: &[&Place]) -> String {
    let names: Vec<&str> = members.iter().map(|member| member.name()).collect();
    let names = names.join(",");
    match members {
        [Place::Namespace(_)] => format!("--clusters {LABEL_NAMESPACE_NAME}={names}"),
        [Place::Namespace(_), ..] => {
            format!(
                "--clusters {}",
                word(&format!("{LABEL_NAMESPACE_NAME} in ({names})"))
            )
        }
        _ => format!("--context {}", word(&names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (typed, what is left, the command).
    #[test]
    fn it_is_the_same_command_for_fewer_clusters() {
        let context = |name: &str| Place::Context(name.to_owned());
        let namespace = |name: &str| Place::Namespace(name.to_owned());
        let rows = [
            (
                vec![
                    "kubectl-addons",
                    "upgrade",
                    "web",
                    "--context",
                    "a,b,c",
                    "-y",
                    "--set",
                    "a=b c",
                ],
                vec![context("b"), context("c")],
                "kubectl addons upgrade web --context b,c -y --set 'a=b c'",
            ),
            (
                vec![
                    "kubectl-addons",
                    "--context=a,b",
                    "uninstall",
                    "web",
                    "--canary",
                    "1",
                ],
                vec![context("b")],
                "kubectl addons --context b uninstall web --canary 1",
            ),
            (
                vec![
                    "x",
                    "install",
                    "web",
                    "--clusters",
                    "tier=prod",
                    "--context",
                    "home",
                    "--token=t",
                ],
                vec![namespace("b"), namespace("c")],
                "kubectl addons install web --clusters 'kubernetes.io/metadata.name in (b,c)' --context home",
            ),
            (
                vec![
                    "x",
                    "upgrade",
                    "--clusters=tier=prod",
                    "--token",
                    "t",
                    "--max-unavailable",
                    "10%",
                ],
                vec![namespace("b")],
                "kubectl addons upgrade --clusters kubernetes.io/metadata.name=b --max-unavailable 10%",
            ),
            (
                vec![
                    "x",
                    "apply",
                    "plan.json",
                    "--context",
                    "home",
                    "--token",
                    "t",
                    "-y",
                ],
                vec![],
                "kubectl addons apply plan.json --context home -y",
            ),
        ];
        for (args, rest, expected) in rows {
            let args = args.into_iter().map(OsString::from);
            let rest: Vec<&Place> = rest.iter().collect();
            assert_eq!(command(args, &rest), expected);
        }
    }
}
