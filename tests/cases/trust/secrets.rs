//! What is in Secrets is in no status, Event, history, list or plan file, whatever happens.

use addons_tests::denial::{When, allow, deny_saying};
use addons_tests::stage::Stage;
use addons_tests::tally::Tally;
use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// The name of an object, and a value of the Secret: names are never masked, an inventory without them would be lost.
const NAME: &str = "till-canary";
const URL: &str = "postgres://app:hunter3@db";
const LATER: &str = "postgres://app:hunter4@db";
const QUOTED: &str = "say \"hunter5\" twice";
const LINES: &str = "hunter6-first\nhunter6-second";
const SHORT: &str = "q9!z";

/// Every spelling that must not be found: as they are, in pieces, escaped, and in base64.
fn canaries() -> Vec<String> {
    let plain = [URL, LATER, QUOTED, LINES, SHORT];
    let pieces = ["hunter3", "hunter4", "hunter5", "hunter6"];
    let encoded = plain.iter().map(|text| {
        let encoded = BASE64_STANDARD.encode(text);
        encoded.trim_end_matches('=').to_owned()
    });
    let escaped = plain.iter().map(|text| json!(text).to_string());
    let plain = plain.iter().chain(&pieces).map(|text| (*text).to_owned());
    plain.chain(encoded).chain(escaped).collect()
}

fn keeps(what: &str, text: &str) -> Result<()> {
    for canary in canaries() {
        ensure!(!text.contains(&canary), "{what} holds {canary}:\n{text}");
    }
    Ok(())
}

struct Till {
    stage: Stage,
    tally: Tally,
}

impl Till {
    async fn new() -> Result<Self> {
        let stage = Stage::new("canaries").await?;
        let till = Self {
            stage,
            tally: Tally::new("trust::secrets"),
        };
        till.secret(Some(URL)).await?;
        Ok(till)
    }

