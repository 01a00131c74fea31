//! Charts, and marks of other tools in manifests.

use std::fs;
use std::path::PathBuf;

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::{Stage, config_map};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// An object with one annotation.
fn annotated(kind: &str, name: &str, annotation: &str) -> String {
    let (api_version, rest) = match kind {
        "Job" => (
            "batch/v1",
            "spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'example.test/job:1'}]}}}\n",
        ),
        "Pod" => (
            "v1",
            "spec: {containers: [{name: main, image: 'example.test/pod:1'}]}\n",
        ),
        _ => ("v1", ""),
    };
    format!(
        "apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}, annotations: {{{annotation}}}}}\n{rest}---\n"
    )
}

/// What `helm template` prints and what a folder has that Argo CD or kustomize reads, too.
fn of_other_tools() -> String {
    [
        config_map("depot", "1"),
        annotated("Job", "erase", "helm.sh/hook: pre-delete"),
        annotated("Job", "clean", "argocd.argoproj.io/hook: PostDelete"),
        annotated("Job", "alarm", "argocd.argoproj.io/hook: SyncFail"),
        annotated("Job", "later", "helm.sh/hook: post-upgrade"),
        annotated("Pod", "probe", "helm.sh/hook: test"),
        annotated("ConfigMap", "skipped", "argocd.argoproj.io/hook: Skip"),
        annotated(
            "ConfigMap",
            "local",
            "config.kubernetes.io/local-config: 'true'",
        ),
    ]
    .concat()
}

/// A chart in a folder of the user.
fn chart(stage: &Stage, version: &str, more: &str, files: &[(&str, &str)]) -> Result<PathBuf> {
    let about = format!("apiVersion: v2\nname: web\nversion: {version}\n{more}");
    let path = stage.write("chart/Chart.yaml", &about)?;
    for (file, text) in files {
        stage.write(&format!("chart/{file}"), text)?;
    }
    Ok(path.parent().context("no folder")?.to_owned())
}

/// The flags that every command with a chart of this module has.
fn flags(stage: &Stage) -> Result<String> {
    let helm = binaries::helm()?;
    let (helm, name) = (helm.display(), &stage.namespace);
    Ok(format!(
        "--helm-bin {helm} --target-namespace {name} --yes --timeout 60s"
    ))
}

async fn only_the_depot(stage: &Stage, said: &str) -> Result<()> {
    ensure!(stage.has("configmap", "depot").await?, "{said}");
    for (kind, name) in [
        ("job", "erase"),
        ("job", "clean"),
        ("job", "alarm"),
        ("job", "later"),
        ("pod", "probe"),
        ("configmap", "skipped"),
        ("configmap", "local"),
    ] {
        ensure!(
            !stage.has(kind, name).await?,
            "{kind} {name} was applied: {said}"
        );
    }
    for (object, hook) in [
        ("Job erase", "pre-delete"),
        ("Job clean", "PostDelete"),
        ("Job alarm", "SyncFail"),
        ("ConfigMap skipped", "Skip"),
        ("ConfigMap local", "local-config"),
    ] {
        let is_told =
            |line: &str| line.contains(&format!("{object} is left out")) && line.contains(hook);
        ensure!(said.lines().any(is_told), "{object}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn n16_what_is_for_other_occasions_is_not_applied() -> Result<()> {
    let stage = Stage::new("n16-hooks").await?;
    let text = of_other_tools();
    let version = json!({"version": "1.0.0", "source": {"inline": {"manifest": text}}});
    let catalogue = stage.catalogue("web", &version)?;
    let line = format!("catalogue validate {}", catalogue.display());
    let said = stage.run(&line).await?.done()?.stderr;
    ensure!(
        said.contains("warning: ") && said.contains("Job erase is left out"),
        "{said}"
    );
    let line = format!("install web --channel {} --yes", catalogue.display());
    let said = stage.run(&line).await?.done()?.stderr;
    only_the_depot(&stage, &said).await?;
    ensure!(
        said.contains("Pod probe is left out: it is a hook of test"),
        "{said}"
    );
    stage.run("uninstall web --yes").await?.done()?;

    let folder = chart(&stage, "1.0.0", "", &[("templates/all.yaml", &text)])?;
    let line = format!("install {} {}", folder.display(), flags(&stage)?);
    let said = stage.run(&line).await?.done()?.stderr;
    only_the_depot(&stage, &said).await?;
    stage.run("uninstall web --yes").await?.done()?;

    let path = stage.write("addons/web.yaml", &text)?;
    let folder = path.parent().context("no folder")?;
    let line = format!("sync {} --all --yes", folder.display());
    let text = text.replace(
        "metadata: {name",
        &format!("metadata: {{namespace: {}, name", stage.namespace),
    );
    stage.write("addons/web.yaml", &text)?;
    let said = stage.run(&line).await?.done()?.stderr;
    let said = said.replace(&format!("{}/", stage.namespace), "");
    only_the_depot(&stage, &said).await
}

#[tokio::test]
async fn n16_an_exported_object_has_no_owner_of_another_cluster() -> Result<()> {
    let stage = Stage::new("n16-export").await?;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  uid: 6dd4cf0c-19a1-4f0e-8b3c-5a4a2b9c7f01\n  \
                resourceVersion: '4711'\n  creationTimestamp: '2026-01-01T00:00:00Z'\n  \
                ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: 6dd4cf0c-19a1-4f0e-8b3c-5a4a2b9c7f02}]\n  \
                finalizers: [example.test/wait]\ndata: {key: '1'}\n---\n\
                apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.test/wait]}\n";
    let index = stage.index("index.yaml", &[("web", "1.0.0", text)])?;
    let said = stage
        .run(&format!("install web --channel {index} --yes"))
        .await?
        .done()?
        .stderr;
    let told = said
        .lines()
        .filter(|line| line.contains("was copied from a cluster"));
    let told: Vec<&str> = told.collect();
    ensure!(
        matches!(told.as_slice(), [one] if one.contains("ownerReferences, finalizers") && one.contains("settings")),
        "{said}"
    );
    let live = stage.must("configmap", "settings").await?;
    let metadata = &live["metadata"];
    ensure!(
        metadata["ownerReferences"].is_null() && metadata["finalizers"].is_null(),
        "{live:#}"
    );
    // A finalizer that the author of a manifest wrote is one of the manifest.
    let held = stage.must("configmap", "held").await?;
    ensure!(
        held["metadata"]["finalizers"][0] == "example.test/wait",
        "{held:#}"
    );
    stage
        .patch(
            "configmap",
            "held",
            &json!({"metadata": {"finalizers": null}}),
        )
        .await
}

