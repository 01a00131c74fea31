//! Finds what blocks a deletion: the likely controller behind a finalizer, and whether it still runs.
//!
//! The evidence, strongest first: the field manager that set the finalizer, the part of its name after the slash, the labels
//! of its domain. This is a guess, so messages say "likely", and we never remove a finalizer ourselves.

use std::fmt;

use serde_json::Value;

use common::api::names::CLIENT;

/// Words that are too common to identify a controller.
const ANYBODYS: [&str; 12] = [
    "manager",
    "controller",
    "operator",
    "finalizer",
    "finalizers",
    "kubernetes",
    "cleanup",
    "unknown",
    "protection",
    "k8s",
    "x-k8s",
    "go-http-client",
];
/// The minimum length of a word, because shorter ones are part of others by accident.
const SHORTEST: usize = 4;
/// Labels that name the application of a workload.
const NAMES: [&str; 5] = [
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/instance",
    "app",
    "k8s-app",
];

/// A workload that may run a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    kind: &'static str,
    namespace: String,
    name: String,
    is_ready: bool,
    /// Lowercase names that identify it: its own, its namespace, labels, containers and images.
    words: Vec<String>,
}

impl Workload {
    /// Reads a Deployment, StatefulSet or DaemonSet; returns `None` if its name or namespace is missing.
    #[must_use]
    pub fn of(kind: &'static str, object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        let (namespace, name) = (text("/metadata/namespace")?, text("/metadata/name")?);
        let mut words = vec![name.to_lowercase(), namespace.to_lowercase()];
        let labels = object
            .pointer("/metadata/labels")
            .and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let labels = labels.filter(|(label, _)| NAMES.contains(&label.as_str()));
        words.extend(labels.filter_map(|(_, value)| value.as_str().map(str::to_lowercase)));
        let containers = object
            .pointer("/spec/template/spec/containers")
            .and_then(Value::as_array);
        for container in containers.into_iter().flatten() {
            let name = container.get("name").and_then(Value::as_str);
            words.extend(name.map(str::to_lowercase));
            let image = container.get("image").and_then(Value::as_str);
            let image = image.and_then(|image| image.rsplit('/').next());
            let image = image.and_then(|image| image.split([':', '@']).next());
            words.extend(image.map(str::to_lowercase));
        }
        Some(Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            is_ready: number("/status/readyReplicas") + number("/status/numberReady") > 0,
            words,
        })
    }

    fn points(&self, clue: &Clue) -> u32 {
        let contains = |word: &String| word.len() >= SHORTEST && clue.word.contains(word.as_str());
        if self.words.contains(&clue.word) {
            clue.weight * 3
        } else if self
            .words
            .iter()
            .any(|word| word.contains(&clue.word) || contains(word))
        {
            clue.weight
        } else {
            0
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// A word that may name a controller, and its weight as evidence.
struct Clue {
    word: String,
    weight: u32,
}

/// Describes what blocks a deletion: `held by finalizer certificates.example/cleanup, set by cert-controller; Deployment
/// shop/cert-controller, which likely removes it, has no ready pods: …`. `object` is the live object, with its managedFields.
#[must_use]
pub fn words(object: &Value, finalizers: &[String], workloads: &[Workload]) -> String {
    let held = finalizers.iter().map(|finalizer| {
        let manager = manager(object, finalizer);
        let by = manager
            .map(|manager| format!(", set by {manager}"))
            .unwrap_or_default();
        let owner = likely(workloads, finalizer, manager);
        format!("held by finalizer {finalizer}{by}; {}", way_out(owner))
    });
    held.collect::<Vec<_>>().join("; ")
}

fn way_out(owner: Option<&Workload>) -> String {
    match owner {
        Some(owner) if owner.is_ready => {
            let kind = owner.kind.to_lowercase();
            format!(
                "{owner}, which likely removes it, is running; see why it does not: kubectl logs -n {} {kind}/{}",
                owner.namespace, owner.name
            )
        }
        Some(owner) => format!(
            "{owner}, which likely removes it, has no ready pods: start it, then run this again"
        ),
        None => "no controller that removes it was found in the cluster: install the controller again; only if nothing is left to clean up, \
                 take the finalizer off with kubectl edit"
            .to_owned(),
    }
}

/// Returns the field manager that set a finalizer.
fn manager<'a>(object: &'a Value, finalizer: &str) -> Option<&'a str> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let field = format!("v:{}", Value::from(finalizer));
    let wrote = |entry: &&Value| {
        let finalizers = entry.pointer("/fieldsV1/f:metadata/f:finalizers");
        finalizers.is_some_and(|finalizers| finalizers.get(&field).is_some())
    };
    entries.iter().find(wrote)?.get("manager")?.as_str()
}

