//! What was filled in follows the catalogue, under what the user and the Secrets say (semantics 10).

use std::sync::Arc;

use addons_admission::{AdmissionFacts, Requester, mutate, validate};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::values::layers::{LayerValues, Layers};
use serde_json::{Value, json};

fn catalogue(values: Value, template: Value) -> Result<AddonCatalogue> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1",
        "kind": "AddonCatalogue",
        "metadata": {"name": "platform", "namespace": "kubectl-addons"},
        "spec": {"addons": [{"name": "web", "versions": [{
            "version": "1.0.0",
            "source": {"inline": {"manifest": ""}},
            "values": values,
            "template": template,
        }]}]},
    }))?)
}

fn facts(catalogue: AddonCatalogue) -> AdmissionFacts {
    AdmissionFacts {
        catalogues: vec![Arc::new(catalogue.into())],
        ..AdmissionFacts::default()
    }
}

/// The object after `/mutate`.
fn filled(mut object: Value, facts: &AdmissionFacts) -> Result<Value> {
    let patch = mutate::defaults(&object, None, facts).patch;
    json_patch::patch(&mut object, &patch)?;
    Ok(object)
}

fn installation(values: Value) -> Value {
    json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1",
        "kind": "AddonInstallation",
        "metadata": {"name": "web", "namespace": "kubectl-addons"},
        "spec": {"addonRef": {"name": "web"}, "values": values},
    })
}

/// The values that are rendered.
fn rendered(object: &Value, facts: &AdmissionFacts, secret: Value) -> Result<Value> {
    let object: AddonInstallation = serde_json::from_value(object.clone())?;
    let mut sources = facts.sources();
    let entry = sources
        .next()
        .and_then(|source| source.entries("web").last());
    let mut layers = Layers::for_installation(entry.context("no entry")?, &object);
    layers.values_from = vec![LayerValues::from_secret("kubectl-addons", "s", "k", secret)];
    Ok(layers.merge_all())
}

#[test]
fn defaults_follow_a_changed_catalogue() -> Result<()> {
    let mut tally = Tally::new("values::defaulting");
    let template = json!({"method": "go-template", "formSpec": [
        {"internalName": "size", "type": "number", "default": 1},
    ]});
    let first = facts(catalogue(
        json!({"level": "a", "list": [1, 2], "mine": "theirs", "gone": {"deep": 1}}),
        template.clone(),
    )?);
    let second = facts(catalogue(
        json!({"level": "b", "list": [3], "new": {"deep": 2}}),
        template,
    )?);
    let stored = filled(installation(json!({"mine": "mine", "size": null})), &first)?;
    ensure!(
        stored["spec"]["values"]
            == json!({"level": "a", "list": [1, 2], "mine": "mine", "size": null, "gone": {"deep": 1}}),
        "{stored}"
    );
    // Rendering does not wait for the webhook: the record of the first catalogue is enough.
    let expected = json!({"level": "b", "list": [3], "mine": "mine", "new": {"deep": 2}});
    ensure!(
        rendered(&stored, &second, json!({}))? == expected,
        "{stored}"
    );
    let followed = filled(stored.clone(), &second)?;
    ensure!(
        rendered(&followed, &second, json!({}))? == expected,
        "{followed}"
    );
    ensure!(
        followed["spec"]["values"]["level"] == "b"
            && followed["spec"]["values"].get("gone").is_none(),
        "{followed}"
    );
    tally.ran();
    // A Secret goes over what was filled in, and under what the user wrote.
    let secret = json!({"level": "secret", "mine": "secret", "list": []});
    let mut expected = expected;
    expected["level"] = json!("secret");
    expected["list"] = json!([]);
    ensure!(
        rendered(&followed, &second, secret)? == expected,
        "{followed}"
    );
    tally.ran();
    Ok(())
}

#[test]
fn lists_replace_and_nulls_delete() -> Result<()> {
    let mut tally = Tally::new("values::defaulting::lists_and_nulls");
    let values = json!({"args": ["a", "b"], "map": {"x": 1, "y": 2}, "text": "t"});
    let facts = facts(catalogue(values, json!({"method": "helm"}))?);
    for (own, expected) in [
        (
            json!({"args": ["c"]}),
            json!({"args": ["c"], "map": {"x": 1, "y": 2}, "text": "t"}),
        ),
        (
            json!({"args": []}),
            json!({"args": [], "map": {"x": 1, "y": 2}, "text": "t"}),
        ),
        (
            json!({"map": {"x": null}}),
            json!({"args": ["a", "b"], "map": {"y": 2}, "text": "t"}),
        ),
        (
            json!({"map": null, "text": null}),
            json!({"args": ["a", "b"]}),
        ),
    ] {
        let stored = filled(installation(own.clone()), &facts)?;
        let rendered = rendered(&stored, &facts, json!({}))?;
        ensure!(rendered == expected, "{own}: {rendered}");
        tally.ran();
    }
    Ok(())
}

/// The annotation says what was filled in; who writes it by hand changes what is rendered as little as who does not.
#[test]
fn a_forged_record_lets_nothing_through() -> Result<()> {
    let mut tally = Tally::new("values::defaulting::forged");
    let template = json!({"method": "go-template", "formOnly": true, "formSpec": [{"internalName": "size", "type": "number"}]});
    let other = facts(catalogue(json!({"image": "evil"}), template.clone())?);
    let facts = facts(catalogue(json!({"image": "good"}), template)?);
    // A record that holds the digest of another value at the admin's path.
    let forged = filled(installation(json!({"size": 1})), &other)?;
    ensure!(forged["spec"]["values"]["image"] == "evil", "{forged}");
    ensure!(
        rendered(&forged, &facts, json!({}))?["image"] == "good",
        "{forged}"
    );
    ensure!(
        filled(forged.clone(), &facts)?["spec"]["values"]["image"] == "good",
        "{forged}"
    );
    let mut plain = forged;
    plain["metadata"]["annotations"] = json!({});
    let object: AddonInstallation = serde_json::from_value(plain)?;
    let verdict = validate::validate_installation(&object, None, &Requester::default(), &facts);
    let message = verdict.denial().map(|denial| denial.message);
    let expected =
        "spec.values.image: the form has no such field, and the add-on takes no other values";
    ensure!(message.as_deref() == Some(expected), "{message:?}");
    tally.ran();
    Ok(())
}
