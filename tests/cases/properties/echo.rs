//! Values are judged by path and rule: no denial and no warning holds one, whatever is wrong with them (semantics 10).

use std::cell::Cell;
use std::sync::Arc;

use addons_admission::verdict::Verdict;
use addons_admission::{AdmissionFacts, Requester, validate};
use common::api::catalogue::AddonCatalogue;
use common::api::installation::AddonInstallation;
use common::api::names::{API_VERSION, SYSTEM_NAMESPACE};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::law::{cases, law};

const CANARY: &str = "CANARY";

/// Values whose texts are all canaries; numbers and booleans are other types than the form asks for.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        "[a-z]{0,4}".prop_map(|more| json!(format!("{CANARY}{more}"))),
        Just(json!(true)),
        Just(json!(null)),
        Just(json!(7)),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let list = vec(inner.clone(), 0..3).prop_map(|items| json!(items));
        prop_oneof![list, object(inner)].boxed()
    })
}

fn object(inner: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let keys = select(vec!["a", "b", "password", "c/d"]);
    btree_map(keys, inner, 0..3).prop_map(|map| json!(map))
}

/// A form of these types, with a default of any.
fn form() -> impl Strategy<Value = Value> {
    let kinds = select(vec!["text", "number", "boolean"]);
    let names = select(vec!["a", "a.b", "password", "b.password"]);
    let field = (names, kinds, any::<bool>(), tree()).prop_map(|(name, kind, required, default)| {
        json!({"internalName": name, "type": kind, "required": required, "default": default})
    });
    vec(field, 0..3).prop_map(|fields| json!(fields))
}

/// What a verdict says.
fn texts(verdict: &Verdict) -> Vec<String> {
    let problems = verdict.problems.iter().map(ToString::to_string);
    problems.chain(verdict.warnings.iter().cloned()).collect()
}

#[test]
fn no_verdict_holds_a_value() {
    let methods = select(vec!["manifest", "go-template", "helm"]);
    let sources = select(vec![
        json!({"inline": {"manifest": "password: CANARY"}}),
        json!({"url": {"manifest": "http://CANARY@h/m.yaml"}}),
        json!({"git": {"remote": "https://user:CANARY@h/r", "ref": {"branch": ""}}}),
    ]);
    let strategy = (
        object(tree()),
        object(tree()),
        form(),
        any::<bool>(),
        methods,
        sources,
    );
    let denied = Cell::new(0_u32);
    law(
        "properties::echo",
        cases(500, 50_000),
        strategy,
        |(values, defaults, form, form_only, method, source)| {
            let catalogue: AddonCatalogue = serde_json::from_value(json!({
                "apiVersion": API_VERSION, "kind": "AddonCatalogue",
                "metadata": {"name": "platform", "namespace": SYSTEM_NAMESPACE},
                "spec": {"addons": [{"name": "web", "versions": [{
                    "version": "1.0.0", "values": defaults, "source": source,
                    "template": {"method": method, "formSpec": form, "formOnly": form_only}}]}]},
            }))
            .expect("a catalogue");
            let installation: AddonInstallation = serde_json::from_value(json!({
                "apiVersion": API_VERSION, "kind": "AddonInstallation",
                "metadata": {"name": "web", "namespace": SYSTEM_NAMESPACE},
                "spec": {"addonRef": {"name": "web"}, "values": values},
            }))
            .expect("an installation");
            let who = Requester::default();
            let empty = AdmissionFacts::default();
            let mut facts = AdmissionFacts::default();
            facts.catalogues.push(Arc::new(catalogue.clone().into()));
            let verdicts = [
                validate::validate_catalogue(&catalogue, None, &who, &empty),
                validate::validate_installation(&installation, None, &who, &facts),
            ];
            for text in verdicts.iter().flat_map(texts) {
                prop_assert!(!text.contains(CANARY), "{text}");
                denied.set(denied.get() + 1);
            }
            Ok(())
        },
    );
    assert!(denied.get() > 100, "only {} sentences", denied.get());
}
