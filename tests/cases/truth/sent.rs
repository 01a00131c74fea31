//! What is sent is not what the server answers: aliases, defaults of a former value, fields that others own by contract, answers that
//! change nothing (semantics 12).

use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::api::names::field_manager;
use serde_json::{Value, json};

/// One add-on that goes through versions.
struct Add<'a> {
    stage: &'a Stage,
    version: u32,
}

impl<'a> Add<'a> {
    /// Installs the first version.
    async fn install(stage: &'a Stage, manifest: &str) -> Result<Self> {
        let mut add = Self { stage, version: 0 };
        let line = add.line("install add", manifest)?;
        stage.run(&line).await?.done()?;
        Ok(add)
    }

    /// The command that brings the next version, which has this manifest.
    fn line(&mut self, command: &str, manifest: &str) -> Result<String> {
        self.version += 1;
        let version = format!("{}.0.0", self.version);
        let file = format!("{version}.yaml");
        let index = self.stage.index(&file, &[("add", &version, manifest)])?;
        let wait = if command.starts_with("diff") {
            ""
        } else {
            " --yes --wait=false"
        };
        let namespace = &self.stage.namespace;
        Ok(format!("{command} -n {namespace} --channel {index}{wait}"))
    }

    /// Upgrades to the next version; what was said.
    async fn upgrade(&mut self, manifest: &str) -> Result<String> {
        let line = self.line("upgrade add", manifest)?;
        Ok(self.stage.run(&line).await?.done()?.stderr)
    }

    /// The comparison with this manifest, as the next version, ends with this code; what it said.
    async fn diff(&mut self, manifest: &str, code: i32) -> Result<String> {
        let line = self.line("diff add", manifest)?;
        self.version -= 1;
        let output = self.stage.run(&line).await?.ended(code)?;
        Ok(output.stdout + &output.stderr)
    }

    /// Nothing was edited, as far as `status` and a repair know.
    async fn is_at_rest(&self) -> Result<()> {
        let namespace = &self.stage.namespace;
        let status = self
            .stage
            .run(&format!("status add -n {namespace}"))
            .await?;
        ensure!(!status.stdout.contains("edited"), "{}", status.stdout);
        let repair = format!("upgrade add -n {namespace} --repair --yes --wait=false");
        let repair = self.stage.run(&repair).await?.done()?;
        // Without waiting before, the record may be brought up to date.
        let is_quiet = !repair.stderr.contains(" changed") && !repair.stderr.contains("  update");
        ensure!(is_quiet, "{}", repair.stderr);
        Ok(())
    }
}

/// Writes the replicas of a Deployment as a controller does.
async fn scale(stage: &Stage, manager: &str, replicas: u32) -> Result<()> {
    let manager = format!("--field-manager={manager}");
    let patch = json!({"spec": {"replicas": replicas}}).to_string();
    let args = ["patch", "deployment", "web", "--subresource=scale"];
    let args = [&args[..], &["--type=merge", &manager, "-p", &patch]].concat();
    stage.kubectl(&args).await.map(drop)
}

/// Patches an object as a named manager.
async fn patch_as(stage: &Stage, manager: &str, object: (&str, &str), patch: &Value) -> Result<()> {
    let manager = format!("--field-manager={manager}");
    let patch = patch.to_string();
    let args = ["patch", object.0, object.1, "--type=merge", &manager];
    let args = [&args[..], &["-p", &patch]].concat();
    stage.kubectl(&args).await.map(drop)
}

/// A certificate in base64: that of the cluster.
fn certificate(stage: &Stage) -> Result<String> {
    let config = std::fs::read_to_string(stage.plugin.kubeconfig())?;
    let (_, rest) = config
        .split_once("certificate-authority-data")
        .context("no authority")?;
    let is_base64 = |letter: char| letter.is_ascii_alphanumeric() || "+/=".contains(letter);
    let rest = rest.trim_start_matches(|letter| !is_base64(letter));
    Ok(rest
        .chars()
        .take_while(|letter| is_base64(*letter))
        .collect())
}

