//! Who may do what in which namespace, with users of real rights (`data/reach/rows.yaml`), and that a record or a catalogue of one
//! team leads to nothing of another (`data/reach/records.yaml`; semantics 6, 16).

use std::collections::BTreeMap;

use addons_tests::control_plane::cluster::client;
use addons_tests::control_plane::unique;
use addons_tests::plugin::Plugin;
use addons_tests::raw::{self, Send};
use addons_tests::scene::{Scene, create, installation};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::api::names::{
    API_VERSION, CORE_GROUP, DISTRIBUTOR_GROUP, FINALIZER_CORE_GUARD, GROUP,
    LABEL_KUBECONFIG_SECRET, LABEL_OWNER, LABEL_VALUES, SYSTEM_NAMESPACE, owner_hash,
};
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bypass::{By, by};

const ROWS: &str = include_str!("../data/reach/rows.yaml");
const RECORDS: &str = include_str!("../data/reach/records.yaml");
/// The rights that a distributor and the loop are shipped with.
const SHIPPED: [&str; 2] = [
    include_str!("../../deploy/components/distributor/rbac.yaml"),
    include_str!("../../deploy/overlays/reconciler/rbac.yaml"),
];
const RECONCILER: &str = "system:serviceaccount:kubectl-addons-reconciler:addons-reconciler";
/// What the Secrets of the other team hold.
const CANARY: &str = "canary-of-team-b";

/// Who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Who {
    Tenant,
    Distributor,
    Reconciler,
    Core,
    Admin,
}

/// A request as a dry run, and what answers it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    says: String,
    who: Who,
    send: Send,
    path: String,
    #[serde(default)]
    body: Value,
    by: By,
}

/// A record of a tenant, and what an administrator is told who reconciles it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    record: String,
    spec: Value,
    says: String,
}

/// Two teams on the cluster of a scene: a namespace of each stands for another cluster, which is played by a namespace of the same
/// API server where the credentials of the team are bound.
struct Teams {
    scene: &'static Scene,
    admin: Plugin,
    tenant: Plugin,
    /// Namespaces of the records.
    teams: [String; 2],
    /// Those of their objects.
    sites: [String; 2],
    /// The add-on, and its catalogue.
    addon: String,
}