const VALUES: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\ndata: {all: {{ .Values | toJson | quote }}}\n";

#[tokio::test]
async fn n17_a_closed_schema_gets_no_template_data() -> Result<()> {
    let stage = Stage::new("n17-closed").await?;
    let closed = json!({"additionalProperties": false, "properties": {"size": {}, "global": {}}});
    for schema in [
        json!({"$defs": {"values": closed}, "$ref": "#/$defs/values"}),
        json!({"allOf": [closed]}),
        json!({"properties": {"size": {}, "global": {}}, "unevaluatedProperties": false}),
        json!({}),
    ] {
        let schema = schema.to_string();
        let files = [
            ("templates/values.yaml", VALUES),
            ("values.yaml", "size: 1\n"),
            ("values.schema.json", schema.as_str()),
        ];
        let folder = chart(&stage, "1.0.0", "", &files)?;
        let line = format!("install {} {}", folder.display(), flags(&stage)?);
        stage.run(&line).await?.done()?;
        let live = stage.must("configmap", "values").await?;
        let values = live["data"]["all"].as_str().unwrap_or_default();
        ensure!(!values.contains("templateData"), "{schema}: {values}");
        stage.run("uninstall web --yes").await?.done()?;
    }
    // Whoever asks for it gets it.
    let asks = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\ndata: {version: {{ .Values.templateData.Cluster.Version | quote }}}\n";
    let files = [
        ("templates/values.yaml", asks),
        ("values.schema.json", "{}"),
    ];
    let folder = chart(&stage, "1.0.0", "", &files)?;
    let line = format!("install {} {}", folder.display(), flags(&stage)?);
    stage.run(&line).await?.done()?;
    let live = stage.must("configmap", "values").await?;
    ensure!(
        live["data"]["version"]
            .as_str()
            .is_some_and(|it| it.starts_with("1.")),
        "{live:#}"
    );
    Ok(())
}

