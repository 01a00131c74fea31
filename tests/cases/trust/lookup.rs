//! `lookup` in charts: it sees the live objects of its own installation, and nothing else.

use std::path::PathBuf;

use addons_tests::control_plane::audit::Mark;
use addons_tests::control_plane::binaries;
use addons_tests::denial::{When, deny};
use addons_tests::plugin::{Output, Plugin};
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// The usual idiom, what else can be looked up, and something random beside it.
const DB: &str = r#"
{{- $old := lookup "v1" "Secret" .Release.Namespace "db" }}
{{- $found := dict "own" $old }}
{{- $_ := set $found "foreign" (lookup "v1" "Secret" .Release.Namespace "foreign") }}
{{- $_ := set $found "other" (lookup "v1" "Secret" .Release.Namespace "other") }}
{{- $_ := set $found "system" (lookup "v1" "Namespace" "" "kube-system") }}
{{- $_ := set $found "unserved" (lookup "example.test/v1" "Nothing" .Release.Namespace "db") }}
{{- $_ := set $found "unserved list" (lookup "example.test/v1" "Nothing" "" "") }}
apiVersion: v1
kind: Secret
metadata: {name: db}
data:
  user: {{ "someone" | b64enc }}
  password: {{ if $old }}{{ index $old.data "password" }}{{ else }}{{ randAlphaNum 16 | b64enc | quote }}{{ end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {user: someone}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: seen
  annotations: {roll: "{{ randAlphaNum 8 }}"}
data:
  version: {{ .Chart.Version | quote }}
  secrets: {{ len ((lookup "v1" "Secret" .Release.Namespace "").items | default list) | quote }}
  {{- range $name, $object := $found }}
  {{ $name | replace " " "-" }}: {{ if $object }}found{{ else }}not found{{ end }}
  {{- end }}
"#;
/// A chart that looks nothing up, and what charts can ask about the cluster.
const PLAIN: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\ndata: {password: b3RoZXI=}\n---\n\
    apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {version: {{ .Chart.Version | quote }}}\n";
const CAPABILITIES: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: capabilities}\ndata:\n\
    \x20 versions: {{ .Capabilities.APIVersions | uniq | sortAlpha | toJson | quote }}\n\
    \x20 kubernetes: \"{{ .Capabilities.KubeVersion }} {{ .Capabilities.KubeVersion | toJson | b64enc }}\"\n\
    \x20 found: {{ if lookup \"v1\" \"ConfigMap\" .Release.Namespace \"capabilities\" }}\"yes\"{{ else }}\"no\"{{ end }}\n";

/// Versions of a chart as an add-on, in a file.
fn catalogue(stage: &Stage, addon: &str, versions: &[(&str, &[(&str, &str)])]) -> Result<PathBuf> {
    let shelf = Shelf::new()?;
    let mut entries = Vec::new();
    for (version, files) in versions {
        let archive = shelf.chart(addon, version, files)?;
        let file = stage.plugin.home().join(format!("{addon}-{version}.tgz"));
        std::fs::copy(&archive, &file)?;
        entries.push(
            json!({"version": version, "defaultNamespace": stage.namespace,
            "template": {"method": "helm"}, "source": {"url": {"manifest": file}}}),
        );
    }
    let catalogue = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": addon}, "spec": {"addons": [{"name": addon, "versions": entries}]}});
    stage.write(&format!("{addon}.json"), &catalogue.to_string())
}

/// What a ConfigMap of the stage holds.
async fn data(stage: &Stage, name: &str) -> Result<Value> {
    Ok(stage.must("configmap", name).await?["data"].clone())
}

fn flags() -> Result<String> {
    Ok(format!("--helm-bin {} --yes", binaries::helm()?.display()))
}

/// A Secret of no installation, an installation without `lookup`, and one that looks for both.
async fn both(stage: &Stage, flags: &str) -> Result<()> {
    let db = [("templates/db.yaml", DB)];
    let versions = ["1.0.0", "1.1.0", "1.2.0"].map(|version| (version, &db[..]));
    let file = catalogue(stage, "web", &versions)?;
    let plain = [("templates/plain.yaml", PLAIN)];
    let other = catalogue(stage, "other", &[("1.0.0", &plain), ("1.1.0", &plain)])?;
    let foreign =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: foreign}\nstringData: {password: theirs}\n";
    stage.apply(foreign).await?;
    for (name, file) in [("other", &other), ("web", &file)] {
        let line = format!("install {name}@1.0.0 --channel {} {flags}", file.display());
        stage.run(&line).await?.done()?;
    }
    Ok(())
}

