//! Paths of collections and objects in requests, and their names in errors.

use std::fmt;
use std::fmt::Write as _;

use addons_plan::Target;
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::{KindInfo, KindTable};

use super::error::EngineError;
use super::meta::LiveMetadata;

/// The objects of one kind, in one namespace or in all. Printed as `deployments.apps in namespace shop`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Collection {
    pub(super) gvk: Gvk,
    pub(super) plural: String,
    pub(super) namespace: Option<String>,
}

impl Collection {
    /// Returns the collection of an object.
    pub(super) fn from_target(target: &Target) -> Self {
        Self {
            gvk: target.gvk(),
            plural: target.plural.clone(),
            namespace: target.key.namespace.clone(),
        }
    }

    /// Returns the collection of a served kind; for a cluster-scoped kind, the namespace is ignored.
    pub(super) fn new(gvk: Gvk, info: &KindInfo, namespace: Option<&str>) -> Self {
        Self {
            gvk,
            plural: info.plural.clone(),
            namespace: namespace.filter(|_| info.namespaced).map(str::to_owned),
        }
    }

    /// Returns a collection from names that are constants of this program.
    pub(super) fn from_names(
        api_version: &str,
        kind: &str,
        plural: &str,
        namespace: Option<&str>,
    ) -> Self {
        Self {
            gvk: Gvk::new(api_version, kind),
            plural: plural.to_owned(),
            namespace: namespace.map(str::to_owned),
        }
    }

    /// Returns the target for an object in this collection.
    pub(super) fn target(&self, metadata: &LiveMetadata) -> Target {
        Target {
            key: self.key(metadata),
            version: self.gvk.version.clone(),
            plural: self.plural.clone(),
        }
    }

    /// Returns the key of an object in this collection, also if the collection spans all namespaces.
    pub(super) fn key(&self, metadata: &LiveMetadata) -> ObjectKey {
        ObjectKey {
            group: self.gvk.group.clone(),
            kind: self.gvk.kind.clone(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        }
    }

    /// Returns the same collection in the other served versions of its kind.
    pub(super) fn in_other_versions(&self, kinds: &KindTable) -> Vec<Self> {
        let gvk = &self.gvk;
        let versions = kinds.versions(&gvk.group, &gvk.kind);
        let others = versions.filter(|version| *version != gvk.version);
        let others = others.map(|version| Self {
            gvk: Gvk {
                version: version.to_owned(),
                ..gvk.clone()
            },
            ..self.clone()
        });
        others.collect()
    }

    /// Returns the error for a version that is not served.
    pub(super) fn unserved_error(&self) -> EngineError {
        EngineError::Unserved {
            what: self.to_string(),
            message: format!("{} is not served", self.gvk.api_version()),
        }
    }

    /// Path of the collection.
    pub(super) fn path(&self) -> String {
        let mut path = group_version_path(&self.gvk.group, &self.gvk.version);
        if let Some(namespace) = &self.namespace {
            path.push_str("/namespaces/");
            push_segment(&mut path, namespace);
        }
        path.push('/');
        push_segment(&mut path, &self.plural);
        path
    }

    /// Path of one object.
    pub(super) fn object_path(&self, name: &str) -> String {
        let mut path = self.path();
        path.push('/');
        push_segment(&mut path, name);
        path
    }

    /// Names an object of the collection for error messages.
    pub(super) fn describe_object(&self, name: &str) -> String {
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{} {name}", self.gvk.kind),
            None => format!("{} {name}", self.gvk.kind),
        }
    }
}

impl fmt::Display for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plural)?;
        if !self.gvk.group.is_empty() {
            write!(f, ".{}", self.gvk.group)?;
        }
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace}")?;
        }
        Ok(())
    }
}

/// Path of a group and version: `/api/v1`, `/apis/apps/v1`.
pub(super) fn group_version_path(group: &str, version: &str) -> String {
    let mut path = String::from(if group.is_empty() { "/api" } else { "/apis" });
    for part in [group, version] {
        if !part.is_empty() {
            path.push('/');
            push_segment(&mut path, part);
        }
    }
    path
}

/// Appends one path segment. A name from a manifest can neither leave its segment nor begin a query.
fn push_segment(path: &mut String, segment: &str) {
    let dots = !segment.is_empty() && segment.bytes().all(|byte| byte == b'.');
    for byte in segment.bytes() {
        if byte.is_ascii_alphanumeric() || (!dots && byte == b'.') || b"-_~:@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
}

/// Escapes a value for a query.
pub(super) fn query_value(value: &str) -> String {
    let mut text = String::new();
    push_segment(&mut text, value);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_words() {
        let pods = Collection::from_names("v1", "Pod", "pods", Some("shop"));
        assert_eq!(pods.path(), "/api/v1/namespaces/shop/pods");
        assert_eq!(pods.to_string(), "pods in namespace shop");
        let roles = Collection::from_names(
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "clusterroles",
            None,
        );
        assert_eq!(
            roles.object_path("system:node"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
        );
        assert_eq!(roles.to_string(), "clusterroles.rbac.authorization.k8s.io");
        assert_eq!(pods.describe_object("web"), "shop/Pod web");
    }

    #[test]
    fn a_name_stays_in_its_segment() {
        let pods = Collection::from_names("v1", "Pod", "pods", None);
        for (name, path) in [
            ("../secrets", "/api/v1/pods/..%2Fsecrets"),
            ("..", "/api/v1/pods/%2E%2E"),
            ("a?dryRun=All", "/api/v1/pods/a%3FdryRun%3DAll"),
            ("é", "/api/v1/pods/%C3%A9"),
        ] {
            assert_eq!(pods.object_path(name), path);
        }
    }
}
