//! Through the records themselves.

use common::api::names::{API_VERSION, SYSTEM_NAMESPACE};
use serde_json::{Value, json};

use super::{closed, open};
use crate::bypass::table::{Body, By, Route, Who};
use crate::bypass::world::{GUARDED, PLAIN, TENANT};

fn all(namespace: &str) -> String {
    format!("/apis/{API_VERSION}/namespaces/{namespace}/addoninstallations")
}

fn of(name: &str) -> String {
    format!("{}/{name}", all(SYSTEM_NAMESPACE))
}

fn spec(value: Value) -> Body {
    Body::Merge(json!({"spec": value}))
}

pub fn routes() -> Vec<Route> {
    let admin = Who::Admin;
    let owner = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]);
    let mut routes = vec![
        closed("delete a core record", admin, of(GUARDED), Body::Delete),
        closed(
            "delete all records of a namespace",
            admin,
            all(TENANT),
            Body::Delete,
        ),
        closed(
            "give it an owner that is deleted",
            admin,
            of(GUARDED),
            Body::Merge(json!({"metadata": {"ownerReferences": owner}})),
        ),
        closed(
            "make a record core",
            admin,
            of(PLAIN),
            spec(json!({"coreAddon": true})),
        ),
        open(
            "delete a record that is not core",
            admin,
            of(PLAIN),
            Body::Delete,
        ),
        open(
            "break-glass deletes a core record",
            Who::Glass,
            of(GUARDED),
            Body::Delete,
        ),
    ];
    routes.push(Route {
        answered: By::Schema,
        ..closed(
            "core becomes not core",
            Who::Core,
            of(GUARDED),
            spec(json!({"coreAddon": false})),
        )
    });
    routes
}