/// trust 8.
#[tokio::test]
async fn t08_lookup_finds_the_objects_of_its_own_installation_alone() -> Result<()> {
    let stage = Stage::new("lookup").await?;
    let flags = flags()?;
    both(&stage, &flags).await?;
    let nothing = json!({"version": "1.0.0", "secrets": "0", "own": "not found", "foreign": "not found", "other": "not found",
        "system": "not found", "unserved": "not found", "unserved-list": "not found"});
    ensure!(data(&stage, "seen").await? == nothing, "{nothing}");
    let first = stage.must("secret", "db").await?["data"].clone();

    // A plan that is applied later sees the same.
    let helm = flags.replace("--yes", "");
    let line = format!("plan web@1.1.0 -o plan.json {helm}");
    let planned = stage.run(&line).await?.done()?;
    let applied = stage
        .run(&format!("apply plan.json {flags}"))
        .await?
        .done()?;
    let own = |version: &str| {
        let mut own = nothing.clone();
        own["version"] = version.into();
        own["own"] = "found".into();
        own["secrets"] = "1".into();
        own
    };
    let seen = data(&stage, "seen").await?;
    ensure!(seen == own("1.1.0"), "{seen}");
    let diff = stage
        .run(&format!("diff web@1.2.0 {helm}"))
        .await?
        .ended(1)?;
    ensure!(diff.stdout.contains("1.2.0"), "{}", diff.stdout);
    let mark = stage.cluster.audit().mark()?;
    let upgraded = stage
        .run(&format!("upgrade web@1.2.0 {flags}"))
        .await?
        .done()?;
    let reads = reads(&stage, mark, "/secrets/db")?;
    let seen = data(&stage, "seen").await?;
    ensure!(seen == own("1.2.0"), "{seen}");
    let last = stage.must("secret", "db").await?["data"].clone();
    ensure!(last == first, "the password was replaced");
    for said in [&planned, &upgraded] {
        ensure!(
            said.stderr
                .contains("`lookup` in the chart reads live objects of this installation only"),
            "{}",
            said.stderr
        );
    }
    println!("{}", planned.stderr);
    println!("Secret db was read {reads} times by an upgrade");
    let record = stage.record("web").await?;
    // What the chart spells out does not become secret because a Secret repeats it: an object with it counts as unchanged.
    ensure!(digest(&record, "settings").is_some(), "{record:#}");
    ensure!(
        !planned.stderr.contains("refresh   2"),
        "{}",
        planned.stderr
    );
    let record = record.to_string();
    let file = std::fs::read_to_string(stage.plugin.home().join("plan.json"))?;
    silent(
        &first,
        &[&planned, &applied, &upgraded, &diff],
        &[&record, &file],
    )?;

    let mark = stage.cluster.audit().mark()?;
    let said = stage
        .run(&format!("upgrade other@1.1.0 {flags}"))
        .await?
        .done()?;
    let plain = self::reads(&stage, mark, "/secrets/other")?;
    println!("by one of a chart without lookup {plain} times");
    // For its generated values, and before its dry run and its apply: a Secret may have keys that go (semantics 12).
    ensure!((reads, plain) == (4, 3), "{reads} and {plain} reads");
    ensure!(!said.stderr.contains("`lookup`"), "{}", said.stderr);
    Ok(())
}