#[tokio::test]
async fn n17_rights_of_a_hook_do_not_stay() -> Result<()> {
    let stage = Stage::new("n17-rights").await?;
    let marks = "helm.sh/hook: post-install, helm.sh/hook-delete-policy: 'before-hook-creation,hook-succeeded'";
    let account = annotated("ServiceAccount", "check", marks);
    let map = config_map("map", "{{ .Chart.Version }}")
        .replace("\"{{ .Chart.Version }}\"", "'{{ .Chart.Version }}'");
    let files = [
        ("templates/account.yaml", account.as_str()),
        ("templates/map.yaml", &map),
    ];
    let folder = chart(&stage, "1.0.0", "", &files)?;
    let install = format!("install {} {}", folder.display(), flags(&stage)?);
    stage.run(&install).await?.done()?;
    ensure!(stage.has("serviceaccount", "check").await?, "it is missing");
    chart(&stage, "1.1.0", "", &[])?;
    let helm = binaries::helm()?;
    let upgrade = format!("upgrade web --helm-bin {} --yes", helm.display());
    stage.run(&upgrade).await?.done()?;
    ensure!(!stage.has("serviceaccount", "check").await?, "it stays");
    stage.run("uninstall web --yes").await?.done()?;

    stage.run(&install).await?.done()?;
    stage.run("uninstall web --yes").await?.done()?;
    ensure!(!stage.has("serviceaccount", "check").await?, "it survives");
    Ok(())
}

#[tokio::test]
async fn n17_an_archive_in_a_chart_may_have_any_name() -> Result<()> {
    let stage = Stage::new("n17-vendored").await?;
    let shelf = Shelf::new()?;
    let part = shelf.chart(
        "part",
        "0.1.0",
        &[("templates/part.yaml", &config_map("part", "1"))],
    )?;
    let more = "dependencies:\n- {name: part, version: 0.1.0, repository: 'https://charts.example.test'}\n";
    let folder = chart(
        &stage,
        "1.0.0",
        more,
        &[("templates/map.yaml", &config_map("map", "1"))],
    )?;
    fs::create_dir_all(folder.join("charts"))?;
    fs::copy(part, folder.join("charts/vendored.tgz"))?;
    let line = format!("install {} {}", folder.display(), flags(&stage)?);
    stage.run(&line).await?.done()?;
    ensure!(
        stage.has("configmap", "part").await?,
        "the dependency is left out"
    );
    Ok(())
}

#[tokio::test]
async fn n18_whole_numbers_stay_whole_numbers() -> Result<()> {
    let stage = Stage::new("n18-numbers").await?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: meter}\ndata:\n  account: '{{ .Values.account }}'\n  \
                    retention: 'retention.ms={{ .Values.retentionMs }}'\n  type: {{ typeOf .Values.account }}\n  \
                    uid: '{{ (index .Values.users 0).uid }}'\n  note: '{{ .Values.note }}'\n";
    let values = "account: 1\nretentionMs: 1000\nusers: []\nnote: ''\n";
    let files = [("templates/meter.yaml", template), ("values.yaml", values)];
    let folder = chart(&stage, "1.0.0", "", &files)?;
    let set = "--set account=123456789012,retentionMs=21600000,users[0].uid=1000620000";
    let line = format!("install {} {set} {}", folder.display(), flags(&stage)?);
    stage.run(&line).await?.done()?;
    let helm = binaries::helm()?;
    let upgrade = format!(
        "upgrade web --set note=x --helm-bin {} --yes",
        helm.display()
    );
    for (line, note) in [(None, ""), (Some(upgrade), "x")] {
        if let Some(line) = line {
            stage.run(&line).await?.done()?;
        }
        let data = stage.must("configmap", "meter").await?["data"].take();
        let expected = json!({"account": "123456789012", "retention": "retention.ms=21600000", "type": "int64",
            "uid": "1000620000", "note": note});
        ensure!(data == expected, "{data:#}");
    }
    Ok(())
}

#[tokio::test]
async fn n18_a_chart_says_which_kubernetes_it_is_for() -> Result<()> {
    let stage = Stage::new("n18-kube").await?;
    let files = [("templates/map.yaml", config_map("map", "1"))];
    let files = files.each_ref().map(|(file, text)| (*file, text.as_str()));
    let folder = chart(&stage, "1.0.0", "kubeVersion: '>=1.25.0'\n", &files)?;
    let (at, helm) = (folder.display(), binaries::helm()?);
    let helm = helm.display();
    for (version, code) in [
        ("v1.24.17-eks-1", 5),
        ("v1.31.2+k3s1", 0),
        ("v1.30.4-eks-a737599", 0),
    ] {
        let line = format!("render web --channel {at} --k8s {version} --helm-bin {helm}");
        let said = stage.run(&line).await?;
        ensure!(said.code == code, "{version}: {said:?}");
    }
    // An entry that names the chart alone does not say it: the chart does, before helm is asked.
    let version = json!({"version": "1.0.0", "template": {"method": "helm"},
        "source": {"url": {"manifest": format!("file://{at}")}}});
    let catalogue = stage.catalogue("bare", &version)?;
    let line = format!(
        "render bare --channel {} --k8s v1.24.17 --helm-bin {helm}",
        catalogue.display()
    );
    let said = stage.run(&line).await?.ended(5)?.stderr;
    ensure!(
        said.contains("kubeVersion >=1.25.0 does not match 1.24.17"),
        "{said}"
    );
    let line = format!("search web --channel {at} --k8s 1.24.17 -o wide");
    let said = stage.run(&line).await?;
    ensure!(!said.stdout.contains("yes"), "{said:?}");
    let said = stage
        .run(&format!("catalogue create platform --from {at}"))
        .await?
        .done()?
        .stdout;
    ensure!(said.contains("k8sVersion: \">=1.25.0\""), "{said}");
    Ok(())
}