    /// Without a URL the package has a default.
    async fn secret(&self, url: Option<&str>) -> Result<()> {
        let values =
            json!({"url": url, "quoted": QUOTED, "lines": LINES, "short": SHORT, "name": NAME});
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "values"},
            "stringData": {"values": values.to_string()},
        });
        self.stage.apply(&secret.to_string()).await
    }

    /// `label`: what is written into a label of the object.
    fn catalogue(&self, version: &str, label: &str) -> Result<()> {
        let manifest = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{{{ .Variables.name }}}}\n  labels: {{a: {label}}}\ndata:\n  \
             url: {{{{ .Variables.url | default \"none\" | quote }}}}\n  \
             encoded: {{{{ .Variables.url | default \"none\" | b64enc }}}}\n  \
             quoted: {{{{ .Variables.quoted | quote }}}}\n  lines: {{{{ .Variables.lines | quote }}}}\n  \
             short: {{{{ .Variables.short | quote }}}}\n"
        );
        let version = json!({
            "version": version,
            "template": {"method": "go-template"},
            "source": {"inline": {"manifest": manifest}},
        });
        self.stage.catalogue("till", &version).map(drop)
    }

    /// Searches all that was written, and all that commands print for others to read.
    async fn searched(&mut self, when: &str) -> Result<()> {
        let record = self.stage.record("till").await?;
        keeps(&format!("{when}: the record"), &record.to_string())?;
        ensure!(
            record["status"].to_string().contains(NAME),
            "{when}: the inventory lost a name: {record}"
        );
        let events = self.stage.kubectl(&["get", "events", "-o", "json"]).await?;
        keeps(&format!("{when}: Events"), &events.stdout)?;
        for line in [
            "list",
            "list -o json",
            "status till",
            "status till -o json",
            "values till --explain",
            "diff till --channel till.json -o json",
            "plan till --channel till.json -o plan.json",
            "upgrade till --channel till.json --dry-run=server",
        ] {
            // What cannot be done may fail; what it says is searched all the same.
            let said = self.stage.run(line).await?;
            keeps(&format!("{when}: {line}"), &said.stdout)?;
            keeps(&format!("{when}: {line}"), &said.stderr)?;
            self.tally.ran();
        }
        let plan = self.stage.plugin.home().join("plan.json");
        if plan.exists() {
            keeps(
                &format!("{when}: the plan file"),
                &std::fs::read_to_string(&plan)?,
            )?;
            std::fs::remove_file(plan)?;
        }
        Ok(())
    }

    /// What objects hold of a Secret that does not supply it any more is not shown as their old side; once it was replaced, old sides
    /// are shown again.
    async fn supplies_no_more(&mut self) -> Result<()> {
        let diff = "diff till --channel till.json";
        self.secret(None).await?;
        self.searched("no longer supplied").await?;
        let said = self.stage.run(diff).await?.ended(1)?;
        ensure!(said.stdout.contains("*** → none"), "{}", said.stdout);
        self.stage.run("upgrade till --yes").await?.done()?;
        self.catalogue("1.3.0", "better")?;
        let said = self.stage.run(diff).await?.ended(1)?;
        ensure!(said.stdout.contains("fine → better"), "{}", said.stdout);
        Ok(())
    }
}

/// trust 2.
#[tokio::test]
async fn t02_what_is_in_secrets_is_in_nothing_that_others_read() -> Result<()> {
    let mut till = Till::new().await?;
    till.catalogue("1.0.0", "fine")?;
    let namespace = till.stage.namespace.clone();
    let record = json!({
        "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation", "metadata": {"name": "till"},
        "spec": {
            "addonRef": {"name": "till", "index": format!("file://{}/till.json", till.stage.plugin.home().display())},
            "targetNamespace": namespace,
            "valuesFrom": [{"secretKeyRef": {"name": "values", "key": "values"}}],
        },
    });
    till.stage.run("init").await?.done()?;
    till.stage.apply(&record.to_string()).await?;
    till.stage.run("upgrade till --yes").await?.done()?;
    let map = till.stage.must("configmap", NAME).await?;
    ensure!(map["data"]["url"] == URL, "{map}");
    till.searched("installed").await?;

    // Another manager holds the field, and the Secret changed: a conflict on a value out of it.
    till.stage
        .patch("configmap", NAME, &json!({"data": {"url": "by hand"}}))
        .await?;
    till.secret(Some(LATER)).await?;
    let refused = till
        .stage
        .run("upgrade till --yes --conflicts fail")
        .await?
        .ended(4)?;
    keeps("the conflict on the terminal", &refused.stderr)?;
    ensure!(
        refused.stderr.contains("data.url") && refused.stderr.contains("kubectl-patch"),
        "neither field nor manager: {}",
        refused.stderr
    );
    till.searched("a conflict").await?;

    // The server's refusal repeats the value.
    till.catalogue("1.1.0", "{{ .Variables.url | quote }}")?;
    let refused = till
        .stage
        .run("upgrade till --yes --conflicts take")
        .await?
        .ended(1)?;
    ensure!(
        refused.stderr.contains("metadata.labels"),
        "{}",
        refused.stderr
    );
    keeps("the refusal on the terminal", &refused.stderr)?;
    till.searched("a refusal").await?;

    // A policy repeats it that no dry run meets: the failure is recorded.
    let words = "'not ' + object.data.url";
    deny_saying(&till.stage, When::Executed, &["UPDATE"], NAME, words).await?;
    till.catalogue("1.2.0", "fine")?;
    let denied = till
        .stage
        .run("upgrade till --yes --conflicts take")
        .await?
        .ended(6)?;
    keeps("the denial on the terminal", &denied.stderr)?;
    let status = till.stage.record("till").await?["status"].to_string();
    ensure!(status.contains("denied request"), "{status}");
    till.searched("a denial").await?;
    allow(&till.stage).await?;

    // And a success after all that.
    till.stage
        .run("upgrade till --yes --conflicts take")
        .await?
        .done()?;
    let map = till.stage.must("configmap", NAME).await?;
    ensure!(map["data"]["url"] == LATER, "{map}");
    till.searched("upgraded").await?;
    let history: Vec<Value> = till.stage.record("till").await?["status"]["history"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    ensure!(
        history.len() > 2,
        "failures are not part of the history: {history:?}"
    );
    till.supplies_no_more().await
}