fn likely<'a>(
    workloads: &'a [Workload],
    finalizer: &str,
    manager: Option<&str>,
) -> Option<&'a Workload> {
    let clues = clues(finalizer, manager);
    let mut best: Option<(u32, &Workload)> = None;
    for workload in workloads {
        let points = clues.iter().map(|clue| workload.points(clue)).sum();
        if points > 0 && best.is_none_or(|(most, _)| points > most) {
            best = Some((points, workload));
        }
    }
    best.map(|(_, workload)| workload)
}

fn clues(finalizer: &str, manager: Option<&str>) -> Vec<Clue> {
    let (domain, path) = finalizer.split_once('/').unwrap_or((finalizer, ""));
    // Every label of a domain except the last can be a name: cert-manager.io, finalizers.longhorn.io.
    let labels = domain
        .rsplit_once('.')
        .map_or("", |(labels, _)| labels)
        .split('.');
    let manager = manager.filter(|manager| {
        // A client that set it by hand, or applied it with the manifest, does not remove it.
        !manager.starts_with("kubectl") && !manager.starts_with(CLIENT)
    });
    let words = manager.map(|word| (word, 4));
    let words = words.into_iter().chain([(path, 2)]);
    words
        .chain(labels.map(|label| (label, 1)))
        .map(|(word, weight)| Clue {
            word: word.to_lowercase(),
            weight,
        })
        .filter(|clue| clue.word.len() >= SHORTEST && !ANYBODYS.contains(&clue.word.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(namespace: &str, name: &str, image: &str, ready: u32) -> Workload {
        let object = json!({
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}},
            "status": {"readyReplicas": ready},
        });
        Workload::of("Deployment", &object).unwrap()
    }

    fn held(finalizer: &str, manager: &str) -> Value {
        let field = format!("v:\"{finalizer}\"");
        json!({"metadata": {"finalizers": [finalizer], "managedFields": [
            {"manager": "kubectl-edit", "fieldsV1": {"f:spec": {}}},
            {"manager": manager, "fieldsV1": {"f:metadata": {"f:finalizers": {".": {}, field: {}}}}},
        ]}})
    }

    #[test]
    fn the_likely_controller_is_named() {
        let workloads = [
            workload("default", "web", "nginx", 1),
            workload("shop", "cert-controller", "example.test/certs:1", 0),
            workload(
                "storage",
                "driver",
                "example.test/longhorn-manager@sha256:1",
                2,
            ),
            workload("postgres", "pgo", "example.test/pgo:1", 1),
        ];
        let nobody = "no controller that removes it was found in the cluster";
        for (finalizer, manager, expected) in [
            (
                "certificates.example/cleanup",
                "cert-controller",
                "set by cert-controller; Deployment shop/cert-controller, which likely removes it, has no ready pods: start it",
            ),
            (
                "longhorn.io",
                "Go-http-client",
                "Deployment storage/driver, which likely removes it, is running; see why it does not: kubectl logs -n storage deployment/driver",
            ),
            (
                "postgres-operator.example.com/finalizer",
                "manager",
                "Deployment postgres/pgo",
            ),
            (
                "example.com/cert-controller",
                "kubectl-patch",
                "Deployment shop/cert-controller",
            ),
            ("foo.example/cleanup", "kubectl-create", nobody),
            ("foregroundDeletion", "manager", nobody),
        ] {
            let words = words(
                &held(finalizer, manager),
                &[finalizer.to_owned()],
                &workloads,
            );
            assert!(
                words.starts_with(&format!(
                    "held by finalizer {finalizer}, set by {manager}; "
                )),
                "{words}"
            );
            assert!(words.contains(expected), "{words}");
        }
        let unknown = words(&json!({}), &["a.b/c".to_owned()], &[]);
        assert!(
            unknown.starts_with("held by finalizer a.b/c; no controller"),
            "{unknown}"
        );
    }
}
