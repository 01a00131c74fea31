//! A cluster with the webhook, core add-ons in it, and users who would like to be rid of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::{ControlPlane, definitions};
use addons_tests::plugin::Plugin;
use addons_tests::raw;
use addons_tests::scene::{catalogue, create, installation, version};
use addons_tests::until::until;
use addons_tests::webhook::Webhook;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{
    ANNOTATION_RELEASED, API_VERSION, BREAK_GLASS_GROUP, CORE_GROUP, FINALIZER_CORE_GUARD, GROUP,
    LABEL_CLUSTER, LABEL_HOLDS_CORE, SYSTEM_NAMESPACE,
};
use kube::Client;
use serde_json::{Value, json};

use super::table::{By, Route, Who};

/// A namespace with a core record, which came without the plugin: it has no label that says so.
pub const TENANT: &str = "tenant";
/// The target namespace of a core record; it holds no record itself.
pub const TARGET: &str = "guarded-target";
/// A namespace with an object of a core add-on; it is neither its target nor that of its record.
const OBJECTS: &str = "guarded-objects";
/// A namespace that stands for this cluster and holds nothing.
const EMPTY: &str = "empty";
/// The core record in the system namespace.
pub const GUARDED: &str = "guarded";
/// A record in the system namespace that is not core.
const PLAIN: &str = "plain";

/// A catalogue and a core record that names its entry.
const LISTED: &str = "listed";
/// One with the mark that releases a core add-on, from before there was a webhook.
const PLANTED: &str = "planted";
/// One with an owner, from then as well.
const OWNED: &str = "owned";
/// A core record that is released.
const RELEASED: &str = "released";

/// The loop, as deploy/overlays/reconciler deploys it.
const RECONCILER: &str = "system:serviceaccount:kubectl-addons-reconciler:addons-reconciler";
/// The webhook, as deploy/base deploys it.
const WEBHOOK: &str = "system:serviceaccount:kubectl-addons:addons-webhook";
/// Whose rights the loop installs with.
const ACCOUNT: &str = "system:serviceaccount:kubectl-addons:addons-admin";

/// The cluster, and who is on it.
pub struct World {
    clients: BTreeMap<Who, Client>,
    webhook: Webhook,
    /// The cluster.
    pub cluster: Arc<ControlPlane>,
}

impl World {
    /// Started once: the routes share it.
    pub async fn new() -> Result<Self> {
        let cluster = ControlPlane::alone().await?;
        definitions::install(&cluster).await?;
        let admin = Plugin::admin(&cluster)?;
        for name in [SYSTEM_NAMESPACE, TENANT, TARGET, OBJECTS, EMPTY, "plain"] {
            admin
                .kubectl(&["create", "namespace", name])
                .await?
                .done()?;
        }
        let mut planted = record(PLANTED, SYSTEM_NAMESPACE, false, None);
        planted["metadata"]["annotations"] = json!({ANNOTATION_RELEASED: "true"});
        let mut owned = record(OWNED, SYSTEM_NAMESPACE, false, None);
        let get = [
            "get",
            "namespace",
            SYSTEM_NAMESPACE,
            "-o",
            "jsonpath={.metadata.uid}",
        ];
        let uid = admin.kubectl(&get).await?.done()?.stdout;
        let owner =
            json!({"apiVersion": "v1", "kind": "Namespace", "name": SYSTEM_NAMESPACE, "uid": uid});
        owned["metadata"]["ownerReferences"] = json!([owner]);
        let mut released = record(RELEASED, SYSTEM_NAMESPACE, true, None);
        released["metadata"]["annotations"] = json!({ANNOTATION_RELEASED: "true"});
        for object in [planted, owned, released] {
            create(&admin, &object, &[]).await?.done()?;
        }
        let webhook = Webhook::start(&cluster, &[&format!("--core-user={RECONCILER}")]).await?;
        let mut clients = BTreeMap::new();
        for (who, name, groups) in [
            (Who::Admin, "admin", &["system:masters"][..]),
            (Who::Tenant, "tenant", &[]),
            (Who::Core, "core", &["system:masters", CORE_GROUP]),
            (Who::Glass, "glass", &["system:masters", BREAK_GLASS_GROUP]),
            (Who::Sync, "system:addon-manager", &["system:masters"]),
            (Who::Reconciler, RECONCILER, &["system:masters"]),
            (Who::Account, ACCOUNT, &["system:masters"]),
            (Who::Webhook, WEBHOOK, &["system:masters"]),
        ] {
            let user = cluster.user(name, groups)?;
            clients.insert(who, client(&user.kubeconfig).await?);
        }
        let world = Self {
            clients,
            webhook,
            cluster,
        };
        world.populate(&admin).await?;
        Ok(world)
    }

