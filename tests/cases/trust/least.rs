//! What each command has to be allowed, by a user who is bound to one namespace, and what it says where that is missing (semantics 16).
//! The page `kubectl-addons/docs/permissions.md` says it for readers.

use addons_tests::control_plane::unique;
use addons_tests::plugin::{Output, Plugin};
use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::names::{CLUSTER_LOCAL, LABEL_CLUSTER};
use serde_json::{Value, json};

/// Resource and verb.
type Right = (&'static str, &'static str);

const READ_RECORDS: Right = ("addoninstallations", "list");
const READ_NAMESPACE: Right = ("namespaces", "get");

/// The rights to read what is installed, and what the objects of the add-on are.
const READ: [Right; 7] = [
    READ_RECORDS,
    ("addoninstallations", "get"),
    ("configmaps", "list"),
    ("configmaps", "get"),
    ("deployments", "get"),
    ("deployments", "list"),
    ("deployments", "watch"),
];
/// Those to write it.
const WRITE: [Right; 13] = [
    ("addoninstallations", "create"),
    ("addoninstallations", "update"),
    ("addoninstallations/status", "update"),
    ("addoninstallations", "delete"),
    ("controllerrevisions", "list"),
    ("controllerrevisions", "create"),
    ("controllerrevisions", "delete"),
    ("configmaps", "create"),
    ("configmaps", "patch"),
    ("configmaps", "delete"),
    ("deployments", "create"),
    ("deployments", "patch"),
    ("deployments", "delete"),
];

/// What is taken away, one after another, must be missed: by these commands.
const NEEDED: &[(&str, &[Right])] = &[
    ("list", &[READ_RECORDS]),
    ("status web", &[READ_RECORDS]),
    // Readers may plan and compare.
    ("plan web --channel two.yaml", &[READ_RECORDS]),
    ("diff web --channel two.yaml", &[READ_RECORDS]),
    (
        "upgrade web --channel two.yaml --yes",
        &[
            READ_RECORDS,
            ("addoninstallations", "get"),
            ("addoninstallations", "update"),
            ("addoninstallations/status", "update"),
            ("configmaps", "patch"),
        ],
    ),
    (
        "uninstall web --yes",
        &[
            READ_RECORDS,
            ("addoninstallations", "get"),
            ("addoninstallations/status", "update"),
            ("addoninstallations", "delete"),
            ("configmaps", "delete"),
        ],
    ),
];

/// A user who is bound to the namespace of a stage, with these rights alone, and may know what policies allow.
async fn bound(stage: &Stage, rights: &[Right]) -> Result<Plugin> {
    let name = unique("bound");
    let api = "rbac.authorization.k8s.io";
    let metadata = json!({"name": name, "namespace": stage.namespace});
    let rules: Vec<Value> = rights
        .iter()
        .map(|(resource, verb)| json!({"apiGroups": ["*"], "resources": [resource], "verbs": [verb]}))
        .collect();
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
    let binding = json!({
        "apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": api, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": name}],
    });
    // As `deploy/base` gives it to everyone: policies have no namespace.
    let policies = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["kubectl-addons.dev"], "resources": ["addonpolicies"], "verbs": ["list"]}],
    });
    let of_policies = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": name}],
    });
    for object in [role, binding, policies, of_policies] {
        stage.apply(&object.to_string()).await?;
    }
    let user = stage.cluster.user(&name, &[])?;
    Ok(Plugin::new(&stage.cluster, &user.kubeconfig)?.system_namespace(&stage.namespace))
}

async fn run(user: &Plugin, line: &str) -> Result<Output> {
    user.run(&line.split_whitespace().collect::<Vec<_>>()).await
}

/// An installed add-on of two ConfigMaps and a Deployment, and a second version that changes a ConfigMap.
struct Web {
    stage: Stage,
    first: String,
    second: String,
}

impl Web {
    async fn new() -> Result<Self> {
        let stage = Stage::new("least").await?;
        let version = |a: &str| {
            [
                config_map("a", a),
                config_map("b", "1"),
                deployment("web", 1, None),
            ]
            .concat()
        };
        let first = stage.index("one.yaml", &[("web", "1.0.0", &version("1"))])?;
        let second = stage.index("two.yaml", &[("web", "2.0.0", &version("2"))])?;
        stage.plugin.run(&["init"]).await?.done()?;
        Ok(Self {
            stage,
            first,
            second,
        })
    }

    /// Runs a line of the table.
    async fn says(&self, user: &Plugin, line: &str) -> Result<Output> {
        let line = line
            .replace("two.yaml", &self.second)
            .replace("one.yaml", &self.first);
        run(user, &line).await
    }

    async fn installed(&self) -> Result<()> {
        let line = format!("install web --channel {} --yes", self.first);
        self.stage.run(&line).await?.done().map(drop)
    }
}

/// trust 15: one who is bound to a namespace can do everything in it.
#[tokio::test]
async fn t15_every_command_works_for_a_user_of_one_namespace() -> Result<()> {
    let web = Web::new().await?;
    let user = bound(&web.stage, &[&READ[..], &WRITE, &[READ_NAMESPACE]].concat()).await?;
    for (line, code) in [
        ("plan web --channel one.yaml", 0),
        ("install web --channel one.yaml --yes", 0),
        ("list", 0),
        ("list --outdated", 0),
        ("status web", 0),
        ("diff web", 0),
        ("values web", 0),
        ("diff web --channel two.yaml", 1),
        ("upgrade web --channel two.yaml --dry-run=server", 0),
        ("plan web --channel two.yaml -o plan.json", 0),
        ("apply plan.json --yes", 0),
        ("upgrade web --repair --yes", 0),
        ("upgrade --yes", 0),
        ("uninstall web --yes", 0),
    ] {
        let said = web.says(&user, line).await?;
        let said = said.ended(code).with_context(|| line.to_owned())?;
        ensure!(
            !said.stdout.contains("gone") && !said.stderr.contains("warning"),
            "{line}: {}{}",
            said.stdout,
            said.stderr
        );
    }
    Ok(())
}