/// The recorded digest of a ConfigMap.
fn digest<'a>(record: &'a Value, name: &str) -> Option<&'a str> {
    let groups = record["status"]["inventory"].as_array()?;
    let objects = groups.iter().filter(|group| group["kind"] == "ConfigMap");
    let mut objects = objects
        .filter_map(|group| group["objects"].as_array())
        .flatten();
    objects.find(|object| object["name"] == name)?["digest"].as_str()
}

/// How often an object was read by name.
fn reads(stage: &Stage, since: Mark, path: &str) -> Result<usize> {
    let requests = stage.requests(since)?;
    let ours = requests.of("kubectl-addons");
    let reads = ours.filter(|request| request.verb == "get" && request.uri.contains(path));
    Ok(reads.count())
}

/// The password is in no text.
fn silent(secret: &Value, said: &[&Output], texts: &[&str]) -> Result<()> {
    let encoded = secret["password"].as_str().context("no password")?;
    let password = String::from_utf8(BASE64_STANDARD.decode(encoded)?)?;
    let said = said.iter().flat_map(|said| [&said.stdout, &said.stderr]);
    let texts = said.map(String::as_str).chain(texts.iter().copied());
    for text in texts {
        ensure!(
            !text.contains(encoded) && !text.contains(&password),
            "the password is in {text}"
        );
    }
    Ok(())
}

/// A user who may do everything with what the chart consists of, but not read Secrets.
async fn without_secrets(stage: &Stage) -> Result<Plugin> {
    let name = format!("{}-limited", stage.namespace);
    let user = stage.cluster.user(&name, &[])?;
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let api = "rbac.authorization.k8s.io";
    // The facts for templates may lie in one Secret.
    let mut facts = rule(&[""], &["secrets"], &["get"]);
    facts["resourceNames"] = json!(["addon-template-data"]);
    let role = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": [
        rule(&["kubectl-addons.dev", "apiextensions.k8s.io"], &["*"], &["*"]),
        rule(&[""], &["configmaps", "namespaces"], &["*"]),
        rule(&[""], &["secrets"], &["list", "create", "patch", "update", "delete"]),
        facts,
    ]});
    let binding = json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": api, "kind": "User", "name": name}]});
    stage.apply(&role.to_string()).await?;
    stage.apply(&binding.to_string()).await?;
    Ok(Plugin::new(&stage.cluster, &user.kubeconfig)?.system_namespace(&stage.namespace))
}

/// trust 8: not found would mean a new password.
#[tokio::test]
async fn t08_what_lookup_cannot_read_is_an_error() -> Result<()> {
    let stage = Stage::new("unlooked").await?;
    let flags = flags()?;
    let db = [("templates/db.yaml", DB)];
    let file = catalogue(&stage, "web", &[("1.0.0", &db), ("1.1.0", &db)])?;
    let install = format!("install web@1.0.0 --channel {} {flags}", file.display());
    stage.run(&install).await?.done()?;
    let before = stage.must("secret", "db").await?;
    let record = stage.record("web").await?;

    let limited = without_secrets(&stage).await?;
    let line = format!("upgrade web@1.1.0 {flags}");
    let mark = stage.cluster.audit().mark()?;
    let said = limited
        .run(&line.split_whitespace().collect::<Vec<_>>())
        .await?
        .ended(1)?;
    println!("{}", said.stderr);
    let words = format!(
        "the chart looks up {}/Secret db, which cannot be read",
        stage.namespace
    );
    ensure!(said.stderr.contains(&words), "{}", said.stderr);
    let requests = stage.cluster.audit().since(mark)?;
    let requests = requests.by(&format!("{}-limited", stage.namespace));
    ensure!(
        requests.writes("kubectl-addons") == 0,
        "something was written"
    );
    ensure!(
        stage.must("secret", "db").await? == before,
        "the Secret changed"
    );
    ensure!(stage.record("web").await? == record, "the record changed");
    Ok(())
}