    async fn populate(&self, admin: &Plugin) -> Result<()> {
        for object in rights() {
            create(admin, &object, &[]).await?.done()?;
        }
        let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/base");
        for file in [
            "rbac.yaml",
            "secret.yaml",
            "service.yaml",
            "deployment.yaml",
        ] {
            let file = format!("{base}/{file}");
            admin.kubectl(&["apply", "-f", &file]).await?.done()?;
        }
        // An operation marks the namespaces of a core add-on.
        for (name, label) in [
            (SYSTEM_NAMESPACE, format!("{LABEL_HOLDS_CORE}=true")),
            (OBJECTS, format!("{LABEL_HOLDS_CORE}=true")),
            (TENANT, format!("{LABEL_CLUSTER}=local")),
            (EMPTY, format!("{LABEL_CLUSTER}=local")),
            (TARGET, format!("{LABEL_HOLDS_CORE}=true")),
        ] {
            admin
                .kubectl(&["label", "namespace", name, &label])
                .await?
                .done()?;
        }
        let core = self
            .cluster
            .user("maker", &["system:masters", CORE_GROUP])?;
        let core = Plugin::new(&self.cluster, &core.kubeconfig)?;
        create(admin, &selecting(), &[]).await?.done()?;
        let entry = json!([{"name": LISTED, "versions": [version("1.0.0", json!({}))]}]);
        let source = catalogue(LISTED, SYSTEM_NAMESPACE, entry);
        create(admin, &source, &[]).await?.done()?;
        for (name, namespace, is_core, target) in [
            (GUARDED, SYSTEM_NAMESPACE, true, Some(TARGET)),
            (GUARDED, TENANT, true, None),
            (PLAIN, SYSTEM_NAMESPACE, false, None),
            (LISTED, SYSTEM_NAMESPACE, true, None),
        ] {
            let mut object = record(name, namespace, is_core, target);
            if name == LISTED {
                object["spec"]["addonRef"] =
                    json!({"name": LISTED, "version": "1.0.0", "catalogue": LISTED});
            }
            if is_core {
                object["metadata"]["finalizers"] = json!([FINALIZER_CORE_GUARD]);
            }
            // The webhook may not know the label of the namespace yet.
            until("the record is admitted", async || {
                let said = create(&core, &object, &[]).await?;
                Ok((said.code == 0).then_some(()).ok_or(said.stderr))
            })
            .await?;
        }
        let group =
            json!({"version": "v1", "kind": "ConfigMap", "namespace": OBJECTS, "objects": []});
        let status = json!({"status": {"inventory": [group]}}).to_string();
        let patch = [
            "patch",
            "addoninstallation",
            GUARDED,
            "-n",
            SYSTEM_NAMESPACE,
        ];
        let patch = [
            &patch[..],
            &["--subresource=status", "--type=merge", "-p", &status],
        ]
        .concat();
        admin.kubectl(&patch).await?.done()?;
        // The webhook's watches may be a moment behind.
        let delete = ["delete", "namespace", OBJECTS, "--dry-run=server"];
        until("the webhook knows the namespaces of objects", async || {
            let said = admin.kubectl(&delete).await?;
            let is_known = said.stderr.contains("holds a core add-on of this cluster");
            Ok(is_known.then_some(()).ok_or(said.stdout + &said.stderr))
        })
        .await?;
        for namespace in [SYSTEM_NAMESPACE, TENANT] {
            let delete =
                format!("delete addoninstallation {GUARDED} -n {namespace} --dry-run=server");
            let args: Vec<_> = delete.split_whitespace().collect();
            until("the webhook knows the records", async || {
                let said = admin.kubectl(&args).await?;
                let is_known = said.stderr.contains("is a core add-on of this cluster");
                Ok(is_known.then_some(()).ok_or(said.stdout + &said.stderr))
            })
            .await?;
        }
        Ok(())
    }

    /// Nothing answers for the webhook any more, and the policies are there.
    pub async fn close(&mut self) -> Result<()> {
        let admin = Plugin::admin(&self.cluster)?;
        policies(&admin).await?;
        self.webhook.process().kill()?;
        Ok(())
    }

    /// Tries it, as a dry run.
    pub async fn attempt(&self, route: &Route) -> Result<By> {
        let client = self.clients.get(&route.who).context("an unknown user")?;
        let answer = raw::attempt(client, route.send, &route.path, &route.body).await?;
        Ok(match answer.refusal {
            None => By::Allowed,
            Some((_, message)) => by(&message),
        })
    }
}