impl Teams {
    async fn new() -> Result<Self> {
        let scene = Scene::get().await?;
        let teams = [unique("team"), unique("team")];
        let sites = teams.clone().map(|team| format!("{team}-site"));
        let name = unique("tenant");
        let tenant = scene.cluster.user(&name, &[])?;
        let this = Self {
            admin: Plugin::admin(&scene.cluster)?,
            tenant: Plugin::new(&scene.cluster, &tenant.kubeconfig)?,
            addon: unique("reach"),
            scene,
            teams,
            sites,
        };
        // Whoever knows the second catalogue knows the first one as well.
        let mut objects = vec![this.hostile(), this.catalogue()];
        for (index, (team, site)) in this.teams.iter().zip(&this.sites).enumerate() {
            objects.extend(this.team(index, team, site)?);
        }
        let ours = ["addoninstallations", "addoncatalogues"];
        let rules = json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["*"]},
            {"apiGroups": [GROUP], "resources": ours, "verbs": ["*"]},
        ]);
        let [team, _] = &this.teams;
        objects.extend(bound(&name, team, &rules));
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        for text in SHIPPED.iter().copied().chain([list.as_str()]) {
            let args = ["apply", "-f", "-"];
            this.admin.kubectl_with_input(&args, text).await?.done()?;
        }
        Ok(this)
    }

    /// The names in a table.
    fn named(&self, text: &str) -> String {
        let ([team_a, team_b], [site_a, site_b]) = (&self.teams, &self.sites);
        let ours = |kind: &str, namespace: &str| {
            format!("/apis/{API_VERSION}/namespaces/{namespace}/{kind}")
        };
        let mut text = text.to_owned();
        for (suffix, namespace) in [
            ("A", team_a.as_str()),
            ("B", team_b),
            ("SYSTEM", SYSTEM_NAMESPACE),
        ] {
            for (word, kind) in [
                ("RECORDS", "addoninstallations"),
                ("CATALOGUES", "addoncatalogues"),
            ] {
                text = text.replace(&format!("{word}-{suffix}"), &ours(kind, namespace));
            }
        }
        for (word, name) in [
            ("TEAM-A", team_a),
            ("TEAM-B", team_b),
            ("SITE-A", site_a),
            ("SITE-B", site_b),
        ] {
            text = text.replace(word, name);
        }
        text.replace("ADDON", &self.addon)
    }

    /// One team: its namespaces, the credentials of its cluster, and values.
    fn team(&self, index: usize, team: &str, site: &str) -> Result<Vec<Value>> {
        let user = self.scene.cluster.user(team, &[])?;
        let kubeconfig = std::fs::read_to_string(&user.kubeconfig)?;
        let password = if index == 0 { "of-team-a" } else { CANARY };
        let values = json!({"password": password}).to_string();
        let labels = json!({LABEL_KUBECONFIG_SECRET: "kubeconfig"});
        let rules = json!([
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
        ]);
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team, "labels": labels}}),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site}}),
            secret(team, "kubeconfig", "value", &kubeconfig),
            for_values(secret(team, "values", "values", &values)),
        ];
        if index == 1 {
            let more = secret(team, "only-b", "values", &values);
            objects.push(for_values(more));
        }
        objects.extend(bound(team, site, &rules));
        Ok(objects)
    }

    /// An add-on with a password in it, for everyone.
    fn catalogue(&self) -> Value {
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till}\n\
                        data: {password: {{ .Variables.password | quote }}}\n";
        let version = json!({
            "version": "1.0.0", "template": {"method": "go-template"}, "source": {"inline": {"manifest": manifest}},
        });
        json!({
            "apiVersion": API_VERSION, "kind": "AddonCatalogue",
            "metadata": {"name": self.addon, "namespace": SYSTEM_NAMESPACE},
            "spec": {"addons": [{"name": self.addon, "versions": [version]}]},
        })
    }

    /// A hostile catalogue: a manifest for the namespace of the other team, and one that claims to be of its installation.
    fn hostile(&self) -> Value {
        let ([_, other], [_, site]) = (&self.teams, &self.sites);
        let name = |suffix: &str| format!("{}-{suffix}", self.addon);
        let map = |name: &str, more: &str| {
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  {more}\n")
        };
        let label = format!("labels: {{{LABEL_OWNER}: {}}}", owner_hash(other, "till"));
        let inline = |manifest: String| json!({"version": "1.0.0", "source": {"inline": {"manifest": manifest}}});
        let addons = [
            ("astray", inline(map("till", &format!("namespace: {site}")))),
            ("claimed", inline(map("claimed", &label))),
        ];
        let addons =
            addons.map(|(suffix, version)| json!({"name": name(suffix), "versions": [version]}));
        json!({
            "apiVersion": API_VERSION, "kind": "AddonCatalogue",
            "metadata": {"name": name("hostile"), "namespace": SYSTEM_NAMESPACE}, "spec": {"addons": addons},
        })
    }

    /// Installs the add-on in the cluster of a team.
    async fn install(&self, team: &str, site: &str) -> Result<()> {
        let spec = json!({
            "addonRef": {"name": self.addon, "catalogue": self.addon}, "targetNamespace": site,
            "valuesFrom": [{"secretKeyRef": {"name": "values", "key": "values"}}],
        });
        // The webhook may not know the label of the namespace yet.
        until("the record is admitted", async || {
            let said = create(&self.admin, &installation("till", team, spec.clone()), &[]).await?;
            Ok((said.code == 0).then_some(()).ok_or(said.stderr))
        })
        .await?;
        let upgrade = ["upgrade", "till", "-n", team, "--yes"];
        self.admin.run(&upgrade).await?.done().map(drop)
    }

    /// What a team has, and what is installed for it.
    async fn content(&self, team: &str, site: &str) -> Result<String> {
        let mut found = String::new();
        // A controller writes a ConfigMap into every namespace at some time, without the label.
        for (kinds, namespace, selector) in [
            ("secrets,addoninstallations,addoncatalogues", team, ""),
            ("configmaps", site, LABEL_OWNER),
        ] {
            let args = ["get", kinds, "-n", namespace, "-l", selector, "-o", "json"];
            found += &self.admin.kubectl(&args).await?.done()?.stdout;
        }
        Ok(found)
    }
}

fn secret(namespace: &str, name: &str, key: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace},
        "data": {key: STANDARD.encode(text)},
    })
}

/// A Secret from which values are taken.
fn for_values(mut secret: Value) -> Value {
    secret["metadata"]["labels"] = json!({LABEL_VALUES: "true"});
    secret
}

/// The rights of a user in one namespace.
fn bound(user: &str, namespace: &str, rules: &Value) -> [Value; 2] {
    let api = "rbac.authorization.k8s.io";
    let metadata = json!({"name": user, "namespace": namespace});
    [
        json!({"apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": api, "kind": "Role", "name": user},
            "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
        }),
    ]
}

