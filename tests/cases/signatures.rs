//! Sources that must be signed: what is refused before anything is rendered, what is recorded, and what `verify` tells.

mod provenance;
mod rig;

use std::fs;

use addons_tests::servers::registry::front::{Fault, Front};
use addons_tests::servers::registry::signing::{Cosign, refer};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use rig::Rig;

#[tokio::test]
async fn only_what_is_signed_is_installed_and_the_record_says_by_whom() -> Result<()> {
    let rig = Rig::new("signed").await?;
    let (one, two) = (
        rig.push("1.0.0", "one").await?,
        rig.push("2.0.0", "two").await?,
    );
    let policy = json!({"key": rig.cosign.public()});
    let catalogue = rig.add(&policy, &["1.0.0", "2.0.0"]).await?;
    let requires = format!("catalogue {catalogue} requires signatures (spec.signature)");

    rig.refused(
        &rig.install("1.0.0"),
        &[&format!("@{one} is not signed"), &requires],
    )
    .await?;
    ensure!(!rig.stage.has("addoninstallation", "web").await?);
    ensure!(!rig.stage.has("configmap", "web").await?);

    rig.cosign.sign(&rig.registry, "web", &one).await?;
    rig.stage.run(&rig.install("1.0.0")).await?.done()?;
    let record = rig.stage.record("web").await?;
    let expected = json!({"digest": one, "method": "key", "signer": rig.cosign.fingerprint()});
    ensure!(
        record["status"]["installed"]["signature"] == expected,
        "{record}"
    );

    let upgrade = "upgrade web@2.0.0 --yes".to_owned();
    rig.refused(&upgrade, &[&format!("@{two} is not signed"), &requires])
        .await?;
    ensure!(rig.value().await? == "one");
    let now = rig.stage.record("web").await?;
    ensure!(
        now["spec"] == record["spec"] && now["status"] == record["status"],
        "{now}"
    );

    rig.cosign.sign_by_tag(&rig.registry, "web", &two).await?;
    rig.stage.run(&upgrade).await?.done()?;
    ensure!(rig.value().await? == "two");
    let record = rig.stage.record("web").await?;
    ensure!(
        record["status"]["installed"]["signature"]["digest"] == json!(two),
        "{record}"
    );
    Ok(())
}

#[tokio::test]
async fn a_signature_of_another_key_or_digest_does_not_count() -> Result<()> {
    let rig = Rig::new("signed-otherwise").await?;
    let other = Cosign::new()?;
    let one = rig.push("1.0.0", "one").await?;
    let two = rig.push("2.0.0", "two").await?;
    let changed = rig.push("3.0.0", "three").await?;
    let policy = json!({"key": rig.cosign.public()});
    rig.add(&policy, &["1.0.0", "2.0.0", "3.0.0"]).await?;

    other.sign(&rig.registry, "web", &one).await?;
    let key = format!("is not signed by the key {}", rig.cosign.fingerprint());
    rig.refused(&rig.install("1.0.0"), &[&key, "the key does not verify it"])
        .await?;

    refer(&rig.registry, "web", &two, &rig.cosign.bundle(&one)?).await?;
    rig.refused(
        &rig.install("2.0.0"),
        &["it is the signature of another digest"],
    )
    .await?;

    rig.cosign.sign(&rig.registry, "web", &changed).await?;
    rig.push("3.0.0", "changed").await?;
    rig.refused(&rig.install("3.0.0"), &["is not signed; catalogue"])
        .await?;
    ensure!(!rig.stage.has("configmap", "web").await?);
    Ok(())
}