const ACCOUNT: &str = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: power}\n---\n";

fn pods(kind: &str, spec: &str, pod: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: web}}\nspec:\n  {spec}\n  selector: {{matchLabels: {{app: web}}}}\n  \
         template:\n    metadata: {{labels: {{app: web}}}}\n    spec: {{{pod}}}\n---\n"
    )
}

fn containers(image: &str, more: &str) -> String {
    format!("containers: [{{name: main, image: 'example.test/{image}'{more}}}]")
}

#[tokio::test]
async fn n06_a_status_and_fields_of_others_are_not_edits() -> Result<()> {
    let stage = Stage::new("sent-status").await?;
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: quota}\nspec: {hard: {count/jobs.batch: '50'}}\n---\n";
    let scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: scaler}\nspec: {minReplicas: 1, maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}}\n---\n";
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}\n---\n";
    let open = pods("Deployment", "minReadySeconds: 0", &containers("web:1", ""));
    let manifest = [quota, scaler, service, &open].concat();
    let add = Add::install(&stage, &manifest).await?;
    let hard = json!({"hard": {"count/jobs.batch": "50"}, "used": {"count/jobs.batch": "3"}});
    stage.patch_status("resourcequota", "quota", &hard).await?;
    let current = json!({"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": null, "conditions": null});
    stage
        .patch_status("horizontalpodautoscaler", "scaler", &current)
        .await?;
    let balancer = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    stage.patch_status("service", "web", &balancer).await?;
    // Fields that the manifest leaves open.
    scale(&stage, "kubectl", 3).await?;
    stage
        .patch(
            "deployment",
            "web",
            &json!({"spec": {"revisionHistoryLimit": 3}}),
        )
        .await?;
    add.is_at_rest().await?;
    ensure!(stage.must("deployment", "web").await?["spec"]["replicas"] == 3);
    // One of ours is.
    stage
        .patch(
            "service",
            "web",
            &json!({"spec": {"selector": {"app": "other"}}}),
        )
        .await?;
    let status = stage
        .run(&format!("status add -n {}", stage.namespace))
        .await?;
    ensure!(status.stdout.contains("edited"), "{}", status.stdout);
    let repair = format!(
        "upgrade add -n {} --repair --yes --wait=false",
        stage.namespace
    );
    stage.run(&repair).await?.done()?;
    ensure!(stage.must("service", "web").await?["spec"]["selector"]["app"] == "web");
    add.is_at_rest().await
}

#[tokio::test]
async fn n09_the_rules_of_an_aggregated_role_are_its_controllers() -> Result<()> {
    let stage = Stage::new("sent-aggregated").await?;
    let name = &stage.namespace;
    let role = |version: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}-all, labels: {{version: {version:?}}}}}\n\
             aggregationRule: {{clusterRoleSelectors: [{{matchLabels: {{part-of: {name}}}}}]}}\nrules: []\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {name}-part, labels: {{part-of: {name}}}}}\n\
             rules: [{{apiGroups: [''], resources: [pods], verbs: [get]}}]\n---\n"
        )
    };
    let mut add = Add::install(&stage, &role("1")).await?;
    let all = format!("{name}-all");
    until("the role is aggregated", async || {
        let found = stage.must("clusterrole", &all).await?;
        let is_filled = found["rules"]
            .as_array()
            .is_some_and(|rules| !rules.is_empty());
        Ok(is_filled.then_some(()).ok_or_else(|| found.to_string()))
    })
    .await?;
    let rules = stage.must("clusterrole", &all).await?["rules"].clone();
    add.is_at_rest().await?;
    let said = add.upgrade(&role("2")).await?;
    ensure!(!said.contains("taken"), "{said}");
    let found = stage.must("clusterrole", &all).await?;
    ensure!(
        found["rules"] == rules && found["metadata"]["labels"]["version"] == "2",
        "{found:#}"
    );
    add.is_at_rest().await
}