#[tokio::test]
async fn everyone_reaches_what_is_theirs_and_nothing_else() -> Result<()> {
    let mut tally = Tally::new("reach::table");
    let teams = Teams::new().await?;
    let [team_a, team_b] = &teams.teams;
    let [site_a, site_b] = &teams.sites;
    teams.install(team_a, site_a).await?;
    teams.install(team_b, site_b).await?;
    may_do(&teams, &mut tally).await?;

    let before = teams.content(team_b, site_b).await?;
    ensure!(before.contains(CANARY), "{before}");
    lead_nowhere(&teams, &mut tally).await?;
    let theirs = teams.content(team_a, site_a).await?;
    ensure!(
        theirs.contains("of-team-a") && !theirs.contains(CANARY),
        "{theirs}"
    );
    ensure!(before == teams.content(team_b, site_b).await?);
    Ok(())
}

/// Every record of the tenant is refused, to an administrator as well, and shows nothing of the other team.
async fn lead_nowhere(teams: &Teams, tally: &mut Tally) -> Result<()> {
    let [team, _] = &teams.teams;
    let [site, _] = &teams.sites;
    let records: Vec<Record> = serde_saphyr::from_str(&teams.named(RECORDS))?;
    let mut wrong = Vec::new();
    for (index, row) in records.iter().enumerate() {
        let name = format!("hostile-{index}");
        let record = installation(&name, team, row.spec.clone());
        let mut said = create(&teams.tenant, &record, &[]).await?;
        if said.code == 0 {
            let upgrade = ["upgrade", &name, "-n", team, "--yes"];
            said = teams.admin.run(&upgrade).await?;
        }
        let is_refused = said.code != 0 && said.stderr.contains(&row.says);
        if !is_refused || said.stderr.contains(CANARY) {
            wrong.push(format!("{}: {}: {}", row.record, said.code, said.stderr));
        }
        tally.ran();
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What a manifest claims to be of is overwritten with whose it is.
    let addon = format!("{}-claimed", teams.addon);
    let install = [
        "install",
        &addon,
        "-n",
        team,
        "--target-namespace",
        site,
        "--yes",
    ];
    teams.admin.run(&install).await?.done()?;
    let label = LABEL_OWNER.replace('.', "\\.");
    let label = format!("jsonpath={{.metadata.labels.{label}}}");
    let get = ["get", "configmap", "claimed", "-n", site, "-o", &label];
    let owner = teams.admin.kubectl(&get).await?.done()?.stdout;
    ensure!(owner == owner_hash(team, &addon), "{owner}");
    Ok(())
}

/// Every row of the table, each as a dry run.
async fn may_do(teams: &Teams, tally: &mut Tally) -> Result<()> {
    let cluster = &teams.scene.cluster;
    let mut clients: BTreeMap<Who, Client> = BTreeMap::new();
    clients.insert(Who::Tenant, client(teams.tenant.kubeconfig()).await?);
    // Names of their own, for a kubeconfig is a file by that name; the account of the loop has one name.
    let core = cluster.user(&unique("core"), &["system:masters", CORE_GROUP])?;
    for (who, user) in [
        (
            Who::Distributor,
            cluster.user(&unique("distributor"), &[DISTRIBUTOR_GROUP])?,
        ),
        (Who::Reconciler, cluster.user(RECONCILER, &[])?),
        (
            Who::Admin,
            cluster.user(&unique("admin"), &["system:masters"])?,
        ),
        (Who::Core, core.clone()),
    ] {
        clients.insert(who, client(&user.kubeconfig).await?);
    }
    let core = Plugin::new(cluster, &core.kubeconfig)?;
    let [team, _] = &teams.teams;
    let mut record = installation(
        "core",
        team,
        json!({"addonRef": {"name": teams.addon}, "coreAddon": true}),
    );
    record["metadata"]["finalizers"] = json!([FINALIZER_CORE_GUARD]);
    create(&core, &record, &[]).await?.done()?;
    let delete = [
        "delete",
        "addoninstallation",
        "core",
        "-n",
        team,
        "--dry-run=server",
    ];
    until("the webhook knows the record", async || {
        let said = teams.admin.kubectl(&delete).await?;
        let is_known = said.stderr.contains("is a core add-on of this cluster");
        Ok(is_known.then_some(()).ok_or(said.stdout + &said.stderr))
    })
    .await?;
    let rows: Vec<Row> = serde_saphyr::from_str(&teams.named(ROWS))?;
    let mut wrong = Vec::new();
    for row in rows {
        let client = clients.get(&row.who).context("an unknown user")?;
        let answer = raw::attempt(client, row.send, &row.path, &row.body).await?;
        let found = answer
            .refusal
            .map_or(By::Allowed, |(_, message)| by(&message));
        if found != row.by {
            wrong.push(format!(
                "{:?}: {}: {found} instead of {}",
                row.who, row.says, row.by
            ));
        }
        tally.ran();
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
