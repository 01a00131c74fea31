//! Whose records run with whose rights (semantics 5, 6).

use std::sync::Arc;

use addons_tests::control_plane::ControlPlane;
use addons_tests::plugin::Plugin;
use anyhow::{Result, ensure};

const EVIL: &str = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: evil}\n\
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n\
    subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]\n";
const TENANT: &str = "team-a";

/// An administrator of a cluster in which a tenant wrote an installation into a namespace of their own.
struct Tenants {
    _cluster: Arc<ControlPlane>,
    admin: Plugin,
}

impl Tenants {
    async fn new() -> Result<Self> {
        let cluster = ControlPlane::alone_api_only().await?;
        let admin = Plugin::admin(&cluster)?;
        admin.run(&["init"]).await?.done()?;
        admin
            .kubectl(&["create", "namespace", TENANT])
            .await?
            .done()?;
        std::fs::write(admin.home().join("evil.yaml"), EVIL)?;
        std::fs::write(admin.home().join("index.yaml"), index("evil", "evil.yaml"))?;
        let tenants = Self {
            _cluster: cluster,
            admin,
        };
        let location = format!("file://{}/index.yaml", tenants.admin.home().display());
        tenants.record(&location).await?;
        Ok(tenants)
    }

    /// What a tenant may write: an installation in their namespace.
    async fn record(&self, location: &str) -> Result<()> {
        let record = format!(
            "apiVersion: kubectl-addons.dev/v1alpha1\nkind: AddonInstallation\nmetadata: {{name: evil, namespace: {TENANT}}}\n\
             spec: {{addonRef: {{name: evil, index: '{location}'}}}}\n"
        );
        let applied = self
            .admin
            .kubectl_with_input(&["apply", "-f", "-"], &record)
            .await?;
        applied.done().map(drop)
    }

    async fn is_bound(&self) -> Result<bool> {
        let args = [
            "get",
            "clusterrolebinding",
            "evil",
            "--ignore-not-found",
            "-o",
            "name",
        ];
        Ok(!self.admin.kubectl(&args).await?.done()?.stdout.is_empty())
    }
}

fn index(name: &str, manifest: &str) -> String {
    format!(
        "kind: Addons\nmetadata: {{name: test}}\nspec:\n  addons:\n  - {{name: {name}, version: 1.0.0, manifest: {manifest}}}\n"
    )
}

/// What does not exist has no label that would help.
async fn a_namespace_that_does_not_exist(admin: &Plugin) -> Result<()> {
    let nowhere = [
        "install",
        "evil",
        "-n",
        "nowhere",
        "--channel",
        "index.yaml",
    ];
    let said = admin.run(&nowhere).await?.ended(2)?.stderr;
    ensure!(
        said.contains("namespace nowhere does not exist: installations of this cluster belong in kubectl-addons")
            && said.contains("fix:    --target-namespace nowhere")
            && !said.contains("kubectl label"),
        "{said}"
    );
    Ok(())
}

/// trust 1.
#[tokio::test]
async fn t01_a_tenants_record_never_runs_with_the_rights_of_an_administrator() -> Result<()> {
    let tenants = Tenants::new().await?;
    let admin = &tenants.admin;
    for line in [
        &["upgrade", "--yes"][..],
        &["diff"],
        &["plan", "-o", "plan.json"],
    ] {
        let said = admin.run(line).await?.done()?;
        ensure!(!said.stderr.contains("evil"), "{line:?}: {}", said.stderr);
    }
    // Named, too, and the sentence is that of the webhook.
    let sentence = "team-a does not stand for a cluster: installations of this cluster belong in kubectl-addons";
    for line in [
        &["upgrade", "evil", "--yes"][..],
        &["uninstall", "evil", "--yes"],
        &["upgrade", "-n", TENANT, "--yes"],
        &["diff", "-n", TENANT],
        &["plan", "-n", TENANT],
        &[
            "install",
            "evil",
            "-n",
            TENANT,
            "--channel",
            "index.yaml",
            "--yes",
        ],
    ] {
        let said = admin.run(line).await?.ended(2)?;
        ensure!(said.stderr.contains(sentence), "{line:?}: {}", said.stderr);
    }
    ensure!(!tenants.is_bound().await?, "the tenant is an administrator");
    let listed = admin.run(&["list"]).await?.done()?;
    ensure!(!listed.stdout.contains("evil"), "{}", listed.stdout);

    // What the error advises works, and says whose records these are; what they name is not read with the caller's accounts.
    a_namespace_that_does_not_exist(admin).await?;
    let label = "kubectl-addons.dev/cluster=local";
    admin
        .kubectl(&["label", "namespace", TENANT, label])
        .await?
        .done()?;
    let named = admin
        .run(&["upgrade", "-n", TENANT, "--yes"])
        .await?
        .ended(1)?;
    ensure!(
        named.stderr.contains(
            "using installations in namespace team-a: anyone who may write them acts with your rights"
        ) && named.stderr.contains("index.yaml"),
        "{}",
        named.stderr
    );
    for location in [
        "http://127.0.0.1:9/index.yaml",
        "http://localhost:9/index.yaml",
        "http://[::1]:9/index.yaml",
        "http://169.254.169.254/index.yaml",
    ] {
        tenants.record(location).await?;
        let said = admin
            .run(&["upgrade", "-n", TENANT, "--yes"])
            .await?
            .ended(1)?;
        ensure!(
            said.stderr.contains("may not name"),
            "{location}: {}",
            said.stderr
        );
    }
    ensure!(!tenants.is_bound().await?, "the tenant is an administrator");
    Ok(())
}