#[tokio::test]
async fn verify_tells_who_signed_and_asks_no_one_twice() -> Result<()> {
    let rig = Rig::new("signed-verify").await?;
    let other = Cosign::new()?;
    let one = rig.push("1.0.0", "one").await?;
    let none = rig.push("2.0.0", "two").await?;
    rig.cosign.sign(&rig.registry, "web", &one).await?;
    let policy = json!({"key": rig.cosign.public()});
    rig.add(&policy, &["1.0.0", "2.0.0"]).await?;
    let said = rig.stage.run("verify web@1.0.0 -o json").await?.done()?;
    let items: Value = serde_json::from_str(&said.stdout)?;
    let expected = json!({
        "name": "web@1.0.0", "digest": one, "method": "key", "signer": rig.cosign.fingerprint(),
    });
    ensure!(items["items"] == json!([expected]), "{items}");
    let table = rig.stage.run("verify web@1.0.0 --offline").await?.done()?;
    let by = format!("key {}", rig.cosign.fingerprint());
    ensure!(table.stdout.contains(&by), "{}", table.stdout);

    let said = rig
        .stage
        .run("verify web@1.0.0 web@2.0.0 -o name")
        .await?
        .ended(1)?;
    ensure!(said.stdout == "web@1.0.0\n", "{}", said.stdout);
    let words = format!(
        "not verified: web@2.0.0: {}/web@{none} is not signed",
        rig.registry.host
    );
    ensure!(said.stderr.contains(&words), "{}", said.stderr);

    let file = rig.stage.write("other.pub", &other.public())?;
    let wrong = format!("verify web@1.0.0 --key {}", file.display());
    rig.refused(
        &wrong,
        &[&other.fingerprint(), "the key does not verify it"],
    )
    .await?;

    let ours = rig.stage.write("cosign.pub", &rig.cosign.public())?;
    let (host, ours) = (&rig.registry.host, ours.display());
    for name in [format!("{host}/web:1.0.0"), format!("{host}/web@{one}")] {
        let line = format!("verify oci://{name} --plain-http --key {ours} -o json");
        let said = rig.stage.run(&line).await?.done()?;
        ensure!(said.stdout.contains(&one), "{}", said.stdout);
    }
    let said = rig
        .stage
        .run(&format!("verify oci://{host}/web:1.0.0"))
        .await?;
    ensure!(
        said.code == 2 && said.stderr.contains("name the signer"),
        "{}",
        said.stderr
    );
    Ok(())
}

#[tokio::test]
async fn an_image_may_be_signed_by_the_index_that_names_it() -> Result<()> {
    let rig = Rig::new("signed-index").await?;
    let image = rig.push("amd64", "one").await?;
    let images = [("linux", "amd64", image.as_str())];
    let index = rig.registry.push_index("web", "1.0.0", &images).await?;
    let policy = json!({"key": rig.cosign.public()});
    rig.add(&policy, &["1.0.0"]).await?;
    rig.refused(&rig.install("1.0.0"), &[&format!("@{image} is not signed")])
        .await?;
    rig.cosign.sign(&rig.registry, "web", &index).await?;
    rig.stage.run(&rig.install("1.0.0")).await?.done()?;
    let installed = rig.stage.record("web").await?["status"]["installed"].clone();
    ensure!(installed["resolved"] == json!(image), "{installed}");
    ensure!(
        installed["signature"]["digest"] == json!(index),
        "{installed}"
    );
    Ok(())
}

