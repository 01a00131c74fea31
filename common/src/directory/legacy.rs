//! The naming rule of 2015: `<basename>-<version>`, where only the version changes.

use crate::manifest::key::ObjectKey;

/// The kinds whose names carry a version. Names of all other kinds, such as Services, are never split.
pub const VERSIONED: [(&str, &str); 4] = [
    ("", "ReplicationController"),
    ("apps", "Deployment"),
    ("apps", "DaemonSet"),
    ("apps", "StatefulSet"),
];

/// Splits the name of an object into basename and version. A version begins with a digit, or with `v` and a digit, and contains no
/// `-`. A name without a version is its own basename: `kube-dns` is not version `dns` of `kube`.
#[must_use]
pub fn split_name(key: &ObjectKey) -> (&str, Option<&str>) {
    let kind = (key.group.as_str(), key.kind.as_str());
    let parts = key.name.rsplit_once('-');
    match parts.filter(|(basename, version)| {
        VERSIONED.contains(&kind) && !basename.is_empty() && is_version(version)
    }) {
        Some((basename, version)) => (basename, Some(version)),
        None => (&key.name, None),
    }
}

fn is_version(text: &str) -> bool {
    let number = text.strip_prefix('v').unwrap_or(text);
    number.starts_with(|c: char| c.is_ascii_digit())
}

/// Whether an object is another version of `wanted`, with the same kind, namespace and basename.
#[must_use]
pub fn is_other_version(key: &ObjectKey, wanted: &ObjectKey) -> bool {
    let (basename, version) = split_name(key);
    let (wanted_basename, wanted_version) = split_name(wanted);
    key.kind == wanted.kind
        && key.namespace == wanted.namespace
        && basename == wanted_basename
        && version.is_some()
        && wanted_version.is_some()
        && version != wanted_version
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, namespace: &str, name: &str) -> ObjectKey {
        let group = match kind {
            "ReplicationController" | "Service" | "ConfigMap" => "",
            _ => "apps",
        };
        ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn names_and_versions() {
        for (kind, name, expected) in [
            (
                "ReplicationController",
                "heapster-controller-v1",
                ("heapster-controller", Some("v1")),
            ),
            (
                "ReplicationController",
                "heapster-controller-12",
                ("heapster-controller", Some("12")),
            ),
            (
                "ReplicationController",
                "heapster-newcontroller-12",
                ("heapster-newcontroller", Some("12")),
            ),
            (
                "Deployment",
                "metrics-server-v0.3.6",
                ("metrics-server", Some("v0.3.6")),
            ),
            ("DaemonSet", "npd-v0.8.9", ("npd", Some("v0.8.9"))),
            // Services have an empty version.
            ("Service", "heapster-v1", ("heapster-v1", None)),
            ("ConfigMap", "settings-v2", ("settings-v2", None)),
            // Defects of 2015: words that were taken for versions.
            ("ReplicationController", "heapster", ("heapster", None)),
            ("Deployment", "kube-dns", ("kube-dns", None)),
            ("Deployment", "argocd-redis", ("argocd-redis", None)),
            (
                "DaemonSet",
                "node-problem-detector",
                ("node-problem-detector", None),
            ),
            ("Deployment", "-v1", ("-v1", None)),
            ("Deployment", "web-", ("web-", None)),
            ("Deployment", "web-v", ("web-v", None)),
        ] {
            assert_eq!(
                split_name(&key(kind, "kube-system", name)),
                expected,
                "{kind} {name}"
            );
        }
    }

    #[test]
    fn versions_of_one_addon() {
        let rc = "ReplicationController";
        let of = |kind: &str, namespace: &str, name: &str| key(kind, namespace, name);
        for (live, wanted, expected) in [
            (
                of(rc, "kube-system", "heapster-v1"),
                of(rc, "kube-system", "heapster-v2"),
                true,
            ),
            (
                of(rc, "kube-system", "heapster-v1"),
                of(rc, "kube-system", "heapster-v1"),
                false,
            ),
            (
                of(rc, "kube-system", "heapster-v1"),
                of(rc, "default", "heapster-v2"),
                false,
            ),
            (
                of(rc, "kube-system", "heapster-v1"),
                of("Deployment", "kube-system", "heapster-v2"),
                false,
            ),
            (
                of(rc, "kube-system", "heapster"),
                of(rc, "kube-system", "heapster-v2"),
                false,
            ),
            // Two names without a hyphen in one namespace were versions of the namespace's first word.
            (
                of(rc, "kube-system", "heapster"),
                of(rc, "kube-system", "influxdb"),
                false,
            ),
            (
                of(rc, "kube-system", "kube-dns"),
                of(rc, "kube-system", "kube-proxy"),
                false,
            ),
            (
                of("Service", "kube-system", "dns-v1"),
                of("Service", "kube-system", "dns-v2"),
                false,
            ),
        ] {
            assert_eq!(
                is_other_version(&live, &wanted),
                expected,
                "{live} {wanted}"
            );
        }
    }
}
