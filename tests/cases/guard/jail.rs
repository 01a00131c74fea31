//! What others wrote takes nothing from the process that reconciles every installation: it is rendered elsewhere, helm is led nowhere, and
//! what killed the process is not tried for ever (semantics 20).

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use addons_helm::template::{TIMEOUT, TemplateRequest, template};
use addons_helm::{Helm, HelmError};
use addons_render::package::{Package, PackagedFile};
use addons_tests::guard::Folder;
use addons_tests::running::Running;
use addons_tests::stage::{Stage, config_map};
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::values::mask::SecretMask;
use serde_json::{Value, json};

use super::is_there;

/// A user of a cluster that no other test uses.
async fn alone(what: &str) -> Result<Stage> {
    let stage = Stage::alone(what).await?;
    stage.run("init").await?.done()?;
    Ok(stage)
}

/// Writes an AddonInstallation.
async fn wish(stage: &Stage, name: &str, reference: &Value) -> Result<()> {
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
        "metadata": {"name": name, "namespace": stage.namespace}, "spec": {"addonRef": reference},
    });
    stage.apply(&record.to_string()).await
}

/// Until this attempt to plan `web` is under way.
async fn is_attempted(stage: &Stage, number: u32, process: &Running) -> Result<()> {
    until(&format!("attempt {number} is marked"), async || {
        let attempt = stage.record("web").await?["status"]["attempt"].clone();
        let is_marked = attempt["number"] == number;
        Ok(is_marked
            .then_some(())
            .ok_or_else(|| format!("{attempt}\n{}", process.said())))
    })
    .await
}

/// A process that ends in good order leaves nothing; one that is killed leaves its mark, and after two of them the loop goes on without
/// the installation.
#[tokio::test]
async fn g12_what_killed_the_process_twice_is_stalled() -> Result<()> {
    let stage = alone("killed").await?;
    // It takes connections, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
    let index = format!("http://{}/index.yaml", silent.local_addr()?);
    wish(&stage, "web", &json!({"name": "web", "index": index})).await?;
    let mut process = Running::reconcile(&stage, &["--interval", "1h"])?;
    is_attempted(&stage, 1, &process).await?;
    process.ends(0)?;
    let status = stage.record("web").await?["status"].clone();
    ensure!(status["attempt"].is_null(), "{status}");

    for number in 1..=2 {
        // It is killed when it is dropped.
        let process = Running::reconcile(&stage, &["--interval", "1h"])?;
        is_attempted(&stage, number, &process).await?;
    }
    let process = Running::reconcile(&stage, &["--interval", "1h"])?;
    let stalled = stage.condition("web", "Stalled").await?;
    ensure!(
        stalled["reason"] == "ProcessKilled",
        "{stalled} {}",
        process.said()
    );

    let entries = [
        ("web", "1.0.0", &*config_map("web", "1")),
        ("map", "1.0.0", &*config_map("map", "1")),
    ];
    let index = stage.index("index.yaml", &entries)?;
    wish(&stage, "map", &json!({"name": "map", "index": index})).await?;
    is_there(&stage, &process, "map").await?;
    let status = stage.record("web").await?["status"].clone();
    ensure!(status["attempt"]["number"] == 2, "{status}");
    // Another wish is another attempt.
    let fix = json!({"spec": {"addonRef": {"index": index}}});
    stage.patch("addoninstallation", "web", &fix).await?;
    is_there(&stage, &process, "web").await?;
    let ready = stage.condition("web", "Ready").await?;
    let status = stage.record("web").await?["status"].clone();
    ensure!(status["attempt"].is_null(), "{ready} {status}");
    Ok(())
}

/// A person tries it in a process of their own, whatever happened before.
#[tokio::test]
async fn g12_a_person_tries_what_the_loop_does_not() -> Result<()> {
    let stage = alone("tried").await?;
    let entries = [("web", "1.0.0", &*config_map("web", "1"))];
    let index = stage.index("index.yaml", &entries)?;
    wish(&stage, "web", &json!({"name": "web", "index": index})).await?;
    let attempt = json!({
        "generation": 1, "number": 2, "process": "dead", "startedAt": "2026-01-01T00:00:00Z",
    });
    let mark = json!({"conditions": [], "attempt": attempt});
    stage
        .patch_status("addoninstallation", "web", &mark)
        .await?;
    let said = stage.run("reconcile").await?;
    ensure!(said.code == 1, "{}", said.stderr);
    ensure!(
        said.stderr.contains("was killed during 2 attempts"),
        "{}",
        said.stderr
    );
    ensure!(!stage.has("configmap", "web").await?, "it was installed");
    let upgrade = format!("upgrade web -n {} --yes", stage.namespace);
    ensure!(
        said.stderr.contains("kubectl addons upgrade web"),
        "{}",
        said.stderr
    );
    stage.run(&upgrade).await?.done()?;
    let record = stage.record("web").await?;
    ensure!(record["status"]["attempt"].is_null(), "{record}");
    ensure!(stage.has("configmap", "web").await?, "{record}");
    Ok(())
}