/// A registry with the referrers API: the list names the same manifest that the tag does here.
#[tokio::test]
async fn the_referrers_api_is_asked_first() -> Result<()> {
    let rig = Rig::new("signed-api").await?;
    let one = rig.push("1.0.0", "one").await?;
    rig.cosign.sign(&rig.registry, "web", &one).await?;
    let list = rig.manifest(&one.replace(':', "-")).await?;
    let front = Front::start(Some(&rig.registry), move |seen| {
        let is_list = seen.path.contains("/referrers/");
        is_list.then(|| Fault::Bytes(list.clone()))
    });
    let front = front.await?;
    let key = rig.stage.write("cosign.pub", &rig.cosign.public())?;
    let line = format!(
        "verify oci://{}/web:1.0.0 --plain-http --key {}",
        front.host,
        key.display()
    );
    rig.stage.run(&line).await?.done()?;
    let asked = front.requests();
    let has = |part: &str| asked.iter().any(|one| one.path.contains(part));
    ensure!(
        has("/referrers/sha256:") && !has("/manifests/sha256-"),
        "{asked:?}"
    );
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_signed_must_be_pinned() -> Result<()> {
    let rig = Rig::new("signed-pinned").await?;
    let manifest = rig.manifests("inline");
    let policy = json!({"key": rig.cosign.public()});
    let version = |version: &str, hash: Option<String>| {
        let mut entry = json!({"version": version, "source": {"inline": {"manifest": manifest}}});
        if let Some(hash) = hash {
            entry["manifestHash"] = json!(hash);
        }
        entry
    };
    let hash = addons_tests::stage::sha256(manifest.trim());
    let versions = [version("1.0.0", None), version("2.0.0", Some(hash.clone()))];
    rig.add_versions(&policy, &versions).await?;
    rig.refused(
        &rig.install("1.0.0"),
        &["source.inline cannot be signed", "manifestHash"],
    )
    .await?;
    rig.stage.run(&rig.install("2.0.0")).await?.done()?;
    let record = rig.stage.record("web").await?;
    let expected = json!({"digest": format!("sha256:{hash}"), "method": "manifestHash"});
    ensure!(
        record["status"]["installed"]["signature"] == expected,
        "{record}"
    );
    let said = rig.stage.run("verify web@2.0.0").await?.done()?;
    ensure!(said.stdout.contains("manifestHash"), "{}", said.stdout);

    // A hash is not the signature of a signer who is named.
    let key = rig.stage.write("cosign.pub", &rig.cosign.public())?;
    for (version, words) in [
        ("1.0.0", "source.inline cannot be signed; only"),
        (
            "2.0.0",
            "source.inline cannot be signed (its digest is in the catalogue); only",
        ),
    ] {
        let line = format!("verify web@{version} --key {}", key.display());
        let words = format!("not verified: web@{version}: {words}");
        rig.refused(&line, &[&words]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn where_signatures_are_not_required_a_warning_says_what_is_not_signed() -> Result<()> {
    let rig = Rig::new("signed-optional").await?;
    let one = rig.push("1.0.0", "one").await?;
    let policy = json!({"key": rig.cosign.public(), "required": false});
    rig.add(&policy, &["1.0.0"]).await?;
    let said = rig.stage.run(&rig.install("1.0.0")).await?.done()?;
    ensure!(
        said.stderr.contains(&format!("@{one} is not signed")),
        "{}",
        said.stderr
    );
    let record = rig.stage.record("web").await?;
    ensure!(
        record["status"]["installed"]["signature"].is_null(),
        "{record}"
    );
    Ok(())
}

#[tokio::test]
async fn a_rollback_is_judged_by_the_policy_of_today() -> Result<()> {
    let rig = Rig::new("signed-rollback").await?;
    let one = rig.push("1.0.0", "one").await?;
    let two = rig.push("2.0.0", "two").await?;
    rig.cosign.sign(&rig.registry, "web", &two).await?;
    rig.add(&json!(null), &["1.0.0", "2.0.0"]).await?;
    rig.stage.run(&rig.install("1.0.0")).await?.done()?;
    rig.stage.run("upgrade web@2.0.0 --yes").await?.done()?;
    rig.add(&json!({"key": rig.cosign.public()}), &["1.0.0", "2.0.0"])
        .await?;
    rig.refused("rollback web --yes", &[&format!("@{one} is not signed")])
        .await?;
    ensure!(rig.value().await? == "two");
    Ok(())
}

#[tokio::test]
async fn a_policy_names_one_signer() -> Result<()> {
    let rig = Rig::new("signed-policy").await?;
    rig.add(&json!(null), &["1.0.0"]).await?;
    let keyless = json!({"identity": "me@example.com", "issuer": "https://issuer.example", "trustedRoot": "{}"});
    for (policy, words) in [
        (
            json!({"required": true}),
            "exactly one of key and keyless is needed",
        ),
        (
            json!({"key": rig.cosign.public(), "keyless": keyless}),
            "exactly one of key and keyless",
        ),
        (json!({"key": "ssh-ed25519 AAAA"}), "spec.signature.key"),
    ] {
        let file = rig.file(&policy, &rig.versions(&["1.0.0"]))?;
        let path = file.display().to_string();
        let applied = rig.stage.plugin.kubectl(&["apply", "-f", &path]).await?;
        ensure!(
            applied.code != 0 && applied.stderr.contains(words),
            "{policy}: {}",
            applied.stderr
        );
        let said = rig.stage.run(&format!("catalogue validate {path}")).await?;
        ensure!(said.code != 0, "{policy}: {}", said.stdout);
        fs::remove_file(file)?;
    }
    Ok(())
}
