//! The three upgrades of Kyverno that stop a careless tool, in small: a Deployment of the same name with another selector
//! (1.9 → 1.10), another storage version (1.13), and a definition without the old one while objects exist (1.10 → 1.14).

use addons_tests::stage::{Stage, config_map, deployment};
use addons_tests::until::until;
use anyhow::{Result, ensure};
use serde_json::json;

struct Version {
    number: &'static str,
    /// Labels of the pods.
    labels: &'static str,
    /// Names of the definition's versions, the last of which is stored.
    versions: &'static [&'static str],
}

const CHAIN: [Version; 4] = [
    Version {
        number: "1.9.0",
        labels: "app: kyverno",
        versions: &["v2alpha1"],
    },
    Version {
        number: "1.10.0",
        labels: "app: kyverno, part: admission",
        versions: &["v2alpha1", "v2beta1"],
    },
    Version {
        number: "1.13.0",
        labels: "app: kyverno, part: admission",
        versions: &["v2alpha1", "v2beta1", "v2"],
    },
    Version {
        number: "1.14.0",
        labels: "app: kyverno, part: admission",
        versions: &["v2beta1", "v2"],
    },
];

fn manifest(stage: &Stage, version: &Version) -> String {
    let namespace = &stage.namespace;
    let versions = version.versions.iter().map(|name| {
        let storage = version.versions.last() == Some(name);
        format!(
            "{{name: {name}, served: true, storage: {storage}, schema: {{openAPIV3Schema: \
             {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}"
        )
    });
    let versions = versions.collect::<Vec<_>>().join(", ");
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
         metadata: {{name: exceptions.{namespace}.example.test}}\n\
         spec: {{group: {namespace}.example.test, scope: Namespaced, versions: [{versions}], \
         names: {{kind: PolicyException, plural: exceptions, singular: exception}}}}\n---\n"
    );
    let workload = deployment("kyverno", 1, None).replace("app: kyverno", version.labels);
    let settings = config_map("kyverno", version.number);
    format!("{definition}{workload}{settings}")
}

fn line(stage: &Stage, version: &Version) -> Result<String> {
    let file = format!("{}.yaml", version.number);
    let manifest = manifest(stage, version);
    let index = stage.index(&file, &[("kyverno", version.number, &manifest)])?;
    Ok(if version.number == "1.9.0" {
        format!("install kyverno --channel {index} --yes")
    } else {
        format!(
            "upgrade kyverno -n {} --channel {index} --yes",
            stage.namespace
        )
    })
}

/// Refused as a whole, and done where the flag accepts it.
async fn accepted(stage: &Stage, line: &str, flag: &str, words: &[&str]) -> Result<()> {
    let before = stage.must("configmap", "kyverno").await?["data"].clone();
    let refused = stage.run(line).await?.ended(4)?;
    for words in words.iter().chain([&flag]) {
        let said = &refused.stderr;
        ensure!(said.contains(words), "no {words:?}: {said}");
    }
    let after = stage.must("configmap", "kyverno").await?["data"].clone();
    ensure!(before == after, "half of it was applied");
    stage.run(&format!("{line} {flag}")).await?.done()?;
    let again = stage.run(line).await?.done()?;
    ensure!(again.stderr.contains("nothing to do"), "{}", again.stderr);
    Ok(())
}

#[tokio::test]
#[cfg_attr(not(full), ignore = "FULL=1: real add-ons through many versions")]
async fn a_selector_moves_and_a_stored_version_leaves() -> Result<()> {
    let stage = Stage::new("kyverno-like").await?;
    let [first, second, third, fourth] = &CHAIN;
    stage.run(&line(&stage, first)?).await?.done()?;
    for name in ["one", "two"] {
        let exception = json!({
            "apiVersion": format!("{}.example.test/v2alpha1", stage.namespace), "kind": "PolicyException",
            "metadata": {"name": name}, "spec": {"of": name},
        });
        stage.apply(&exception.to_string()).await?;
    }
    let upgrade = line(&stage, second)?;
    let words = ["Deployment kyverno", "spec.selector"];
    accepted(&stage, &upgrade, "--recreate Deployment/kyverno", &words).await?;

    stage.run(&line(&stage, third)?).await?.done()?;
    let upgrade = line(&stage, fourth)?;
    let words = ["v2alpha1", "2 PolicyExceptions"];
    accepted(&stage, &upgrade, "--migrate-stored-versions", &words).await?;

    let plural = format!("exceptions.{}.example.test", stage.namespace);
    let definition = stage.must("customresourcedefinition", &plural).await?;
    let stored = &definition["status"]["storedVersions"];
    ensure!(*stored == json!(["v2beta1", "v2"]), "{stored}");
    until("the objects", async || {
        for name in ["one", "two"] {
            let found = stage.must(&plural, name).await?;
            if found["spec"]["of"] != name {
                return Ok(Err(found.to_string()));
            }
        }
        Ok(Ok(()))
    })
    .await
}