#[tokio::test]
async fn n18_images_in_configuration_are_named() -> Result<()> {
    let stage = Stage::new("n18-images").await?;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-deployment}\ndata:\n  _example: 'image: gcr.example.org/old:1'\n  \
                queue-sidecar-image: gcr.example.org/queue:1.0\n---\n\
                apiVersion: v1\nkind: Secret\nmetadata: {name: token}\nstringData: {template: 'image: gcr.example.org/hidden:1'}\n---\n\
                apiVersion: caching.internal.knative.dev/v1alpha1\nkind: Image\nmetadata: {name: queue}\nspec: {image: 'gcr.example.org/queue:1.0'}\n";
    let index = stage.index("index.yaml", &[("serving", "1.0.0", text)])?;
    let said = stage
        .run(&format!("images serving --channel {index} --k8s 1.36.3"))
        .await?
        .done()?;
    ensure!(
        said.stdout.contains("gcr.example.org/queue:1.0"),
        "{said:?}"
    );
    ensure!(
        said.stderr.contains(
            "ConfigMap config-deployment: data.queue-sidecar-image names gcr.example.org/queue:1.0"
        ),
        "{said:?}"
    );
    let line = format!(
        "render serving --channel {index} --k8s 1.36.3 --registry mirror.example.org/addons"
    );
    let said = stage.run(&line).await?.done()?;
    ensure!(
        said.stdout.contains("image: mirror.example.org/addons/")
            || said.stdout.contains("image: 'mirror"),
        "{}",
        said.stdout
    );
    for named in [
        "ConfigMap config-deployment: data.queue-sidecar-image names gcr.example.org/queue:1.0, which is not rewritten",
        "Secret token: stringData.template names an image, which is not rewritten",
    ] {
        ensure!(said.stderr.contains(named), "{named}: {}", said.stderr);
    }
    ensure!(
        !said.stderr.contains("hidden") && !said.stderr.contains("old:1"),
        "{}",
        said.stderr
    );
    Ok(())
}

#[tokio::test]
async fn n18_a_value_that_a_chart_does_not_have_is_named() -> Result<()> {
    let stage = Stage::new("n18-unknown").await?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {replicas: '{{ .Values.replicaCount }}', zone: '{{ .Values.zone }}'}\n";
    let files = [
        ("templates/map.yaml", template),
        ("values.yaml", "replicaCount: 1\n"),
    ];
    let folder = chart(&stage, "1.0.0", "", &files)?;
    let set = "--set replicaCont=3,zone=a,global.x=1";
    let line = format!("install {} {set} {}", folder.display(), flags(&stage)?);
    let said = stage.run(&line).await?.done()?.stderr;
    let told = "value replicaCont: chart web has no such value; did you mean replicaCount?";
    ensure!(said.contains(told), "{said}");
    ensure!(
        !said.contains("value zone") && !said.contains("value global"),
        "{said}"
    );
    let live: Value = stage.must("configmap", "map").await?;
    ensure!(live["data"]["replicas"] == "1", "{live:#}");
    Ok(())
}

/// The definition of a user's own kind `Jar`.
fn jars(group: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: jars.{group}}}\nspec:\n  group: {group}\n  \
         scope: Namespaced\n  names: {{kind: Jar, plural: jars, singular: jar}}\n  versions:\n  - name: v1\n    served: true\n    \
         storage: true\n    schema: {{openAPIV3Schema: {{type: object}}}}\n"
    )
}