#[tokio::test]
async fn n09_replicas_are_those_of_whoever_scales() -> Result<()> {
    let stage = Stage::new("sent-scaled").await?;
    let mut add = Add::install(&stage, &deployment("web", 2, None)).await?;
    scale(&stage, "keda", 4).await?;
    let replicas = async || -> Result<Value> {
        Ok(stage.must("deployment", "web").await?["spec"]["replicas"].clone())
    };
    let labelled = |version: u32| {
        let labels = format!("metadata: {{name: web, labels: {{version: '{version}'}}}}");
        deployment("web", 2, None).replacen("metadata: {name: web}", &labels, 1)
    };
    let said = add.upgrade(&labelled(2)).await?;
    ensure!(
        said.contains("spec.replicas: 4") && said.contains("keda sets it"),
        "{said}"
    );
    ensure!(replicas().await? == 4);
    add.is_at_rest().await?;
    // At zero, they have no owner.
    scale(&stage, "keda", 0).await?;
    let line = add.line("upgrade add --conflicts yield", &labelled(3))?;
    stage.run(&line).await?.done()?;
    ensure!(replicas().await? == 0, "scaled up");
    // A person's edit is taken back.
    scale(&stage, "kubectl", 5).await?;
    let line = add.line("upgrade add --conflicts take", &labelled(4))?;
    stage.run(&line).await?.done()?;
    ensure!(replicas().await? == 2);
    Ok(())
}

#[tokio::test]
async fn n09_a_ca_bundle_is_its_injectors() -> Result<()> {
    let stage = Stage::new("sent-bundle").await?;
    let name = &stage.namespace;
    let webhook = |version: u32| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: {name}, labels: {{version: 'v{version}'}}}}\n\
             webhooks:\n- name: a.example.test\n  admissionReviewVersions: [v1]\n  sideEffects: None\n  failurePolicy: Ignore\n  \
             clientConfig: {{caBundle: Cg==, url: 'https://127.0.0.1:1/'}}\n  \
             rules: [{{apiGroups: [none.example.test], apiVersions: [v1], operations: [CREATE], resources: [nones]}}]\n---\n"
        )
    };
    let mut add = Add::install(&stage, &webhook(1)).await?;
    let bundle = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t";
    let inject =
        json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}])
            .to_string();
    let args = [
        "patch",
        "validatingwebhookconfiguration",
        name,
        "--type=json",
    ];
    let args = [&args[..], &["--field-manager=injector", "-p", &inject]].concat();
    stage.kubectl(&args).await?;
    add.is_at_rest().await?;
    add.upgrade(&webhook(2)).await?;
    let found = stage.must("validatingwebhookconfiguration", name).await?;
    ensure!(
        found["webhooks"][0]["clientConfig"]["caBundle"] == bundle,
        "{found:#}"
    );
    Ok(())
}