/// trust 15: the same in a namespace that stands for this cluster, without any right in the system namespace.
#[tokio::test]
async fn t15_a_namespace_beside_the_system_namespace_needs_no_rights_elsewhere() -> Result<()> {
    let web = Web::new().await?;
    let namespace = &web.stage.namespace;
    let label = format!("{LABEL_CLUSTER}={CLUSTER_LOCAL}");
    web.stage
        .kubectl(&["label", "namespace", namespace, &label])
        .await?;
    let rights = [&READ[..], &WRITE, &[READ_NAMESPACE]].concat();
    let user = bound(&web.stage, &rights)
        .await?
        .system_namespace("kubectl-addons");
    let said = web.says(&user, "list").await?.ended(1)?;
    ensure!(
        said.stderr.contains("fix:    add -n NAMESPACE"),
        "{}",
        said.stderr
    );
    for (line, code) in [
        ("install web --channel one.yaml --yes", 0),
        ("list", 0),
        ("status web", 0),
        ("diff web --channel two.yaml", 1),
        ("upgrade web --channel two.yaml --yes", 0),
        ("uninstall web --yes", 0),
    ] {
        let said = web.says(&user, &format!("{line} -n {namespace}")).await?;
        said.ended(code).with_context(|| line.to_owned())?;
    }
    Ok(())
}

/// trust 15: without a right that it needs, a command says which one, and changes nothing of the add-on.
#[tokio::test]
async fn t15_what_is_missing_is_named() -> Result<()> {
    let mut tally = Tally::new("trust::least");
    let web = Web::new().await?;
    web.installed().await?;
    let before = web.stage.record("web").await?;
    for (line, needed) in NEEDED {
        for missing in *needed {
            let all = [&READ[..], &WRITE, &[READ_NAMESPACE]].concat();
            let rest: Vec<Right> = all.into_iter().filter(|right| right != missing).collect();
            let user = bound(&web.stage, &rest).await?;
            let said = web.says(&user, line).await?;
            let (resource, verb) = missing;
            let text = format!("{}{}", said.stdout, said.stderr);
            ensure!(
                said.code > 0 && text.contains(&format!("cannot {verb} resource \"{resource}\"")),
                "{line} without {verb} {resource}: {}\n{text}",
                said.code
            );
            let after = web.stage.record("web").await?;
            ensure!(
                after["spec"] == before["spec"],
                "{line} without {verb} {resource} wrote the spec {}",
                after["spec"]
            );
            tally.ran();
        }
    }
    Ok(())
}

/// trust 15: an operation that cannot take the lock leaves the record as it was, and creates none.
#[tokio::test]
async fn t15_without_the_right_to_the_status_nothing_is_recorded() -> Result<()> {
    let web = Web::new().await?;
    let all = [&READ[..], &WRITE, &[READ_NAMESPACE]].concat();
    let missing = ("addoninstallations/status", "update");
    let rest: Vec<Right> = all.into_iter().filter(|right| *right != missing).collect();
    let user = bound(&web.stage, &rest).await?;
    let said = web
        .says(&user, "install web --channel one.yaml --yes")
        .await?;
    ensure!(
        said.code == 1
            && said
                .stderr
                .contains("not allowed: update addoninstallations.kubectl-addons.dev/status"),
        "{}",
        said.stderr
    );
    ensure!(
        !web.stage.has("addoninstallation", "web").await?,
        "a record was left behind"
    );
    Ok(())
}

/// trust 15: what a claim of others could be is not known to who may not read their installations, so nothing shared is deleted.
#[tokio::test]
async fn t15_definitions_stay_where_other_installations_cannot_be_read() -> Result<()> {
    let stage = Stage::new("least-shared").await?;
    let group = format!("{}.example.test", stage.namespace);
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: things.{group}}}\nspec:\n  group: {group}\n  \
         scope: Namespaced\n  names: {{plural: things, kind: Thing}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    \
         schema: {{openAPIV3Schema: {{type: object}}}}\n"
    );
    let index = stage.index("things.yaml", &[("things", "1.0.0", &definition)])?;
    stage
        .run(&format!("install things --channel {index} --yes"))
        .await?
        .done()?;
    let user = bound(&stage, &[("*", "*")]).await?;
    let definitions = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": unique("definitions")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": definer(&stage).await?},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}]});
    stage.apply(&definitions.to_string()).await?;
    let said = run(&user, "uninstall things --delete-crds --yes").await?;
    ensure!(
        said.stderr
            .contains("you may not read all installations of the cluster"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    ensure!(
        stage
            .has("customresourcedefinition", &format!("things.{group}"))
            .await?,
        "it is gone"
    );
    Ok(())
}

/// A ClusterRole that may do everything with definitions.
async fn definer(stage: &Stage) -> Result<String> {
    let name = unique("definer");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"]}]});
    stage.apply(&role.to_string()).await?;
    Ok(name)
}