/// trust 8: a first installation that failed half-way leaves its password behind.
#[tokio::test]
async fn t08_lookup_finds_what_a_failed_installation_created() -> Result<()> {
    let stage = Stage::new("halfway").await?;
    let flags = flags()?;
    let broken = config_map("broken", "1");
    deny(&stage, When::Executed, &["CREATE"], "broken", "not today").await?;
    let whole = [("templates/db.yaml", DB)];
    let part = [
        ("templates/db.yaml", DB),
        ("templates/broken.yaml", &*broken),
    ];
    let file = catalogue(&stage, "web", &[("1.0.0", &part), ("1.1.0", &whole)])?;
    let install =
        |version: &str| format!("install web@{version} --channel {} {flags}", file.display());
    let said = stage.run(&install("1.0.0")).await?;
    println!("{}", said.stderr);
    ensure!(said.done().is_err(), "nothing failed");
    let before = stage.must("secret", "db").await?["data"].clone();
    let said = stage
        .run(&format!("upgrade web@1.1.0 {flags}"))
        .await?
        .done()?;
    println!("{}", said.stderr);
    let after = stage.must("secret", "db").await?["data"].clone();
    ensure!(before == after, "the password was replaced");
    let seen = data(&stage, "seen").await?;
    ensure!(seen["own"] == "found", "{seen}");
    Ok(())
}

/// The data with those versions alone that are of this group or built in: other tests define kinds meanwhile.
fn own_versions(mut data: Value, group: &str) -> Result<Value> {
    let versions = data["versions"].as_str().context("no versions")?;
    let mut versions: Vec<String> = serde_json::from_str(versions)?;
    versions.retain(|version| version.starts_with(group) || version.starts_with("apps/"));
    ensure!(!versions.is_empty());
    data["versions"] = versions.into();
    Ok(data)
}

/// trust 8: what a chart defines itself is not served before it is installed, and whatever it asks about the cluster is answered as
/// without `lookup`.
#[tokio::test]
async fn t08_lookup_changes_nothing_else_of_a_rendering() -> Result<()> {
    let stage = Stage::new("capable").await?;
    // Our own definitions are served before the first rendering, too.
    stage.run("init").await?.done()?;
    let flags = flags()?;
    let group = format!("{}.example.test", stage.namespace);
    let definition = |kind: &str| {
        let plural = format!("{}s", kind.to_lowercase());
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Cluster", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
        .to_string()
    };
    let (pots, pans) = (definition("Pot"), definition("Pan"));
    let objects = format!(
        "apiVersion: {group}/v1\nkind: Pot\nmetadata: {{name: {0}-a}}\n---\n\
         apiVersion: {group}/v1\nkind: Pan\nmetadata: {{name: {0}-a}}\n---\n",
        stage.namespace
    );
    let capabilities = [("templates/capabilities.yaml", CAPABILITIES)];
    let whole = [
        ("templates/capabilities.yaml", CAPABILITIES),
        ("templates/objects.yaml", &objects),
        ("templates/pans.yaml", &pans),
        ("crds/pots.yaml", &pots),
    ];
    let file = catalogue(
        &stage,
        "web",
        &[("1.0.0", &capabilities), ("1.1.0", &whole)],
    )?;
    let install = format!("install web@1.0.0 --channel {} {flags}", file.display());
    stage.run(&install).await?.done()?;
    let before = own_versions(data(&stage, "capabilities").await?, &group)?;
    ensure!(before["found"] == "no", "{before}");
    let said = stage
        .run(&format!("upgrade web@1.1.0 {flags}"))
        .await?
        .done()?;
    println!("{}", said.stderr);
    let mut after = own_versions(data(&stage, "capabilities").await?, &group)?;
    ensure!(after["found"] == "yes", "{after}");
    after["found"] = "no".into();
    ensure!(after == before, "{before}\n{after}");
    for kind in ["pots", "pans"] {
        let name = format!("{}-a", stage.namespace);
        stage.must(&format!("{kind}.{group}"), &name).await?;
    }
    Ok(())
}