#[tokio::test]
async fn n10_a_key_that_leaves_string_data_leaves_the_secret() -> Result<()> {
    let stage = Stage::new("sent-secret").await?;
    let secret = |data: &str| {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: mail}}\n{data}\n---\n")
    };
    let first = secret("stringData: {user: me, token: old}");
    let second = secret("stringData: {user: me, password: second}");
    let mut add = Add::install(&stage, &first).await?;
    let said = add.diff(&second, 1).await?;
    ensure!(
        said.contains("data.token") && !said.contains("b2xk"),
        "{said}"
    );
    add.upgrade(&second).await?;
    let data =
        async || -> Result<Value> { Ok(stage.must("secret", "mail").await?["data"].clone()) };
    ensure!(
        data().await? == json!({"user": "bWU=", "password": "c2Vjb25k"}),
        "{}",
        data().await?
    );
    add.upgrade(&secret("data: {password: c2Vjb25k}")).await?;
    ensure!(
        data().await? == json!({"password": "c2Vjb25k"}),
        "{}",
        data().await?
    );
    // An edit is in conflict now.
    stage
        .patch("secret", "mail", &json!({"data": {"password": "d3Jvbmc="}}))
        .await?;
    let repair = format!("upgrade add -n {} --repair --yes", stage.namespace);
    let repaired = stage.run(&repair).await?.done()?;
    ensure!(repaired.stderr.contains("taken"), "{}", repaired.stderr);
    ensure!(data().await?["password"] == "c2Vjb25k");
    // Keys that were applied as `stringData` by another program version have no owner.
    let manager = field_manager(&stage.namespace, "add");
    let applied = secret("stringData: {password: second, stale: x}");
    let args = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "-n",
        &stage.namespace,
        "-f",
        "-",
    ];
    let by = format!("--field-manager={manager}");
    let args = [&args[..], &[&by]].concat();
    stage
        .plugin
        .kubectl_with_input(&args, &applied)
        .await?
        .done()?;
    ensure!(data().await?["stale"] == "eA==");
    add.upgrade(&secret("stringData: {password: third}"))
        .await?;
    ensure!(
        data().await? == json!({"password": "dGhpcmQ="}),
        "{}",
        data().await?
    );
    Ok(())
}

#[tokio::test]
async fn n10_an_account_that_is_dropped_is_dropped_under_both_names() -> Result<()> {
    let stage = Stage::new("sent-account").await?;
    let plain = |image: &str| pods("Deployment", "replicas: 1", &containers(image, ""));
    for (field, pair) in [("serviceAccountName", 1), ("serviceAccount", 2)] {
        let named = format!("{field}: power, {}", containers("web:1", ""));
        let first = format!("{ACCOUNT}{}", pods("Deployment", "replicas: 1", &named));
        let mut add = if pair == 1 {
            Add::install(&stage, &first).await?
        } else {
            let mut add = Add {
                stage: &stage,
                version: 10,
            };
            add.upgrade(&first).await?;
            add
        };
        let said = add.diff(&plain("web:1"), 1).await?;
        ensure!(
            said.contains("spec.template.spec.serviceAccountName"),
            "{said}"
        );
        add.upgrade(&plain("web:1")).await?;
        let pod = stage.must("deployment", "web").await?["spec"]["template"]["spec"].clone();
        ensure!(
            pod["serviceAccountName"].is_null() && pod["serviceAccount"].is_null(),
            "{pod:#}"
        );
        ensure!(
            !stage.has("serviceaccount", "power").await?,
            "it was not pruned"
        );
        add.is_at_rest().await?;
    }
    Ok(())
}

#[tokio::test]
async fn n10_a_network_policy_that_gains_egress_enforces_it() -> Result<()> {
    let stage = Stage::new("sent-egress").await?;
    let policy = |rules: &str| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {{name: net}}\nspec: {{podSelector: {{}}, {rules}}}\n---\n"
        )
    };
    let ingress = "ingress: [{from: [{podSelector: {}}]}]";
    let both = format!("{ingress}, egress: [{{to: [{{podSelector: {{}}}}]}}]");
    let mut add = Add::install(&stage, &policy(ingress)).await?;
    let types = async || -> Result<Value> {
        Ok(stage.must("networkpolicy", "net").await?["spec"]["policyTypes"].clone())
    };
    add.upgrade(&policy(&both)).await?;
    ensure!(types().await? == json!(["Ingress", "Egress"]));
    add.upgrade(&policy(ingress)).await?;
    ensure!(types().await? == json!(["Ingress"]));
    Ok(())
}

