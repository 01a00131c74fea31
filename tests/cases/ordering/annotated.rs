//! The order that manifests ask for in the words of Argo CD, cli-utils, kapp and Helm.

use addons_tests::chaos::rig::Rig;
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::sent::Sent;
use super::{annotated, config_map, deployment, locked, manifest, unlock};

const WAVE: &str = "argocd.argoproj.io/sync-wave";

fn wave(object: Value, wave: &str) -> Value {
    annotated(object, WAVE, wave)
}

/// Waves -1, 0 (said and not said) and 2, the last first in the file; wave 0 cannot become ready by itself.
fn waves(rig: &Rig) -> String {
    manifest(&[
        wave(config_map("late-a"), "2"),
        wave(config_map("late-b"), "2"),
        locked(&rig.stage, deployment("middle", &[])),
        wave(config_map("middle"), "0"),
        wave(config_map("early"), "-1"),
    ])
}

const ORDER: [(&str, &str); 6] = [
    ("configmaps/early", "deployments/middle"),
    ("configmaps/early", "configmaps/middle"),
    ("deployments/middle", "configmaps/late-a"),
    ("configmaps/middle", "configmaps/late-a"),
    ("deployments/middle", "configmaps/late-b"),
    ("configmaps/middle", "configmaps/late-b"),
];

#[tokio::test]
async fn a_wave_begins_when_the_one_before_it_is_ready() -> Result<()> {
    let rig = Rig::new("waves").await?;
    let stage = &rig.stage;
    let index = stage.index("index.yaml", &[("waves", "1.0.0", &waves(&rig))])?;
    let line = format!("install waves --channel {index} --yes --timeout 60s");
    let unlocking = async {
        until("a pod without a node", async || {
            let pods = stage.kubectl(&["get", "pods", "-o", "json"]).await?.stdout;
            let waits = pods.contains("Unschedulable");
            Ok(waits.then_some(()).ok_or(pods))
        })
        .await?;
        // Nothing else is under way: the command waits for the pod.
        let sent = Sent::after(&rig, 0);
        unlock(stage).await?;
        Ok::<_, anyhow::Error>(sent)
    };
    let (installed, sent) = tokio::join!(rig.run(&line), unlocking);
    let (said, sent) = (installed?.done()?.stderr, sent?);
    ensure!(
        sent.has("deployments/middle") && sent.objects().len() == 3,
        "while wave 0 was not ready: {:?}\n{said}",
        sent.objects()
    );
    let sent = Sent::after(&rig, 0);
    ensure!(sent.objects().len() == 5, "{:?}", sent.objects());
    for (first, second) in ORDER {
        sent.ensure(first, second)?;
    }
    Ok(())
}

#[tokio::test]
async fn without_waiting_waves_are_an_order_of_requests() -> Result<()> {
    let rig = Rig::new("waves-sent").await?;
    let stage = &rig.stage;
    let index = stage.index("index.yaml", &[("waves", "1.0.0", &waves(&rig))])?;
    let line = format!("install waves --channel {index} --yes --wait=false --timeout 60s");
    rig.run(&line).await?.done()?;
    let sent = Sent::after(&rig, 0);
    for (first, second) in ORDER {
        sent.ensure(first, second)?;
    }
    let live = stage.must("deployment", "middle").await?;
    ensure!(live["status"]["readyReplicas"].is_null(), "{live:#}");
    Ok(())
}

#[tokio::test]
async fn other_words_for_an_order() -> Result<()> {
    let rig = Rig::new("words").await?;
    let namespace = rig.stage.namespace.clone();
    for (word, objects, order) in orders(&namespace) {
        let file = format!("{word}/index.yaml");
        let index = (rig.stage).index(&file, &[(word, "1.0.0", &manifest(&objects))])?;
        let before = rig.proxy.requests().len();
        let line = format!("install {word} --channel {index} --yes --timeout 60s");
        rig.run(&line).await?.done()?;
        let sent = Sent::after(&rig, before);
        ensure!(sent.objects().len() == objects.len(), "{word}: {sent:?}");
        for (first, second) in order {
            sent.ensure(first, second)?;
        }
        rig.stage
            .run(&format!("uninstall {word} -n {namespace} --yes"))
            .await?
            .done()?;
    }
    Ok(())
}

/// An add-on, its objects, and pairs of them of which the first one is applied before the second.
type Order = (&'static str, Vec<Value>, Vec<(&'static str, &'static str)>);

/// One add-on for each of the languages.
fn orders(namespace: &str) -> Vec<Order> {
    let named = |kind: &str| format!("/namespaces/{namespace}/{kind}");
    let rule = |name: &str, suffix: &str, rule: &str| {
        let annotation = format!("kapp.k14s.io/change-rule{suffix}");
        annotated(config_map(name), &annotation, rule)
    };
    let group = |name: &str, suffix: &str| {
        let annotation = format!("kapp.k14s.io/change-group{suffix}");
        annotated(config_map(name), &annotation, "example.test/store")
    };
    let hook = |name: &str, when: &str, weight: &str| {
        let hook = annotated(config_map(name), "helm.sh/hook", when);
        annotated(hook, "helm.sh/hook-weight", weight)
    };
    // What comes last stands first in the file, and comes first by its name.
    vec![
        (
            "depends-on",
            vec![
                annotated(
                    config_map("a-third"),
                    "config.kubernetes.io/depends-on",
                    &format!(
                        "{},apps{}",
                        named("Secret/b-second"),
                        named("Deployment/b-second")
                    ),
                ),
                annotated(
                    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b-second"}}),
                    "config.kubernetes.io/depends-on",
                    &named("ConfigMap/c-first"),
                ),
                deployment("b-second", &[]),
                config_map("c-first"),
            ],
            vec![
                ("configmaps/c-first", "secrets/b-second"),
                ("secrets/b-second", "configmaps/a-third"),
                ("deployments/b-second", "configmaps/a-third"),
            ],
        ),
        (
            "change-rule",
            vec![
                rule("a-after", "", "upsert after upserting example.test/store"),
                group("b-store", ""),
                group("c-store", ".one"),
                rule(
                    "d-before",
                    ".first",
                    "upsert before upserting example.test/store",
                ),
            ],
            vec![
                ("configmaps/d-before", "configmaps/b-store"),
                ("configmaps/d-before", "configmaps/c-store"),
                ("configmaps/b-store", "configmaps/a-after"),
                ("configmaps/c-store", "configmaps/a-after"),
            ],
        ),
        (
            "hook-weight",
            vec![
                hook("a-last", "post-install,post-upgrade", "-7"),
                config_map("b-none"),
                hook("c-second", "pre-install", "5"),
                hook("d-first", "pre-install", "-5"),
            ],
            vec![
                ("configmaps/d-first", "configmaps/c-second"),
                ("configmaps/c-second", "configmaps/b-none"),
                ("configmaps/b-none", "configmaps/a-last"),
            ],
        ),
    ]
}
