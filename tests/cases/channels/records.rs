//! The annotations that kops and we write.

use addons_tests::stage::{Stage, config_map};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Entry, applied_by_kops, index, record, recorded_by_kops};

fn entry<'a>(manifest: &'a str) -> Entry<'a> {
    Entry {
        name: "coredns.addons.k8s.io",
        fields: &["id: k8s-1.12"],
        manifest,
    }
}

/// Semantics 11: the text is what kops itself would have written, and a second run of either tool finds nothing to do.
#[tokio::test]
async fn what_is_installed_is_recorded_for_kops() -> Result<()> {
    let stage = Stage::new("kops-record").await?;
    let addon = "coredns.addons.k8s.io";
    let (one, two) = (config_map("dns", "1"), config_map("dns", "2"));
    let channel = index(&stage, "index.yaml", &[entry(&one)])?;
    let shown = stage
        .run(&format!("channel apply {channel}"))
        .await?
        .done()?;
    let hash = entry(&one).hash();
    ensure!(
        shown.stdout
            == format!(
                "NAME                    CURRENT   UPDATE{}   PKI\n{addon}   -         {hash}   no\n",
                " ".repeat(58)
            ),
        "{}",
        shown.stdout
    );
    ensure!(shown.stderr.contains("Must specify --yes to update"));
    ensure!(record(&stage, addon).await?.is_none());

    let apply = format!("channel apply {channel} --yes");
    let done = stage.run(&apply).await?.done()?;
    ensure!(
        done.stderr.contains(&format!("Updated {addon:?}")),
        "{}",
        done.stderr
    );
    let text = record(&stage, addon).await?.unwrap_or_default();
    let wanted = format!(
        r#"{{"channel":"{channel}","id":"k8s-1.12","manifestHash":"{hash}","systemGeneration":1}}"#
    );
    ensure!(text == wanted, "{text}");

    let mark = stage.cluster.audit().mark()?;
    let again = stage.run(&apply).await?.done()?;
    ensure!(
        again.stderr.contains("No update required"),
        "{}",
        again.stderr
    );
    let requests = stage.requests(mark)?;
    ensure!(
        requests.writes("kubectl-addons") == 0,
        "{:?}",
        requests.by_verb("kubectl-addons")
    );

    let listed = stage.run("channel list -o json").await?.done()?;
    let listed: Value = serde_json::from_str(&listed.stdout)?;
    let row = json!({"namespace": stage.namespace, "name": addon, "id": "k8s-1.12", "manifestHash": hash, "channel": channel});
    ensure!(
        listed["items"]
            .as_array()
            .is_some_and(|rows| rows.contains(&row)),
        "{listed}"
    );

    // Keys that others keep there survive our next write.
    recorded_by_kops(&stage, addon, &text.replace('}', r#","theirs":[1]}"#)).await?;
    index(&stage, "index.yaml", &[entry(&two)])?;
    stage.run(&apply).await?.done()?;
    let text = record(&stage, addon).await?.unwrap_or_default();
    ensure!(
        text.ends_with(r#","systemGeneration":1,"theirs":[1]}"#),
        "{text}"
    );
    ensure!(text.contains(&entry(&two).hash()), "{text}");

    stage
        .run("uninstall coredns.addons.k8s.io --yes")
        .await?
        .done()?;
    ensure!(record(&stage, addon).await?.is_none());
    ensure!(!stage.has("configmap", "dns").await?);
    Ok(())
}

/// Semantics 11: what kops' own tool has installed is installed.
#[tokio::test]
async fn after_kops_there_is_nothing_to_do() -> Result<()> {
    let stage = Stage::new("kops-first").await?;
    let manifest = config_map("dns", "1");
    let channel = index(&stage, "index.yaml", &[entry(&manifest)])?;
    let addon = "coredns.addons.k8s.io";
    let hash = entry(&manifest).hash();
    let other =
        r#"{"channel":"s3://other/index.yaml","id":"a","manifestHash":"b","systemGeneration":1}"#;
    recorded_by_kops(&stage, "other.addons.k8s.io", other).await?;
    for (text, is_due) in [
        // As each era has written it, and as a person does by hand.
        (
            format!(
                r#"{{"channel":"{channel}","id":"k8s-1.12","manifestHash":"{hash}","systemGeneration": 1}}"#
            ),
            false,
        ),
        (
            format!(
                r#"{{"version":"9.99.0","channel":"{channel}","id":"k8s-1.12","manifestHash":"{hash}","systemGeneration":1}}"#
            ),
            false,
        ),
        // Before kops pruned.
        (
            format!(r#"{{"channel":"{channel}","id":"k8s-1.12","manifestHash":"{hash}"}}"#),
            true,
        ),
        (
            format!(
                r#"{{"channel":"{channel}","id":"k8s-1.11","manifestHash":"{hash}","systemGeneration":1}}"#
            ),
            true,
        ),
        (r#"{"version":"1.0.0"}"#.to_owned(), true),
        ("yes".to_owned(), true),
    ] {
        recorded_by_kops(&stage, addon, &text).await?;
        let shown = stage
            .run(&format!("channel apply {channel}"))
            .await?
            .done()?;
        let says = if is_due {
            "Must specify --yes to update"
        } else {
            "No update required"
        };
        ensure!(shown.stderr.contains(says), "{text}: {}", shown.stderr);
        ensure!(record(&stage, addon).await?.as_ref() == Some(&text));
    }
    ensure!(!stage.has("addoninstallation", addon).await?);
    ensure!(record(&stage, "other.addons.k8s.io").await?.as_deref() == Some(other));
    Ok(())
}

/// Semantics 11: an add-on that kops has updated since is as kops' record says, and not as ours.
#[tokio::test]
async fn what_kops_has_updated_since_is_not_updated_again() -> Result<()> {
    let stage = Stage::new("kops-since").await?;
    let addon = "coredns.addons.k8s.io";
    let manifests = [
        config_map("dns", "1"),
        config_map("dns", "2"),
        config_map("dns", "3"),
    ];
    let [one, two, three] = &manifests;
    let channel = index(&stage, "index.yaml", &[entry(one)])?;
    let apply = format!("channel apply {channel} --yes");
    stage.run(&apply).await?.done()?;

    index(&stage, "index.yaml", &[entry(two)])?;
    applied_by_kops(&stage, two).await?;
    let text = format!(
        r#"{{"channel":"{channel}","id":"k8s-1.12","manifestHash":"{}","systemGeneration":1}}"#,
        entry(two).hash()
    );
    recorded_by_kops(&stage, addon, &text).await?;
    let shown = stage.run(&apply).await?.done()?;
    ensure!(
        shown.stderr.contains("No update required"),
        "{}",
        shown.stderr
    );

    index(&stage, "index.yaml", &[entry(three)])?;
    stage.run(&apply).await?.done()?;
    let live = stage.must("configmap", "dns").await?;
    ensure!(live["data"]["key"] == "3", "{live}");
    let text = record(&stage, addon).await?.unwrap_or_default();
    ensure!(text.contains(&entry(three).hash()), "{text}");
    Ok(())
}

/// A record that was lost is written again.
#[tokio::test]
async fn a_record_that_is_missing_is_written() -> Result<()> {
    let stage = Stage::new("kops-lost").await?;
    let manifest = config_map("dns", "1");
    let channel = index(&stage, "index.yaml", &[entry(&manifest)])?;
    let apply = format!("channel apply {channel} --yes");
    stage.run(&apply).await?.done()?;
    let addon = "coredns.addons.k8s.io";
    let key = format!("addons.k8s.io/{addon}-");
    stage
        .plugin
        .kubectl(&["annotate", "namespace", &stage.namespace, &key])
        .await?
        .done()?;
    stage.run(&apply).await?.done()?;
    ensure!(record(&stage, addon).await?.is_some());
    Ok(())
}

/// An entry whose namespace does not exist, and of which no object stands there: it is created for the record.
#[tokio::test]
async fn a_namespace_that_is_missing_is_created_for_the_record() -> Result<()> {
    let stage = Stage::new("kops-missing").await?;
    let namespace = format!("{}-new", stage.namespace);
    let manifest = config_map("dns", "1").replace(
        "{name: dns}",
        &format!("{{name: dns, namespace: {}}}", stage.namespace),
    );
    let channel = index(&stage, "index.yaml", &[entry(&manifest)])?;
    let file = stage.plugin.home().join("index.yaml");
    let text = std::fs::read_to_string(&file)?;
    let own = format!("namespace: {}\n", stage.namespace);
    std::fs::write(
        &file,
        text.replace(&own, &format!("namespace: {namespace}\n")),
    )?;
    let apply = format!("channel apply {channel} --yes");
    stage.run(&apply).await?.done()?;
    let created = stage.must("namespace", &namespace).await?;
    let annotations = created["metadata"]["annotations"].to_string();
    ensure!(annotations.contains("addons.k8s.io/"), "{created}");
    let again = stage.run(&apply).await?.done()?;
    ensure!(
        again.stderr.contains("No update required"),
        "{}",
        again.stderr
    );
    Ok(())
}
