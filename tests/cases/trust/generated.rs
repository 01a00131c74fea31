//! What a chart makes at random: the password of a database that has it already.

use std::path::PathBuf;

use addons_tests::control_plane::binaries;
use addons_tests::servers::charts::shelf::Shelf;
use addons_tests::stage::Stage;
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// A chart that does not look whether there is a password already.
const SECRET: &str = "{{- $password := randAlphaNum 20 }}\n\
    {{- $cert := genSelfSignedCert \"db\" nil nil 365 }}\n\
    apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {user: me, password: {{ $password | quote }}}\n\
    data: {tls.crt: {{ $cert.Cert | b64enc }}, tls.key: {{ $cert.Key | b64enc }}}\n---\n\
    apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {sum: {{ sha256sum $password }}}}\n\
    data: {version: {{ .Chart.Version | quote }}}\n";

/// The add-on in four versions, as a file.
fn catalogue(stage: &Stage) -> Result<PathBuf> {
    let name = stage.namespace.as_str();
    let shelf = Shelf::new()?;
    let mut versions = Vec::new();
    for version in ["1.0.0", "1.1.0", "1.2.0", "1.3.0"] {
        let archive = shelf.chart("web", version, &[("templates/db.yaml", SECRET)])?;
        let file = stage.plugin.home().join(format!("web-{version}.tgz"));
        std::fs::copy(&archive, &file)?;
        versions.push(
            json!({"version": version, "defaultNamespace": name, "template": {"method": "helm"},
            "source": {"url": {"manifest": file}}}),
        );
    }
    let catalogue = json!({"apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonCatalogue", "metadata": {"name": name},
        "spec": {"addons": [{"name": name, "versions": versions}]}});
    stage.write("catalogue.json", &catalogue.to_string())
}

/// trust 8.
#[tokio::test]
async fn t08_generated_credentials_do_not_rotate_by_themselves() -> Result<()> {
    let stage = Stage::new("generated").await?;
    let name = stage.namespace.as_str();
    let file = catalogue(&stage)?;
    let flags = format!("--helm-bin {} --yes", binaries::helm()?.display());
    let line = format!("install {name}@1.0.0 --channel {} {flags}", file.display());
    // Else the plan would install them, and another test may be faster.
    stage.run("init").await?.done()?;
    // A plan file can be applied, although its ConfigMap gets another checksum.
    let plan = line
        .replace("install", "plan")
        .replace("--yes", "-o plan.json");
    let said = stage.run(&plan).await?.done()?.stderr;
    ensure!(
        said.contains("generated values, which upgrades keep"),
        "{said}"
    );
    let apply = format!("apply plan.json {flags}");
    stage.run(&apply).await?.done()?;
    let seen = async || -> Result<(Value, Value, Value)> {
        let secret = stage.must("secret", "db").await?;
        let map = stage.must("configmap", "web").await?;
        let sum = &map["metadata"]["annotations"]["sum"];
        Ok((
            secret["data"].clone(),
            sum.clone(),
            map["data"]["version"].clone(),
        ))
    };
    let first = seen().await?;

    let helm = format!("--helm-bin {}", binaries::helm()?.display());
    let plan = stage
        .run(&format!("plan {name}@1.1.0 -o plan.json {helm}"))
        .await?
        .done()?;
    ensure!(
        plan.stderr.contains("generated values stay as they are"),
        "{}",
        plan.stderr
    );
    stage
        .run(&format!("apply plan.json {flags}"))
        .await?
        .done()?;
    let second = seen().await?;
    ensure!(
        (&second.0, &second.1) == (&first.0, &first.1),
        "{first:?} {second:?}"
    );
    ensure!(second.2 == "1.1.0", "{second:?}");

    let said = stage
        .run(&format!("upgrade {name}@1.2.0 {flags}"))
        .await?
        .done()?
        .stderr;
    ensure!(said.contains("generated values stay as they are"), "{said}");
    let third = seen().await?;
    ensure!(
        (&third.0, &third.1) == (&first.0, &first.1),
        "{first:?} {third:?}"
    );

    // One of them is gone: a new checksum beside the old password would be wrong, so all of them are new.
    let key = json!({"data": {"tls.key": null}});
    stage.patch("secret", "db", &key).await?;
    let said = stage
        .run(&format!("upgrade {name}@1.3.0 {flags}"))
        .await?
        .done()?
        .stderr;
    ensure!(
        said.contains("generated values are replaced by new ones"),
        "{said}"
    );
    let last = seen().await?;
    ensure!(last.1 != first.1, "{last:?}");
    differ(&first.0, &last.0)
}

fn differ(first: &Value, last: &Value) -> Result<()> {
    for key in ["password", "tls.key", "tls.crt"] {
        last.get(key).with_context(|| format!("{key} is gone"))?;
        ensure!(last[key] != first[key], "{key} stayed");
    }
    Ok(())
}