#[tokio::test]
async fn n10_a_field_that_becomes_null_goes() -> Result<()> {
    let stage = Stage::new("sent-null").await?;
    let probed = |probe: &str| {
        let more = format!(", livenessProbe: {probe}");
        pods("Deployment", "replicas: 1", &containers("web:1", &more))
    };
    let mut add = Add::install(&stage, &probed("{exec: {command: [x]}}")).await?;
    add.upgrade(&probed("null")).await?;
    let found = stage.must("deployment", "web").await?;
    let container = &found["spec"]["template"]["spec"]["containers"][0];
    ensure!(container["livenessProbe"].is_null(), "{container:#}");
    Ok(())
}

#[tokio::test]
async fn n10_a_variable_that_is_there_twice_counts_once() -> Result<()> {
    let stage = Stage::new("sent-twice").await?;
    let env = |env: &str| {
        pods(
            "Deployment",
            "replicas: 1",
            &containers("web:1", &format!(", env: [{env}]")),
        )
    };
    let twice = "{name: LEVEL, value: debug}, {name: LEVEL, value: info}";
    let mut add = Add {
        stage: &stage,
        version: 0,
    };
    let line = add.line("install add", &env(twice))?;
    let said = stage.run(&line).await?.done()?.stderr;
    ensure!(
        said.contains("containers[main].env: LEVEL is there twice, at 0 and 1"),
        "{said}"
    );
    let found = async || -> Result<Value> {
        let found = stage.must("deployment", "web").await?;
        Ok(found["spec"]["template"]["spec"]["containers"][0]["env"].clone())
    };
    let info = json!([{"name": "LEVEL", "value": "info"}]);
    ensure!(found().await? == info, "{}", found().await?);
    add.upgrade(&env("{name: LEVEL, value: info}")).await?;
    ensure!(found().await? == info, "{}", found().await?);
    Ok(())
}

#[tokio::test]
async fn n11_the_other_half_of_a_union_goes() -> Result<()> {
    let stage = Stage::new("sent-union").await?;
    let volumes = |source: &str| {
        format!(
            "{}, volumes: [{{name: cache{source}}}]",
            containers("web:latest", "")
        )
    };
    let first = pods("Deployment", "replicas: 1", &volumes(""))
        + &pods("StatefulSet", "serviceName: web", &containers("web:1", ""));
    let second = pods(
        "Deployment",
        "strategy: {type: Recreate, rollingUpdate: null}",
        &volumes(", configMap: {name: conf}").replace("latest", "2"),
    ) + &pods(
        "StatefulSet",
        "serviceName: web\n  updateStrategy: {type: OnDelete}",
        &containers("web:1", ""),
    );
    let (first, second) = (
        first + &config_map("conf", "1"),
        second + &config_map("conf", "2"),
    );
    let mut add = Add::install(&stage, &first).await?;
    let before = stage.must("deployment", "web").await?;
    let said = add.diff(&second, 1).await?;
    ensure!(
        said.contains("spec.strategy.rollingUpdate") && !said.contains("Forbidden"),
        "{said}"
    );
    let said = add.upgrade(&second).await?;
    ensure!(
        !said.contains("taken") && !said.contains("recreate"),
        "{said}"
    );
    let now = stage.must("deployment", "web").await?;
    ensure!(now["metadata"]["uid"] == before["metadata"]["uid"]);
    ensure!(
        now["spec"]["strategy"] == json!({"type": "Recreate"}),
        "{now:#}"
    );
    let pod = &now["spec"]["template"]["spec"];
    ensure!(pod["volumes"][0]["emptyDir"].is_null(), "{pod:#}");
    ensure!(
        pod["containers"][0]["imagePullPolicy"] == "IfNotPresent",
        "{pod:#}"
    );
    let set = stage.must("statefulset", "web").await?;
    ensure!(
        set["spec"]["updateStrategy"] == json!({"type": "OnDelete"}),
        "{set:#}"
    );
    add.is_at_rest().await?;
    // And back.
    add.upgrade(&first).await?;
    let now = stage.must("deployment", "web").await?;
    ensure!(
        now["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "25%",
        "{now:#}"
    );
    // What had an owner is taken, and said so; or it is refused before anything is written.
    let edit = json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 2}}}});
    stage.patch("deployment", "web", &edit).await?;
    let line = add.line("upgrade add --conflicts fail", &second)?;
    let refused = stage.run(&line).await?.ended(4)?;
    ensure!(
        refused.stderr.contains("spec.strategy.rollingUpdate"),
        "{}",
        refused.stderr
    );
    let line = add.line("upgrade add --conflicts take", &second)?;
    let taken = stage.run(&line).await?.done()?;
    ensure!(
        taken.stderr.contains("taken") && taken.stderr.contains("kubectl-patch"),
        "{}",
        taken.stderr
    );
    let now = stage.must("deployment", "web").await?;
    ensure!(
        now["spec"]["strategy"] == json!({"type": "Recreate"}),
        "{now:#}"
    );
    Ok(())
}