/// trust 1: one place for all that runs with an administrator's rights.
#[tokio::test]
async fn t01_records_of_indexes_live_in_the_system_namespace() -> Result<()> {
    let tenants = Tenants::new().await?;
    let admin = &tenants.admin;
    let object = |name: &str, at: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {at}}}\n")
    };
    for at in ["kube-system", "shop"] {
        std::fs::write(admin.home().join(format!("{at}.yaml")), object("dns", at))?;
        let entry = format!(
            "kind: Addons\nmetadata: {{name: test}}\nspec:\n  addons:\n  \
             - {{name: dns, version: 1.0.0, namespace: {at}, manifest: {at}.yaml}}\n"
        );
        std::fs::write(admin.home().join(format!("index-{at}.yaml")), entry)?;
        let channel = format!("index-{at}.yaml");
        // kops tells entries of one name apart by their namespaces; the second run finds what the first one made.
        for done in ["installed", "nothing to do"] {
            let said = admin
                .run(&["install", "dns", "--channel", &channel, "--yes"])
                .await?
                .done()?;
            ensure!(said.stderr.contains(done), "{at}: {}", said.stderr);
        }
    }
    let args = ["get", "addoninstallations", "-A", "-o"];
    let columns = "custom-columns=:.metadata.namespace,:.metadata.name,:.spec.targetNamespace";
    let found = admin
        .kubectl(&[&args[..], &[columns, "--no-headers"]].concat())
        .await?
        .done()?;
    let found: Vec<Vec<&str>> = found
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    ensure!(
        matches!(found.as_slice(), [first, second, tenant]
            if *first == ["kubectl-addons", "dns", "kube-system"]
                && second[0] == "kubectl-addons" && second[1].starts_with("dns-") && second[2] == "shop"
                && tenant[0] == TENANT),
        "{found:?}"
    );
    Ok(())
}

/// trust 1: a plan file opens nothing of the user: its index counts as typed only where the command line names it again.
#[tokio::test]
async fn t01_a_plan_of_a_tenants_record_is_replayed_with_the_reach_of_the_record() -> Result<()> {
    let tenants = Tenants::new().await?;
    let admin = &tenants.admin;
    let label = "kubectl-addons.dev/cluster=local";
    let args = ["label", "namespace", TENANT, label];
    admin.kubectl(&args).await?.done()?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";
    std::fs::write(admin.home().join("web.yaml"), map)?;
    std::fs::write(admin.home().join("own.yaml"), index("web", "web.yaml"))?;
    let plan = "plan web -n team-a --channel own.yaml -o typed.json";
    let plan: Vec<&str> = plan.split(' ').collect();
    admin.run(&plan).await?.done()?;
    let said = admin.run(&["apply", "typed.json", "--yes"]).await?;
    let said = said.ended(4)?.stderr;
    ensure!(said.contains("cannot name files of this machine"), "{said}");
    let args = ["apply", "typed.json", "--yes", "--own-access", "own.yaml"];
    let said = admin.run(&args).await?.done()?.stderr;
    ensure!(said.contains("installed"), "{said}");
    Ok(())
}