/// Installs the policies as documented.
pub async fn policies(admin: &Plugin) -> Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/policies");
    let said = admin.kubectl(&["apply", "-k", folder]).await?.done()?;
    ensure!(!said.stderr.contains("Warning"), "{}", said.stderr);
    // They are in force when each of them denies something.
    let of_guarded = format!("addoninstallation {GUARDED} -n {SYSTEM_NAMESPACE}");
    let patch = r#"{"status":{"phase":"Ready"}}"#;
    for (policy, line) in [
        ("installations", format!("delete {of_guarded}")),
        (
            "status",
            format!("patch {of_guarded} --subresource=status --type=merge -p {patch}"),
        ),
        ("namespaces", format!("delete namespace {SYSTEM_NAMESPACE}")),
        (
            "core",
            format!("create configmap core-addon-rollout -n {SYSTEM_NAMESPACE}"),
        ),
        (
            "guards",
            "delete customresourcedefinition addoncatalogues.kubectl-addons.dev".to_owned(),
        ),
        (
            "labels",
            format!("label namespace {EMPTY} tier=b --as=tenant"),
        ),
    ] {
        let args = line.split_whitespace().chain(["--dry-run=server"]);
        let args: Vec<_> = args.collect();
        checked(admin, policy).await?;
        let words = format!("ValidatingAdmissionPolicy 'kubectl-addons-{policy}'");
        until(&words, async || {
            let said = admin.kubectl(&args).await?;
            let is_denied = said.stderr.contains(&words);
            Ok(is_denied.then_some(()).ok_or(said.stdout + &said.stderr))
        })
        .await?;
    }
    Ok(())
}

/// The types of a policy's expressions are right, as far as a controller can tell.
async fn checked(admin: &Plugin, policy: &str) -> Result<()> {
    let name = format!("kubectl-addons-{policy}");
    let args = ["get", "validatingadmissionpolicy", &name, "-o", "json"];
    let status = until("the types are checked", async || {
        let text = admin.kubectl(&args).await?.done()?.stdout;
        let policy: Value = serde_json::from_str(&text)?;
        let status = policy["status"].clone();
        Ok(status
            .get("typeChecking")
            .cloned()
            .ok_or_else(|| status.to_string()))
    })
    .await?;
    let warnings = status.get("expressionWarnings");
    ensure!(warnings.is_none(), "{name}: {status}");
    Ok(())
}

/// Which layer says this.
pub(crate) fn by(message: &str) -> By {
    let is_of_webhook = message.contains("admission webhook \"")
        && message.contains(".kubectl-addons.dev\" denied the request");
    if is_of_webhook {
        By::Webhook
    } else if message.contains(" is forbidden: User ") {
        By::Rights
    } else if message.contains("is invalid: ") || message.contains("strict decoding error") {
        By::Schema
    } else if message.contains("ValidatingAdmissionPolicy 'kubectl-addons-") {
        By::Policy
    } else if message.contains("failed calling webhook") {
        By::NoAnswer
    } else if message.contains("already exists") || message.contains("not found") {
        By::Server
    } else {
        By::Other(message.to_owned())
    }
}

/// An installation of an index, which nothing reads here.
fn record(name: &str, namespace: &str, is_core: bool, target: Option<&str>) -> Value {
    let index = "https://addons.example.test/index.yaml";
    let mut spec = json!({"addonRef": {"name": name, "index": index}, "coreAddon": is_core});
    if let Some(target) = target {
        spec["targetNamespace"] = json!(target);
    }
    installation(name, namespace, spec)
}

/// A policy that selects namespaces by a label, and allows what is installed here.
fn selecting() -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "AddonPolicy", "metadata": {"name": "selecting"},
        "spec": {
            "action": "Enforce", "namespaceSelector": {"matchLabels": {"tier": "a"}},
            "allowed": {"imageRegistries": ["registry.example.test"]},
        },
    })
}

/// What the tenant may do.
fn rights() -> [Value; 2] {
    let api = "rbac.authorization.k8s.io";
    let metadata = json!({"name": "bypass-tenant"});
    let all = ["namespaces", "namespaces/status", "namespaces/finalize"];
    let ours = ["addoninstallations", "addoninstallations/status"];
    let rules = json!([
        {"apiGroups": [""], "resources": all, "verbs": ["*"]},
        {"apiGroups": [GROUP], "resources": ours, "verbs": ["get", "update", "patch", "delete"]},
    ]);
    [
        json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "bypass-tenant"},
            "subjects": [{"apiGroup": api, "kind": "User", "name": "tenant"}],
        }),
    ]
}