#[tokio::test]
async fn n11_a_definition_loses_its_conversion_with_the_bundle_in_it() -> Result<()> {
    let stage = Stage::new("sent-conversion").await?;
    let name = &stage.namespace;
    let group = format!("{name}.example.test");
    let definition = |conversion: &str, served: &str| {
        let schema = "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}}";
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: disks.{group}}}\nspec:\n  group: {group}\n  \
             names: {{kind: Disk, listKind: DiskList, plural: disks, singular: disk}}\n  scope: Namespaced\n  {conversion}\n  versions:\n{served}  \
             - {{name: v1, served: true, storage: true, {schema}}}\n---\n"
        )
    };
    let old = "  - {name: v1beta1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}\n";
    let webhook = format!(
        "conversion: {{strategy: Webhook, webhook: {{conversionReviewVersions: [v1], clientConfig: {{service: {{name: c, namespace: {name}, path: /c, port: 9501}}}}}}}}"
    );
    let crd = format!("disks.{group}");
    let mut add = Add::install(&stage, &definition(&webhook, old)).await?;
    for off in [
        "preserveUnknownFields: false",
        "conversion: {strategy: None}",
    ] {
        let certificate = certificate(&stage)?;
        let bundle = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": certificate}}}}});
        patch_as(&stage, "disks-manager", ("crd", &crd), &bundle).await?;
        add.is_at_rest().await?;
        let said = add.diff(&definition(off, ""), 1).await?;
        ensure!(
            said.contains("spec.conversion") && !said.contains("Forbidden"),
            "{said}"
        );
        let said = add.upgrade(&definition(off, "")).await?;
        ensure!(
            said.contains("spec.conversion.webhook") && said.contains("disks-manager"),
            "{said}"
        );
        let found = stage.must("crd", &crd).await?;
        ensure!(
            found["spec"]["conversion"] == json!({"strategy": "None"}),
            "{}",
            found["spec"]
        );
        add.upgrade(&definition(&webhook, old)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn n12_a_headless_service_is_recreated_or_refused() -> Result<()> {
    let stage = Stage::new("sent-headless").await?;
    let service = |more: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec: {{{more}selector: {{app: web}}, ports: [{{port: 80}}]}}\n---\n"
        )
    };
    let (none, open) = (service("clusterIP: None, "), service(""));
    let mut add = Add::install(&stage, &none).await?;
    let said = add.diff(&open, 1).await?;
    ensure!(said.contains("spec.clusterIP"), "{said}");
    let line = add.line("upgrade add", &open)?;
    let refused = stage.run(&line).await?.ended(4)?;
    for word in ["spec.clusterIP", "None", "--recreate Service/web"] {
        ensure!(
            refused.stderr.contains(word),
            "no {word}: {}",
            refused.stderr
        );
    }
    let before = stage.must("service", "web").await?;
    let recreated = format!("{line} --recreate Service/web");
    stage.run(&recreated).await?.done()?;
    let now = stage.must("service", "web").await?;
    ensure!(
        now["spec"]["clusterIP"] != "None" && now["metadata"]["uid"] != before["metadata"]["uid"],
        "{now:#}"
    );
    add.is_at_rest().await?;
    // An address that the server assigned is not asked about.
    let said = add
        .upgrade(&service("publishNotReadyAddresses: true, "))
        .await?;
    ensure!(!said.contains("clusterIP"), "{said}");
    Ok(())
}