#[tokio::test]
async fn n17_the_definitions_of_a_chart_are_shared() -> Result<()> {
    let stage = Stage::new("n17-crds").await?;
    let group = format!("{}.example.test", stage.namespace);
    let definition = jars(&group);
    let map = config_map("of-release", "1").replace("of-release", "'{{ .Release.Name }}'");
    let files = [
        ("crds/jars.yaml", definition.as_str()),
        ("templates/map.yaml", &map),
    ];
    let folder = chart(&stage, "1.0.0", "", &files)?;
    let (at, flags) = (folder.display(), flags(&stage)?);
    stage
        .run(&format!("install {at} --name one {flags}"))
        .await?
        .done()?;
    let said = stage
        .run(&format!("install {at} --name two {flags}"))
        .await?
        .done()?
        .stderr;
    ensure!(
        said.contains(&format!("jars.{group} is of add-on installation"))
            && said.contains("and shared"),
        "{said}"
    );
    stage
        .run(&format!(
            "upgrade two {}",
            flags.replace(&format!("--target-namespace {} ", stage.namespace), "")
        ))
        .await?
        .done()?;
    stage
        .run("uninstall two --delete-crds --yes")
        .await?
        .done()?;
    ensure!(
        stage
            .has("customresourcedefinition", &format!("jars.{group}"))
            .await?,
        "the other one lost its definition"
    );
    stage
        .run("uninstall one --delete-crds --yes")
        .await?
        .done()?;
    ensure!(
        !stage
            .has("customresourcedefinition", &format!("jars.{group}"))
            .await?,
        "it stays"
    );
    Ok(())
}

#[tokio::test]
async fn n17_the_definitions_of_a_chart_are_left_out_on_demand() -> Result<()> {
    let stage = Stage::new("n17-skip").await?;
    let group = format!("{}.example.test", stage.namespace);
    let (definition, name) = (jars(&group), format!("jars.{group}"));
    let map = config_map("map", "1");
    let files = [
        ("crds/jars.yaml", definition.as_str()),
        ("templates/map.yaml", &map),
    ];
    let folder = chart(&stage, "1.0.0", "", &files)?;
    let (at, flags, helm) = (folder.display(), flags(&stage)?, binaries::helm()?);
    let helm = format!("--helm-bin {}", helm.display());
    for (flag, is_there) in [("", true), ("--skip-crds", false)] {
        let line = format!("render web --channel {at} --k8s 1.36.3 {flag} {helm}");
        let said = stage.run(&line).await?.done()?.stdout;
        ensure!(
            said.contains(&name) == is_there && said.contains("name: map"),
            "{flag}: {said}"
        );
    }
    let is_defined = || stage.has("customresourcedefinition", &name);
    stage
        .run(&format!("install {at} --skip-crds {flags}"))
        .await?
        .done()?;
    ensure!(!is_defined().await?, "it is installed");
    // The installation remembers it.
    chart(&stage, "1.1.0", "", &[])?;
    let upgrade = format!("upgrade web {helm} --yes");
    stage.run(&upgrade).await?.done()?;
    ensure!(!is_defined().await?, "the upgrade forgets it");
    let record = stage.record("web").await?;
    ensure!(
        record["spec"]["skipCRDs"] == true && record["status"]["installed"]["version"] == "1.1.0",
        "{record:#}"
    );
    let said = stage
        .run(&format!("diff web --skip-crds=false {helm}"))
        .await?
        .ended(1)?
        .stdout;
    ensure!(said.contains(&name), "{said}");
    stage
        .run(&format!("{upgrade} --skip-crds=false"))
        .await?
        .done()?;
    ensure!(is_defined().await?, "it is left out");
    // A definition that is there is not deleted for that.
    stage.run(&format!("{upgrade} --skip-crds")).await?.done()?;
    ensure!(is_defined().await?, "it is deleted");
    let said = stage.run("upgrade --skip-crds --yes").await?.ended(2)?;
    ensure!(
        said.stderr
            .contains("--skip-crds is kept in an installation"),
        "{said:?}"
    );
    stage
        .run("uninstall web --delete-crds --yes")
        .await?
        .done()?;
    ensure!(!is_defined().await?, "it stays");

    for mode in ["objects", "release"] {
        let version = json!({"version": "1.1.0", "source": {"url": {"manifest": format!("file://{at}")}},
            "template": {"method": "helm", "helm": {"mode": mode, "skipCRDs": true}}});
        let catalogue = stage.catalogue("web", &version)?;
        let line = format!("install web --channel {} {flags}", catalogue.display());
        stage.run(&line).await?.done()?;
        ensure!(stage.has("configmap", "map").await?, "{mode}");
        ensure!(!is_defined().await?, "{mode}: it is installed");
        stage
            .run(&format!("uninstall web {helm} --yes"))
            .await?
            .done()?;
    }
    Ok(())
}
