//! Resources that only one object of a cluster can hold: node ports and addresses of Services, and being the default PriorityClass. The
//! holder has to give a resource up before another object gets it (semantics 12.15).
//!
//! The sources are the allocators of Services (`pkg/registry/core/service`) and the admission plug-in Priority of Kubernetes 1.36.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Deletion;
use common::manifest::key::ObjectKey;

/// An object that holds a resource that another one needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ResourceHolder {
    /// The plan prunes the holder. It is deleted before the other object is applied, which the user has to accept.
    Pruned(Deletion),
    /// The command applies the holder without the resource. It is applied before the other object.
    Applied(ObjectKey),
}

impl ResourceHolder {
    /// The object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Pruned(deletion) => &deletion.target.key,
            Self::Applied(key) => key,
        }
    }
}

/// A resource that only one object can hold.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExclusiveResource {
    /// A node port of Services, of any protocol.
    NodePort(u64),
    /// A cluster IP of Services.
    Address(String),
    /// The default PriorityClass, for pods that name none.
    DefaultPriority,
}

impl fmt::Display for ExclusiveResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodePort(port) => write!(f, "node port {port}"),
            Self::Address(address) => write!(f, "cluster IP {address}"),
            Self::DefaultPriority => f.write_str("the default of PriorityClasses"),
        }
    }
}

/// Returns the exclusive resources that an object holds or asks for.
#[must_use]
pub fn exclusive_resources(key: &ObjectKey, object: &Value) -> BTreeSet<ExclusiveResource> {
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "Service") => {
            let spec = &object["spec"];
            let ports = spec["ports"].as_array().into_iter().flatten();
            let ports = ports.map(|port| &port["nodePort"]);
            let ports = ports.chain([&spec["healthCheckNodePort"]]);
            let ports = ports.filter_map(Value::as_u64).filter(|port| *port > 0);
            let addresses = spec["clusterIPs"].as_array().into_iter().flatten();
            let addresses = addresses.chain([&spec["clusterIP"]]);
            let addresses = addresses.filter_map(Value::as_str);
            let addresses = addresses.filter(|address| !matches!(*address, "" | "None"));
            ports
                .map(ExclusiveResource::NodePort)
                .chain(addresses.map(|address| ExclusiveResource::Address(address.to_owned())))
                .collect()
        }
        ("scheduling.k8s.io", "PriorityClass") if object["globalDefault"] == true => {
            BTreeSet::from([ExclusiveResource::DefaultPriority])
        }
        _ => BTreeSet::new(),
    }
}

/// Returns the first cluster IP that a Service asks for.
#[must_use]
pub fn requested_cluster_ip<'a>(key: &ObjectKey, object: &'a Value) -> Option<&'a str> {
    if (key.group.as_str(), key.kind.as_str()) != ("", "Service") {
        return None;
    }
    let spec = object.get("spec")?;
    let first = spec.get("clusterIPs").and_then(|all| all.get(0));
    let address = spec.get("clusterIP").or(first)?.as_str()?;
    (!matches!(address, "" | "None")).then_some(address)
}

/// Whether applying `wanted` gives up a resource that the live object holds. A Service that names no node ports keeps its own.
#[must_use]
pub fn gives_up(single: &ExclusiveResource, key: &ObjectKey, wanted: &Value) -> bool {
    let asked = exclusive_resources(key, wanted);
    match single {
        ExclusiveResource::NodePort(_) => {
            let is_exposed = matches!(
                wanted["spec"]["type"].as_str(),
                Some("NodePort" | "LoadBalancer")
            );
            let names_ports = asked
                .iter()
                .any(|it| matches!(it, ExclusiveResource::NodePort(_)));
            !asked.contains(single) && (names_ports || !is_exposed)
        }
        // It never changes.
        ExclusiveResource::Address(_) => false,
        ExclusiveResource::DefaultPriority => !asked.contains(single),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(group: &str, kind: &str) -> ObjectKey {
        ObjectKey {
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..ObjectKey::default()
        }
    }

    #[test]
    fn what_only_one_can_have() {
        let service = key("", "Service");
        let ports = |more: Value| {
            let mut object =
                json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 31480}]}});
            object["spec"]
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            object
        };
        let port = ExclusiveResource::NodePort(31480);
        assert_eq!(
            exclusive_resources(&service, &ports(json!({"clusterIP": "None"}))),
            BTreeSet::from([port.clone()])
        );
        let dns = json!({"spec": {"clusterIP": "100.64.0.10", "ports": [{"port": 53}]}});
        assert_eq!(
            exclusive_resources(&service, &dns),
            BTreeSet::from([ExclusiveResource::Address("100.64.0.10".to_owned())])
        );
        assert_eq!(requested_cluster_ip(&service, &dns), Some("100.64.0.10"));
        assert_eq!(
            requested_cluster_ip(&service, &json!({"spec": {"clusterIP": "None"}})),
            None
        );
        assert_eq!(requested_cluster_ip(&key("", "ConfigMap"), &dns), None);
        let class = key("scheduling.k8s.io", "PriorityClass");
        let default = json!({"value": 1, "globalDefault": true});
        assert_eq!(
            exclusive_resources(&class, &default),
            BTreeSet::from([ExclusiveResource::DefaultPriority])
        );
        assert!(exclusive_resources(&key("", "ConfigMap"), &default).is_empty());

        for (wanted, expected) in [
            (ports(json!({})), false),
            (
                ports(json!({"ports": [{"port": 80, "nodePort": 31481}]})),
                true,
            ),
            (ports(json!({"ports": [{"port": 80}]})), false),
            (json!({"spec": {"ports": [{"port": 80}]}}), true),
        ] {
            assert_eq!(gives_up(&port, &service, &wanted), expected, "{wanted}");
        }
        assert!(gives_up(
            &ExclusiveResource::DefaultPriority,
            &class,
            &json!({"value": 1})
        ));
        assert!(!gives_up(
            &ExclusiveResource::DefaultPriority,
            &class,
            &default
        ));
    }
}