#[tokio::test]
async fn n12_a_field_that_others_own_as_well_is_named() -> Result<()> {
    let stage = Stage::new("sent-shared").await?;
    let map = |more: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: shared}}\ndata: {{key: a{more}}}\n---\n"
        )
    };
    let mut add = Add::install(&stage, &map(", both: b")).await?;
    let args = [
        "apply",
        "--server-side",
        "--field-manager=kops",
        "-n",
        &stage.namespace,
        "-f",
        "-",
    ];
    stage
        .plugin
        .kubectl_with_input(&args, &map(", both: b"))
        .await?
        .done()?;
    for said in [add.diff(&map(""), 1).await?, add.upgrade(&map("")).await?] {
        let line = "data.both stays \"b\", although the manifest drops it: kops sets it, too";
        ensure!(said.contains(line), "{said}");
    }
    ensure!(stage.must("configmap", "shared").await?["data"]["both"] == "b");
    add.is_at_rest().await
}

#[tokio::test]
async fn n12_a_claim_that_was_enlarged_keeps_its_size() -> Result<()> {
    let stage = Stage::new("sent-claim").await?;
    let name = &stage.namespace;
    stage
        .apply(&format!(
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: {name}}}\nprovisioner: none.example.test\nallowVolumeExpansion: true\n---\n\
             apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec: {{capacity: {{storage: 5Gi}}, accessModes: [ReadWriteOnce], \
             storageClassName: {name}, persistentVolumeReclaimPolicy: Retain, hostPath: {{path: /tmp/{name}}}}}\n---\n"
        ))
        .await?;
    let claim = |version: u32, size: &str| {
        format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: ledger, labels: {{version: 'v{version}'}}}}\nspec: {{storageClassName: {name}, \
             accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}}}\n---\n"
        )
    };
    let mut add = Add::install(&stage, &claim(1, "1Gi")).await?;
    until("the claim is bound", async || {
        let found = stage.must("persistentvolumeclaim", "ledger").await?;
        let is_bound = found["status"]["phase"] == "Bound";
        Ok(is_bound
            .then_some(())
            .ok_or_else(|| found["status"].to_string()))
    })
    .await?;
    add.is_at_rest().await?;
    let grown = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    stage
        .patch("persistentvolumeclaim", "ledger", &grown)
        .await?;
    let said = add.diff(&claim(2, "1Gi"), 1).await?;
    ensure!(said.contains("a claim never shrinks"), "{said}");
    let said = add.upgrade(&claim(2, "1Gi")).await?;
    ensure!(
        said.contains("\"2Gi\" (kubectl-patch") && said.contains("a claim never shrinks"),
        "{said}"
    );
    let now = stage.must("persistentvolumeclaim", "ledger").await?;
    ensure!(
        now["spec"]["resources"]["requests"]["storage"] == "2Gi",
        "{now:#}"
    );
    ensure!(now["metadata"]["labels"]["version"] == "v2", "{now:#}");
    add.is_at_rest().await?;
    // Also where it was us who enlarged it: a rollback does not fail.
    add.upgrade(&claim(3, "3Gi")).await?;
    add.upgrade(&claim(4, "1Gi")).await?;
    let now = stage.must("persistentvolumeclaim", "ledger").await?;
    ensure!(
        now["spec"]["resources"]["requests"]["storage"] == "3Gi",
        "{now:#}"
    );
    Ok(())
}