/// A few bytes of a template are as much memory as they like: that of a process of their own.
#[tokio::test]
async fn g12_what_a_package_renders_to_takes_no_memory_of_the_loop() -> Result<()> {
    let stage = alone("bomb").await?;
    // Each text is smaller than what a template may make; together they are not.
    let texts = (0..10).map(|n| format!("{{{{ $t{n} := print $a {n} }}}}"));
    let texts: String = texts.collect();
    let bomb = format!(
        "{{{{ $a := repeat 50000000 \"a\" }}}}{texts}apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bomb}}\ndata: {{key: '{{{{ len $t9 }}}}'}}\n"
    );
    let addon = |name: &str, method: &str, manifest: &str| {
        json!({"name": name, "versions": [{
            "version": "1.0.0", "defaultNamespace": stage.namespace, "template": {"method": method},
            "source": {"inline": {"manifest": manifest}},
        }]})
    };
    let template = config_map("templated", "{{ add 1 2 }}");
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue",
        "metadata": {"name": "all", "namespace": stage.namespace},
        "spec": {"addons": [
            addon("bomb", "go-template", &bomb),
            addon("templated", "go-template", &template),
            addon("plain", "manifest", &config_map("plain", "1")),
        ]},
    });
    stage.apply(&catalogue.to_string()).await?;
    let process = Running::reconcile(&stage, &["--interval", "1h"])?;
    process.says("leads").await?;
    let names = ["bomb", "templated", "plain"];
    for name in names {
        wish(&stage, name, &json!({"name": name, "catalogue": "all"})).await?;
    }
    let stalled = stage.condition("bomb", "Stalled").await?;
    ensure!(stalled["reason"] == "TooLarge", "{stalled}");
    let message = stalled["message"].as_str().context("no message")?;
    ensure!(message.contains("more than 384 MiB of memory"), "{message}");
    for name in ["templated", "plain"] {
        is_there(&stage, &process, name).await?;
    }
    let templated = stage.must("configmap", "templated").await?;
    ensure!(templated["data"]["key"] == "3", "{templated}");
    let said = process.said();
    ensure!(said.matches("leads: ").count() == 1, "{said}");
    Ok(())
}

/// A program in the place of helm.
fn program(folder: &Folder, text: &str) -> Result<Helm> {
    let program: PathBuf = folder.path().join("helm");
    std::fs::write(&program, format!("#!/bin/sh\n{text}\n"))?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(Helm {
        program,
        version: "v4.3.1".to_owned(),
        memory: Some(64 << 20),
    })
}

/// What becomes of a chart with this schema of values, in a folder of its charts.
async fn rendered(helm: &Helm, schema: &str) -> Result<String, HelmError> {
    let file = |path: &str, text: &str| PackagedFile {
        path: path.to_owned(),
        bytes: text.as_bytes().to_vec(),
    };
    let files = vec![
        file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        file("charts/inner/values.schema.json", schema),
    ];
    let package = Package::from_folder(files).map_err(HelmError::Package)?;
    let (values, mask) = (json!({}), SecretMask::default());
    let request = TemplateRequest {
        release_name: "web",
        namespace: "shop",
        values: &values,
        whole_numbers: &[],
        mask: &mask,
        kube_version: "v1.36.3",
        api_versions: &[],
        is_upgrade: false,
        include_crds: true,
        timeout: TIMEOUT,
        lookup: None,
    };
    template(helm, &package, &request).await
}

/// Helm reads every file and every address that a schema names.
#[tokio::test]
async fn g12_a_schema_leads_helm_nowhere() -> Result<()> {
    let folder = Folder::new("addons-jail-")?;
    let helm = program(&folder, "echo 'kind: List'")?;
    let own = r##"{"$ref": "#/definitions/a", "definitions": {"a": {}}}"##;
    ensure!(rendered(&helm, own).await? == "kind: List\n");
    for target in [
        "http://169.254.169.254/latest/",
        "file:///etc/passwd",
        "other.json",
    ] {
        let schema = json!({"properties": {"a": {"$ref": target}}}).to_string();
        let error = rendered(&helm, &schema).await.err();
        let error = error.map(|error| error.to_string()).unwrap_or_default();
        let expected = format!("charts/inner/values.schema.json: $ref {target:?} leaves the chart");
        ensure!(error.contains(&expected), "{error}");
    }
    Ok(())
}

/// Helm has no network to render a chart, and the memory that is given to it.
#[tokio::test]
async fn g12_helm_has_bounds_of_its_own() -> Result<()> {
    let folder = Folder::new("addons-jail-")?;
    let said = async |text: &str| {
        let helm = program(&folder, text)?;
        let error = rendered(&helm, "{}").await.err();
        Ok::<_, anyhow::Error>(error.map(|error| error.to_string()).unwrap_or_default())
    };
    let proxies =
        said("echo \"Error: $HTTP_PROXY $HTTPS_PROXY ${NO_PROXY-none}\" >&2; exit 1").await?;
    let nowhere = "http://127.0.0.1:9";
    ensure!(
        proxies == format!("helm template: {nowhere} {nowhere} none"),
        "{proxies}"
    );
    // It is limited before it gets its values.
    let limit =
        said("cat >/dev/null; echo \"Error: $(ulimit -d) $GOMEMLIMIT\" >&2; exit 1").await?;
    ensure!(
        limit == format!("helm template: {} {}", 64 << 10, 48 << 20),
        "{limit}"
    );
    let words = "runtime: cannot allocate memory";
    let full = said(&format!("echo 'fatal error: {words}' >&2; exit 2")).await?;
    ensure!(full.contains("needs more than 64 MiB of memory"), "{full}");
    Ok(())
}
