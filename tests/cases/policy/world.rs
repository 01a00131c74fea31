//! A cluster with the policies of all rows, each for the namespace of its row.

use std::collections::BTreeMap;
use std::sync::Arc;

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::raw::{self, Answer, Send};
use addons_tests::scene::{catalogue, installation, version};
use addons_tests::stage::{config_map, deployment, sha256};
use addons_tests::until::until;
use anyhow::{Context as _, Result};
use common::api::names::{
    ANNOTATION_WRITTEN_BY, API_VERSION, BREAK_GLASS_GROUP, CORE_GROUP, LABEL_CLUSTER,
    SYSTEM_NAMESPACE,
};
use kube::Client;
use serde_json::{Value, json};

use super::row::{Row, Who, policy, rows};

/// An installation that is there before the policies.
const EARLIER: &str = "earlier";
/// The policy that is created last: while it is not in force, others may not be either.
pub const LAST: &str = "last";

/// Who is on it, with their names and groups.
const USERS: [(Who, &str, &str); 4] = [
    (Who::Dev, "dev", "devs"),
    (Who::Ops, "otto", "ops"),
    (Who::Core, "core", CORE_GROUP),
    (Who::Glass, "glass", BREAK_GLASS_GROUP),
];

/// A user, for kubectl and for raw requests.
struct User {
    plugin: Plugin,
    client: Client,
}

/// The cluster, and who is on it.
pub struct World {
    /// The cluster.
    pub cluster: Arc<ControlPlane>,
    /// The administrator.
    pub admin: Plugin,
    /// The rows.
    pub rows: Vec<Row>,
    users: BTreeMap<Who, User>,
}

impl World {
    /// Started once: the rows share it.
    pub async fn new() -> Result<Self> {
        let cluster = ControlPlane::alone().await?;
        definitions::install(&cluster).await?;
        let admin = Plugin::admin(&cluster)?;
        let rows = rows(&index(&admin)?)?;
        let mut users = BTreeMap::new();
        for (who, name, group) in USERS {
            let user = cluster.user(name, &["system:masters", group])?;
            let user = User {
                plugin: Plugin::new(&cluster, &user.kubeconfig)?,
                client: client(&user.kubeconfig).await?,
            };
            users.insert(who, user);
        }
        let world = Self {
            cluster,
            admin,
            rows,
            users,
        };
        world.populate().await?;
        Ok(world)
    }

    async fn populate(&self) -> Result<()> {
        let mut objects = vec![namespace(SYSTEM_NAMESPACE, None)];
        let names = self.rows.iter().map(|row| &row.name);
        objects.extend(names.map(|name| namespace(name, Some(name))));
        objects.push(namespace("none", Some("none")));
        objects.push(binding());
        objects.extend(catalogues());
        let earlier = self.rows.iter().filter(|row| row.is_earlier());
        objects.extend(earlier.map(|row| {
            let mut spec = row.install.clone();
            spec["targetNamespace"] = json!(row.name);
            spec["serviceAccountName"] = json!("default");
            let mut object = installation(EARLIER, &row.name, spec);
            let mut users = USERS.iter().filter(|(who, ..)| *who == row.who);
            let writer = users
                .next()
                .map(|(_, name, group)| format!("{name}\n{group}"));
            object["metadata"]["annotations"] = json!({ANNOTATION_WRITTEN_BY: writer});
            object
        }));
        self.create(objects).await?;
        let mut policies: Vec<Value> = self.rows.iter().flat_map(Row::policies).collect();
        policies.push(policy(
            LAST,
            json!({"action": "Enforce", "installers": {"users": ["no-one"]},
                "namespaceSelector": {"matchLabels": {"row": "none"}}}),
        ));
        self.create(policies).await
    }

    async fn create(&self, objects: Vec<Value>) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let list = list.to_string();
        let args = ["create", "-f", "-"];
        let said = self.admin.kubectl_with_input(&args, &list).await?;
        said.done().map(drop)
    }

    /// The programs of a user.
    pub fn plugin(&self, who: Who) -> Result<&Plugin> {
        Ok(&self.users.get(&who).context("an unknown user")?.plugin)
    }

    /// Tries a row as a raw request, which is a dry run.
    pub async fn attempt(&self, row: &Row) -> Result<Answer> {
        let records = format!(
            "/apis/{API_VERSION}/namespaces/{}/addoninstallations",
            row.name
        );
        let earlier = format!("{records}/{EARLIER}");
        let (send, path, body) = match &row.change {
            Some(Value::String(_)) => (Send::Delete, earlier, Value::Null),
            Some(patch) => (Send::Merge, earlier, patch.clone()),
            None => {
                let object = installation("tried", &row.name, row.install.clone());
                (Send::Create, records, object)
            }
        };
        let user = self.users.get(&row.who).context("an unknown user")?;
        raw::attempt(&user.client, send, &path, &body).await
    }

    /// Waits until the policy that was created last is in force for raw requests.
    pub async fn in_force(&self) -> Result<()> {
        let user = self.users.get(&Who::Dev).context("an unknown user")?;
        until("the last policy is in force", async || {
            let path = format!("/apis/{API_VERSION}/namespaces/none/addoninstallations");
            let spec = json!({"addonRef": {"name": "plain", "catalogue": "platform"}});
            let object = installation("tried", "none", spec);
            let answer = raw::attempt(&user.client, Send::Create, &path, &object).await?;
            let is_denied = answer
                .refusal
                .as_ref()
                .is_some_and(|(_, message)| message.contains(&format!("AddonPolicy {LAST} ")));
            Ok(is_denied.then_some(()).ok_or(format!("{answer:?}")))
        })
        .await
    }
}

/// An index with one add-on, as a `file://` URL.
fn index(admin: &Plugin) -> Result<String> {
    let manifest = config_map("indexed", "1");
    std::fs::write(admin.home().join("indexed.yaml"), &manifest)?;
    let hash = sha256(manifest.trim());
    let text = format!(
        "kind: Addons\nmetadata: {{name: test}}\nspec:\n  addons:\n  - {{name: indexed, version: 1.0.0, manifest: indexed.yaml, manifestHash: {hash}}}\n"
    );
    let path = admin.home().join("index.yaml");
    std::fs::write(&path, text)?;
    Ok(format!("file://{}", path.display()))
}

fn namespace(name: &str, row: Option<&str>) -> Value {
    let labels = row.map(|row| json!({LABEL_CLUSTER: "local", "row": row}));
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// What the reconciler installs with.
fn binding() -> Value {
    let api = "rbac.authorization.k8s.io";
    json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "accounts"},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": "system:serviceaccounts"}],
    })
}

/// `platform` with an add-on, and `custom` with others: one with an image, one on a host that no one asks.
fn catalogues() -> [Value; 2] {
    let addon = |name: &str, id: &str, support: &str, source: Value| {
        let version = version("1.0.0", json!({"id": id, "source": source}));
        json!({"name": name, "support": support, "versions": [version]})
    };
    let inline = |manifest: String| json!({"inline": {"manifest": manifest}});
    let image = deployment("web", 1, None)
        .replace("example.test/web:1", "registry.example.test/web/main:1");
    let plain = |id| addon("plain", id, "Optional", inline(config_map("plain", "1")));
    let far = json!({"url": {"manifest": "https://far.example.test/far.yaml"}});
    [
        catalogue("platform", SYSTEM_NAMESPACE, json!([plain("platform")])),
        catalogue(
            "custom",
            SYSTEM_NAMESPACE,
            json!([
                addon("web", "", "Customer", inline(image)),
                plain("custom"),
                addon("far", "", "Customer", far),
            ]),
        ),
    ]
}
