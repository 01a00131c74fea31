//! The order that follows from the objects themselves: random add-ons, whose edges are found here by looking at any two
//! objects, and nothing else.

mod set;

use addons_tests::chaos::rig::Rig;
use addons_tests::chaos::seed;
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::manifest;
use super::sent::Sent;
use set::Set;

/// All that run with `FULL=1`.
const SETS: usize = 60;
const FEW: usize = 3;

#[tokio::test]
async fn random_add_ons_are_applied_in_the_order_of_their_references() -> Result<()> {
    let name = "ordering::implied";
    let mut tally = Tally::new(name);
    let mut edges = 0;
    for number in seed::choose((0..SETS).collect(), FEW, name) {
        let played = play(number).await;
        edges += played.with_context(|| format!("set {number}"))?;
        tally.ran();
    }
    ensure!(edges > 0, "no set had an edge");
    tally.note(format!("{edges} orders between two objects kept"));
    Ok(())
}

/// Installs one random set; how many edges it has.
async fn play(number: usize) -> Result<usize> {
    let rig = Rig::new("implied").await?;
    let (stage, namespace) = (&rig.stage, rig.stage.namespace.as_str());
    let set = Set::random(number, namespace)?;
    let manifests = set.addons.map(|objects| manifest(&objects));
    let [one, two] = &manifests;
    let index = [("one", "1.0.0", one.as_str()), ("two", "1.0.0", two)];
    let index = stage.index("index.yaml", &index)?;
    let line = format!("install one two --channel {index} --yes --timeout 120s");
    let said = rig.run(&line).await?.done();
    let said = said.with_context(|| manifests.concat())?.stderr;
    let sent = Sent::after(&rig, 0);
    let objects: Vec<&Value> = set.objects.iter().collect();
    ensure!(
        sent.objects().len() == objects.len(),
        "{} objects, but {:?}\n{said}",
        objects.len(),
        sent.objects()
    );
    let mut edges = 0;
    for second in &objects {
        for first in objects.iter().filter(|first| needs(second, first)) {
            sent.ensure(&path(first, namespace), &path(second, namespace))
                .with_context(|| manifests.concat())?;
            edges += 1;
        }
    }
    let line = format!("uninstall one two -n {namespace} --yes --delete-crds");
    stage.run(&line).await?.done()?;
    Ok(edges)
}

/// Whether an object needs another one to be there.
fn needs(object: &Value, other: &Value) -> bool {
    let text = |of: &Value, pointer: &str| {
        let text = of.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let name = text(other, "/metadata/name");
    let together = object["metadata"]["namespace"] == other["metadata"]["namespace"];
    let is = |pointer: &str| text(object, pointer) == name;
    let any = |list: &Value, pointer: &str| {
        let mut items = list.as_array().into_iter().flatten();
        items.any(|item| text(item, pointer) == name)
    };
    let pods = &object["spec"]["template"]["spec"];
    let pair = [other, object].map(|of| text(of, "/kind"));
    match pair.each_ref().map(String::as_str) {
        ["Namespace", _] => is("/metadata/namespace"),
        ["CustomResourceDefinition", kind] => {
            let group = text(other, "/spec/group");
            kind == other["spec"]["names"]["kind"]
                && text(object, "/apiVersion") == format!("{group}/v1")
        }
        ["ServiceAccount", "Deployment"] => {
            together && is("/spec/template/spec/serviceAccountName")
        }
        ["ConfigMap", "Deployment"] => together && any(&pods["volumes"], "/configMap/name"),
        ["Secret", "Deployment"] => together && any(&pods["volumes"], "/secret/secretName"),
        ["Role", "RoleBinding"] => together && is("/roleRef/name"),
        // Pods run with the rights of their account.
        ["RoleBinding", "Deployment"] => {
            let account = &pods["serviceAccountName"];
            let mut subjects = other["subjects"].as_array().into_iter().flatten();
            subjects.any(|subject| {
                subject["name"] == *account
                    && subject["namespace"] == object["metadata"]["namespace"]
            })
        }
        ["Service", "ValidatingWebhookConfiguration"] => {
            let service = &object["webhooks"][0]["clientConfig"]["service"];
            service["name"] == *name && service["namespace"] == other["metadata"]["namespace"]
        }
        // Service and pods have one name here.
        ["Deployment", "ValidatingWebhookConfiguration"] => {
            let service = &object["webhooks"][0]["clientConfig"]["service"];
            service["name"] == other["spec"]["template"]["metadata"]["labels"]["app"]
                && service["namespace"] == other["metadata"]["namespace"]
        }
        _ => false,
    }
}

/// The object as [`Sent`] names it.
fn path(object: &Value, home: &str) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{}s/{name}", kind.to_lowercase());
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) if namespace != home => format!("{namespace}/{path}"),
        _ => path,
    }
}
