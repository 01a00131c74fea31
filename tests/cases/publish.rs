//! Catalogues with charts, folders and manifests of one machine, which are published in a registry, added to a cluster and installed from.

use std::fs;

use addons_tests::control_plane::binaries;
use addons_tests::servers::registry::front::{Front, Seen};
use addons_tests::servers::registry::signing::Cosign;
use addons_tests::servers::registry::{Door, Registry};
use addons_tests::stage::{Stage, config_map, sha256};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

/// Number of ConfigMaps in the large manifest, each with 100 KB.
const LARGE: usize = 19;

/// Writes a folder of packages, of which one is a manifest that no object of a cluster can hold, and creates its catalogue.
async fn write_packages(stage: &Stage) -> Result<()> {
    let text = "x".repeat(100_000);
    let large: String = (0..LARGE)
        .map(|number| format!("---\n{}", config_map(&format!("large-{number}"), &text)))
        .collect();
    stage.write("packages/large/v1.0.0/install.yaml", &large)?;
    stage.write(
        "packages/shop/Chart.yaml",
        "apiVersion: v2\nname: shop\nversion: 3.1.0\ndescription: Sells things\nkubeVersion: '>=1.30.0-0'\n\
         home: https://shop.example\nicon: https://shop.example/icon.svg\n",
    )?;
    stage.write("packages/shop/values.yaml", "size: small\n")?;
    stage.write(
        "packages/shop/templates/c.yaml",
        &config_map("shop", "{{ .Values.size }}"),
    )?;
    // Neither is a manifest.
    stage.write("packages/sources.json", "[{\"kind\": \"chart\"}]")?;
    stage.write("packages/catalogue.yaml", "")?;
    let create = format!("catalogue create {} --from packages", stage.namespace);
    let said = stage.run(&create).await?.done()?;
    for words in [
        "# home: https://shop.example",
        "# icon: https://shop.example/icon.svg",
        "description: \"Sells things\"",
        "k8sVersion: \">=1.30.0-0\"",
    ] {
        ensure!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    stage.write("catalogue.yaml", &said.stdout)?;
    Ok(())
}

fn is_write(seen: &Seen) -> bool {
    !matches!(&*seen.method, "GET" | "HEAD")
}

/// The arguments of a command that was printed.
fn arguments(printed: &str) -> Result<&str> {
    let line = printed.trim().strip_prefix("kubectl addons ");
    line.with_context(|| format!("not one command: {printed}"))
}

#[tokio::test]
async fn a_catalogue_of_this_machine_is_published_added_and_installed() -> Result<()> {
    let stage = Stage::new("publish").await?;
    let registry = Registry::start(Door::Open).await?;
    let front = Front::start(Some(&registry), |_| None).await?;
    write_packages(&stage).await?;
    let advice = "kubectl addons catalogue publish oci://HOST/catalogue catalogue.yaml";
    let refused = stage.run("catalogue add catalogue.yaml").await?.ended(1)?;
    ensure!(refused.stderr.contains(advice), "{}", refused.stderr);
    let said = stage.run("catalogue validate catalogue.yaml").await?;
    ensure!(said.done()?.stderr.contains(advice));

    let target = format!("oci://{}/team/platform", front.host);
    let publish = format!("catalogue publish {target} catalogue.yaml");
    let said = stage.run(&format!("{publish} --dry-run")).await?.done()?;
    ensure!(said.stdout.is_empty(), "{}", said.stdout);
    ensure!(said.stderr.contains("3 to push"), "{}", said.stderr);
    let written = front.requests().into_iter().filter(is_write).count();
    ensure!(written == 0, "a dry run pushed");

    let said = stage.run(&publish).await?.done()?;
    let add = said.stdout.clone();
    ensure!(said.stderr.contains("3 pushed"), "{}", said.stderr);
    ensure!(front.requests().iter().any(is_write));
    let said = stage.run(&format!("{publish} -o json")).await?.done()?;
    let report: Value = serde_json::from_str(&said.stdout)?;
    // What is printed for people has the flags that select the cluster as well.
    let line = report["add"].as_str().context("no command")?;
    ensure!(add.starts_with(line), "{report}");
    ensure!(report["packages"][0]["result"] == "unchanged", "{report}");
    let written: Vec<Seen> = front.requests().into_iter().filter(is_write).collect();
    ensure!(written.is_empty(), "pushed what was there: {written:?}");

    fs::remove_dir_all(stage.plugin.home().join("packages"))?;
    fs::remove_file(stage.plugin.home().join("catalogue.yaml"))?;
    stage.run(arguments(&add)?).await?.done()?;
    let helm = binaries::helm()?;
    let install = format!(
        "install large shop --catalogue {} --target-namespace {} --set shop:size=big --helm-bin {} --yes",
        stage.namespace,
        stage.namespace,
        helm.display()
    );
    stage.run(&install).await?.done()?;
    ensure!(
        stage
            .has("configmap", &format!("large-{}", LARGE - 1))
            .await?
    );
    let shop = stage.must("configmap", "shop").await?;
    ensure!(shop["data"]["key"] == "big", "{shop}");
    Ok(())
}

#[tokio::test]
async fn a_published_catalogue_is_signed_on_demand() -> Result<()> {
    let stage = Stage::new("publish-signed").await?;
    let registry = Registry::start(Door::Open).await?;
    let front = Front::start(Some(&registry), |_| None).await?;
    let (cosign, other) = (Cosign::new()?, Cosign::new()?);
    let manifest = config_map("web", "1");
    stage.write("web.yaml", &manifest)?;
    stage.write("cosign.key", &cosign.private())?;
    stage.write("cosign.pub", &cosign.public())?;
    stage.write("other.key", &other.private())?;
    let version = json!({
        "version": "1.0.0", "defaultNamespace": stage.namespace, "manifestHash": sha256(&manifest),
        "source": {"url": {"manifest": "web.yaml"}},
    });
    let catalogue = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1",
        "kind": "AddonCatalogue",
        "metadata": {"name": stage.namespace},
        "spec": {
            "signature": {"key": cosign.public()},
            "addons": [{"name": "web", "versions": [version]}],
        },
    });
    // A folder is enough if its file is called catalogue.yaml.
    stage.write("own/catalogue.yaml", &catalogue.to_string())?;
    fs::rename(
        stage.plugin.home().join("web.yaml"),
        stage.plugin.home().join("own/web.yaml"),
    )?;
    let publish = format!("catalogue publish oci://{}/c own", front.host);
    let said = stage.run(&format!("{publish} --dry-run")).await?.done()?;
    ensure!(said.stderr.contains("--sign-key"), "{}", said.stderr);
    for (key, words) in [
        ("other.key", "spec.signature accepts the key"),
        (
            "cosign.pub",
            "--sign-key cosign.pub: it is not a private key",
        ),
        ("none.key", "--sign-key none.key"),
    ] {
        let said = stage.run(&format!("{publish} --sign-key {key}")).await?;
        let said = said.ended(1)?;
        ensure!(said.stderr.contains(words), "{key}: {}", said.stderr);
    }
    ensure!(!front.requests().iter().any(is_write), "pushed too early");

    let publish = format!("{publish} --sign-key cosign.key");
    let add = stage.run(&publish).await?.done()?.stdout;
    let _ = front.requests();
    let again = stage.run(&publish).await?.done()?;
    ensure!(again.stdout == add, "{}", again.stdout);
    let written: Vec<Seen> = front.requests().into_iter().filter(is_write).collect();
    ensure!(written.is_empty(), "signed twice: {written:?}");
    let mut words = add.split_whitespace();
    let reference = words.find(|word| word.starts_with("oci://"));
    let reference = reference.context("no reference")?;
    let verify = format!("verify {reference} --key cosign.pub");
    stage.run(&verify).await?.done()?;
    stage.run(arguments(&add)?).await?.done()?;
    let install = format!("install web --catalogue {} --yes", stage.namespace);
    stage.run(&install).await?.done()?;
    let record = stage.record("web").await?;
    let signature = &record["status"]["installed"]["signature"];
    ensure!(signature["signer"] == cosign.fingerprint(), "{record}");
    Ok(())
}

#[tokio::test]
async fn a_registry_that_refuses_says_what_to_do() -> Result<()> {
    let stage = Stage::new("publish-refused").await?;
    let registry = Registry::start(Door::Password).await?;
    stage.write("web.yaml", &config_map("web", "1"))?;
    let create = "catalogue create c --from web.yaml --version 1.0.0";
    let said = stage.run(create).await?.done()?;
    stage.write("catalogue.yaml", &said.stdout)?;
    let publish = format!("catalogue publish oci://{}/c .", registry.host);
    let said = stage.run(&publish).await?.ended(1)?;
    let login = format!("fix:    docker login {}", registry.host);
    ensure!(said.stderr.contains(&login), "{}", said.stderr);
    let said = stage.run("catalogue publish oci://127.0.0.1:1/c .").await?;
    let said = said.ended(1)?;
    ensure!(said.stderr.contains("cannot be pushed"), "{}", said.stderr);
    Ok(())
}
