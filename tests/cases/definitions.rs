//! The committed definitions on a real API server: what they take, and what they refuse before any webhook is asked.

use addons_tests::control_plane::{ControlPlane, unique};
use addons_tests::plugin::Plugin;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::names;
use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/crds");

/// A user of a cluster that has the committed definitions.
async fn user() -> Result<(Plugin, String)> {
    let cluster = ControlPlane::shared().await?;
    let user = Plugin::admin(&cluster)?;
    let apply = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--validate=strict",
        "-k",
        FOLDER,
    ];
    let said = user.kubectl(&apply).await?.done()?;
    // The API server warns of formats and rules that it does not take for granted.
    ensure!(
        !said.stderr.contains("Warning: unrecognized"),
        "{}",
        said.stderr
    );
    let names = [
        "crd/addoncatalogues.kubectl-addons.dev",
        "crd/addoninstallations.kubectl-addons.dev",
    ];
    let wait = [
        "wait",
        "--for=condition=Established",
        "--timeout=30s",
        names[0],
        names[1],
    ];
    user.kubectl(&wait).await?.done()?;
    let namespace = cluster.namespace("definitions").await?;
    Ok((user, namespace))
}

fn object(kind: &str, name: &str, namespace: &str, spec: Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    })
}

fn versions(versions: Value) -> Value {
    json!({"addons": [{"name": "web", "versions": versions}]})
}

#[tokio::test]
async fn catalogues() -> Result<()> {
    let mut tally = Tally::new("definitions::catalogues");
    let (user, namespace) = user().await?;
    for (spec, words) in catalogue_cases() {
        let name = unique("case");
        let text = object("AddonCatalogue", &name, &namespace, spec).to_string();
        let args = ["create", "--validate=strict", "-f", "-"];
        let said = user.kubectl_with_input(&args, &text).await?;
        ensure!(
            (said.code == 0) == words.is_empty(),
            "{text}\n{}",
            said.stderr
        );
        ensure!(said.stderr.contains(words), "{text}\n{}", said.stderr);
        tally.ran();
    }
    Ok(())
}

/// Specs, and the words of the refusal; none = taken.
fn catalogue_cases() -> Vec<(Value, &'static str)> {
    let url = json!({"url": {"manifest": "a.yaml"}});
    let one = |fields: Value| {
        let mut version = json!({"version": "1.0.0", "source": url});
        if let (Some(version), Value::Object(fields)) = (version.as_object_mut(), fields) {
            version.extend(fields);
        }
        versions(json!([version]))
    };
    vec![
        (one(json!({})), ""),
        (
            one(json!({"source": {"git": null, "url": {"manifest": "a.yaml"}}, "selector": null})),
            "",
        ),
        (
            versions(
                json!([{"version": "1.0.0", "source": url}, {"version": "1.0.0", "id": "x", "source": url}]),
            ),
            "",
        ),
        // semantics 2: an exact duplicate is the API server's own 422.
        (
            versions(
                json!([{"version": "1.0.0", "source": url}, {"version": "1.0.0", "source": url}]),
            ),
            "Duplicate value: {\"id\":\"\",\"version\":\"1.0.0\"}",
        ),
        (
            json!({"addons": [{"name": "a", "versions": []}, {"name": "a", "versions": []}]}),
            "Duplicate value",
        ),
        (
            json!({"class": "Mine"}),
            "supported values: \"Custom\", \"Core\"",
        ),
        (
            json!({"addons": [{"name": "A_b", "versions": []}]}),
            "should match",
        ),
        (one(json!({"defaultNamespace": "a.b"})), "should match"),
        (one(json!({"version": "v".repeat(129)})), "128"),
        // semantics 11: a sha256, a sha1, and an md5 of a kops index.
        (one(json!({"manifestHash": "0aF9".repeat(16)})), ""),
        (one(json!({"manifestHash": "0aF9".repeat(10)})), ""),
        (one(json!({"manifestHash": "0aF9".repeat(8)})), ""),
        (one(json!({"manifestHash": ""})), ""),
        (
            one(json!({"manifestHash": "0aF9".repeat(9)})),
            "should match",
        ),
        (
            versions(json!([{"source": url}])),
            "a version needs a version, an id or a manifestHash",
        ),
        (
            one(json!({"source": {"helm": {"url": "https://a", "chart": "b"}}})),
            "source.helm requires template.method helm",
        ),
        (
            one(json!({"source": {"inline": {"manifest": ""}}, "template": {"method": "helm"}})),
            "a chart cannot be written inline",
        ),
        (
            one(json!({"template": {"helm": {"releaseName": "a"}}})),
            "helm can only be set with method helm",
        ),
        (
            one(
                json!({"source": {"git": {"remote": "https://a", "ref": {"branch": "main", "tag": "v1"}}}}),
            ),
            "source.git.ref",
        ),
        (
            one(json!({"constraint": {}})),
            "unknown field \"spec.addons[0].versions[0].constraint\"",
        ),
    ]
}

