//! Who may show what, and where it is looked for.

use std::path::{Path, PathBuf};

use addons_tests::plugin::Output;
use anyhow::Result;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::super::draw::{Method, Place, Store};
use super::super::scene::VERSION;
use super::Play;

/// Where something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Surface {
    Terminal,
    Record,
    Plan,
    Events,
    Requests,
    Files,
}

impl Play<'_> {
    /// The table of `canaries.rs`.
    fn may_show(&self, surface: Surface) -> bool {
        let case = self.case;
        let is_secret = case.place == Place::Secret;
        match (case.store, surface) {
            (_, Surface::Events | Surface::Files) => false,
            (Store::File | Store::Set, Surface::Terminal) => case.is_quoted() || !is_secret,
            (Store::File | Store::Set, Surface::Record | Surface::Requests) => case.is_quoted(),
            (Store::File | Store::Set, Surface::Plan) => true,
            (Store::Live, Surface::Terminal | Surface::Plan) => !is_secret,
            _ => false,
        }
    }

    fn look(&mut self, surface: Surface, what: &str, text: &str) {
        if self.may_show(surface) {
            return;
        }
        if let Some(found) = self.marks.found_in(text) {
            self.faults.push(format!("{what} shows …{found}…"));
        }
    }

    /// Something else happened than the case is about.
    pub(super) fn odd(&mut self, what: &str, said: &Output) {
        self.faults.push(format!(
            "{what}: ended with {}\n{}{}",
            said.code, said.stdout, said.stderr
        ));
    }

    pub(super) fn hear(&mut self, line: &str, said: &Output) {
        for text in [&said.stdout, &said.stderr] {
            self.look(Surface::Terminal, line, text);
            // An object is written as its kind and its name; in the words of the server the name is in quotes.
            let kinds = ["ConfigMap", "Secret", "Service", "Deployment", "Release"];
            if kinds
                .iter()
                .any(|kind| text.contains(&format!("{kind} ***")))
            {
                self.odd(&format!("{line}: a name is masked"), said);
            }
        }
    }

    pub(super) async fn run(&mut self, line: &str) -> Result<Output> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.extend(["--helm-bin", &self.world.helm]);
        let said = self.world.stage.plugin.run(&words).await?;
        self.hear(line, &said);
        Ok(said)
    }

    /// Both streams at a terminal, where `n` is the answer to every question.
    pub(super) async fn on_terminal(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let plugin = &self.world.stage.plugin;
        let said = plugin.run_on_terminal(&words, "n\n").await?;
        self.hear(&format!("{line} (terminal)"), &said);
        Ok(())
    }

    /// What a chart made at random is known once it is there.
    pub(super) async fn learn(&mut self) -> Result<()> {
        if self.case.store != Store::Generated {
            return Ok(());
        }
        let made = format!("{}-made", self.case.name);
        if let Some(secret) = self.world.stage.get("secret", &made).await? {
            let encoded = secret["data"]["canary"].as_str().unwrap_or_default();
            let text = String::from_utf8(BASE64_STANDARD.decode(encoded)?)?;
            self.marks.add(&text, &text);
        }
        Ok(())
    }

    /// The plan file, which holds the spec that it leads to.
    pub(super) fn plan_file(&mut self) -> Result<()> {
        let file = self.world.stage.plugin.home().join("plan.json");
        if let Ok(text) = std::fs::read_to_string(&file) {
            self.look(Surface::Plan, "the plan file", &text);
            let plan: Value = serde_json::from_str(&text)?;
            let planned = &plan["installations"];
            if planned[0].is_object() && !planned.to_string().contains(&self.case.name) {
                self.faults.push(format!("the plan lost a name: {text}"));
            }
        }
        Ok(())
    }

    /// All that others read: the record, Events, and what commands make of them.
    pub(super) async fn read_all(&mut self) -> Result<()> {
        let name = self.case.name.clone();
        let stage = &self.world.stage;
        // Where there is nothing to plan, none is written.
        let _ = std::fs::remove_file(stage.plugin.home().join("plan.json"));
        let record = stage.record(&name).await?;
        let events = stage.kubectl(&["get", "events", "-o", "json"]).await?;
        self.look(Surface::Record, "the record", &without_values(&record));
        // Other controllers write Events, too, and none of them has a value.
        self.look(Surface::Events, "an Event", &events.stdout);
        for line in [
            "list".to_owned(),
            "list -o json".to_owned(),
            format!("status {name}"),
            format!("status {name} -o json"),
        ] {
            let said = self.run(&line).await?;
            let text = format!("{}{}", said.stdout, said.stderr);
            self.look(Surface::Record, &line, &text);
            if !said.stdout.contains(&name) {
                self.odd(&format!("{line}: the name is masked"), &said);
            }
        }
        for line in [
            format!("diff {name}"),
            format!("plan {name} -o plan.json"),
            format!("values {name} --explain"),
        ] {
            let is_entered = self.case.is_entered() && line.starts_with("values");
            if !is_entered {
                self.run(&line).await?;
            }
        }
        self.plan_file()?;
        self.names_survive(&record);
        Ok(())
    }

    /// Names and versions are not masked, although the Secret has the same texts as values.
    fn names_survive(&mut self, record: &Value) {
        let status = &record["status"];
        let is_installed = status.pointer("/installed/version").is_some();
        if is_installed && status["installed"]["version"] != VERSION {
            self.faults.push(format!("the version is masked: {status}"));
        }
        let inventory = status["inventory"].to_string();
        let is_recorded = inventory.contains(&self.case.name);
        let is_release = self.case.method == Method::Release;
        if is_installed && !is_recorded && !is_release {
            self.faults
                .push(format!("the inventory lost a name: {status}"));
        }
    }

    /// What the plugin sent: values belong into objects, and nowhere else.
    pub(super) fn search_requests(&mut self, before: usize) {
        let sent = self.world.proxy.requests().split_off(before);
        let ours = sent
            .into_iter()
            .filter(|seen| seen.agent.starts_with("kubectl-addons"));
        for seen in ours {
            let path = seen.uri.split('?').next().unwrap_or_default();
            self.look(Surface::Events, "a URL", &seen.uri);
            let is_ours = path.contains("/kubectl-addons.dev/");
            let is_object = path.contains(&self.case.name) && !is_ours;
            if !is_object {
                let body = String::from_utf8_lossy(&seen.body);
                let body = serde_json::from_str(&body)
                    .map_or_else(|_| body.into_owned(), |body| without_values(&body));
                self.look(Surface::Requests, &format!("{} {path}", seen.method), &body);
            }
        }
    }

    /// The cache, and what was left of temporary files.
    pub(super) fn search_files(&mut self) -> Result<()> {
        let cache = self.world.stage.plugin.home().join("cache");
        for file in files(&cache) {
            let text = String::from_utf8_lossy(&std::fs::read(&file)?).into_owned();
            self.look(Surface::Files, &file.display().to_string(), &text);
        }
        let left = files(&self.world.temporary);
        if !left.is_empty() {
            self.faults.push(format!("temporary files stay: {left:?}"));
        }
        Ok(())
    }
}

/// A record, or a revision of it, without what its owner wrote into it.
fn without_values(record: &Value) -> String {
    let mut record = record.clone();
    let is_revision = record["kind"] == "ControllerRevision";
    let spec = if is_revision { "/data/spec" } else { "/spec" };
    if let Some(spec) = record.pointer_mut(spec).and_then(Value::as_object_mut) {
        spec.remove("values");
    }
    if let Some(metadata) = record.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    record.to_string()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