#[tokio::test]
async fn installations() -> Result<()> {
    let mut tally = Tally::new("definitions::installations");
    let (user, namespace) = user().await?;
    let spec = json!({"addonRef": {"name": "web", "catalogue": "a"}, "targetNamespace": "shop", "coreAddon": true});
    let text = object("AddonInstallation", "web", &namespace, spec).to_string();
    user.kubectl_with_input(&["create", "-f", "-"], &text)
        .await?
        .done()?;
    // semantics 8: neither by another value nor by taking the field out, and so never by two steps.
    for (patch, words) in patches() {
        let patch = patch.to_string();
        let args = [
            "patch",
            "addoninstallation",
            "web",
            "-n",
            &namespace,
            "--type=json",
            "-p",
            &patch,
        ];
        let said = user.kubectl(&args).await?;
        ensure!(
            (said.code == 0) == words.is_empty(),
            "{patch}\n{}",
            said.stderr
        );
        ensure!(said.stderr.contains(words), "{patch}\n{}", said.stderr);
        tally.ran();
    }
    let get = [
        "get",
        "ainst",
        "web",
        "-n",
        &namespace,
        "-o",
        "jsonpath={.spec}",
    ];
    let spec: Value = serde_json::from_str(&user.kubectl(&get).await?.done()?.stdout)?;
    for (field, value) in [
        ("targetNamespace", json!("shop")),
        ("coreAddon", json!(true)),
        // Defaults, and free-form values as they were.
        ("createNamespace", json!(true)),
        ("reconcile", json!("Once")),
        ("conflicts", json!("Take")),
        ("deletionPolicy", json!("Delete")),
        ("values", json!({"a": [1, {"b": null}]})),
    ] {
        let found = spec.get(field).with_context(|| format!("no {field}"))?;
        ensure!(*found == value, "{field}: {found}");
    }
    Ok(())
}

/// JSON patches of an installation, and the words of the refusal; none = taken.
fn patches() -> Vec<(Value, &'static str)> {
    let target = "targetNamespace is immutable";
    let core = "coreAddon never goes back";
    vec![
        (
            json!([{"op": "replace", "path": "/spec/targetNamespace", "value": "other"}]),
            target,
        ),
        (
            json!([{"op": "remove", "path": "/spec/targetNamespace"}]),
            target,
        ),
        (
            json!([{"op": "replace", "path": "/spec/targetNamespace", "value": null}]),
            target,
        ),
        (
            json!([{"op": "replace", "path": "/spec/coreAddon", "value": false}]),
            core,
        ),
        (json!([{"op": "remove", "path": "/spec/coreAddon"}]), core),
        (
            json!([{"op": "remove", "path": "/spec"}]),
            "spec: Required value",
        ),
        (
            json!([{"op": "replace", "path": "/spec", "value": {"addonRef": {"name": "web"}}}]),
            target,
        ),
        (
            json!([{"op": "replace", "path": "/spec/addonRef/name", "value": "db"}]),
            "addonRef.name is immutable",
        ),
        (
            json!([{"op": "add", "path": "/spec/addonRef/index", "value": "b"}]),
            "at most one of catalogue, index, directory and from",
        ),
        (
            json!([{"op": "add", "path": "/spec/reconcile", "value": "Always"}]),
            "supported values: \"Once\", \"Ensure\"",
        ),
        (
            json!([{"op": "add", "path": "/spec/addonRef/version", "value": "1.1.0"}]),
            "",
        ),
        (
            json!([{"op": "add", "path": "/spec/suspend", "value": true}]),
            "",
        ),
        (
            json!([{"op": "add", "path": "/spec/values", "value": {"a": [1, {"b": null}]}}]),
            "",
        ),
    ]
}
