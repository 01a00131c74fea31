//! The objects that a chart reads with `lookup`: only live objects that its own installation created, read with the caller's rights on
//! demand (semantics 12.19).

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use addons_engine::{Cluster, live};
use addons_helm::lookup::{LookupQuery, LookupQuestion};
use addons_plan::inventory::{Inventory, InventoryItem};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::api::installation::ObjectState;
use common::api::names::{LABEL_OWNER, owner_hash};
use common::manifest::key::{Gvk, ObjectKey};
use common::manifest::kinds::KindTable;
use common::text::list_first;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc};

use crate::context::Context;
use crate::error::OperationError;
use crate::resolve::resolved::Resolved;

/// How many objects the renderings of one chart may read.
const MAX_OBJECTS: usize = 500;
/// How many bytes of JSON they may have.
const MAX_BYTES: usize = 32 << 20;
/// How many objects a warning names.
const MAX_NAMED: usize = 3;

/// The objects that `lookup` may read for an installation.
pub(crate) struct LookupSource<'a> {
    cluster: &'a Cluster,
    kinds: Arc<KindTable>,
    inventory: Inventory,
    /// The value of the owner label.
    owner: String,
    read: Mutex<LookupCache>,
}

/// The objects that were read so far, each once, even if the chart is rendered twice.
#[derive(Default)]
struct LookupCache {
    objects: BTreeMap<(Gvk, ObjectKey), Option<Value>>,
    /// The names of objects that this installation does not own, or that do not exist.
    missing: BTreeSet<String>,
    bytes: usize,
    error: Option<OperationError>,
}

/// What a chart looked up.
#[derive(Default)]
pub(crate) struct LookupSummary {
    /// The warning for the plan.
    pub(crate) line: Option<String>,
    /// The content of Secrets.
    pub(crate) secrets: Vec<Value>,
}

impl<'a> LookupSource<'a> {
    /// Returns `None` if nothing is recorded, and so nothing can be found.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub(crate) async fn for_installation(
        ctx: &'a Context,
        resolved: &Resolved,
    ) -> Result<Option<Self>, OperationError> {
        let existing = resolved.existing.as_ref();
        let status = existing.and_then(|record| record.status.as_ref());
        let Some(status) = status.filter(|status| !status.inventory.is_empty()) else {
            return Ok(None);
        };
        let cluster = ctx.cluster().await?;
        // Rendering needs the API versions anyway, and reading them refreshes the kinds.
        ctx.api_versions().await?;
        Ok(Some(Self {
            cluster,
            kinds: cluster.kinds(&BTreeSet::new()).await?,
            inventory: Inventory::from_groups(&status.inventory),
            owner: owner_hash(&resolved.name.namespace, &resolved.name.name),
            read: Mutex::default(),
        }))
    }

    pub(crate) fn kinds(&self) -> &KindTable {
        &self.kinds
    }

    /// Answers lookups until the work is done.
    pub(crate) async fn answer_during<T>(
        &self,
        mut questions: mpsc::Receiver<LookupQuestion>,
        work: impl Future<Output = T>,
    ) -> T {
        let answers = async {
            while let Some(LookupQuestion { query, answer }) = questions.recv().await {
                // Helm may have been stopped in the meantime.
                let _ = answer.send(self.find(query).await);
            }
            std::future::pending().await
        };
        tokio::select! {
            done = work => done,
            done = answers => done,
        }
    }

    /// Returns the objects that match a query, or the error as text for helm.
    async fn find(&self, query: LookupQuery) -> Result<Vec<Value>, String> {
        let mut read = self.read.lock().await;
        let mut found = Vec::new();
        for (key, item) in self.find_recorded(&query) {
            let entry = (query.gvk.clone(), key.clone());
            if !read.objects.contains_key(&entry) {
                let object = self.read_live(&query.gvk, key, item).await;
                let object = object.map_err(|error| read.keep_first_error(error))?;
                read.insert(entry.clone(), object)?;
            }
            found.extend(read.objects.get(&entry).cloned().flatten());
        }
        if let (Some(name), true) = (query.name, found.is_empty()) {
            let key = ObjectKey {
                group: query.gvk.group,
                kind: query.gvk.kind,
                namespace: query.namespace,
                name,
            };
            read.missing.insert(key.to_string());
        }
        Ok(found)
    }

    /// Returns the recorded objects that match a query. Objects that existed before the installation are not its own.
    fn find_recorded<'q>(
        &'q self,
        query: &'q LookupQuery,
    ) -> impl Iterator<Item = (&'q ObjectKey, &'q InventoryItem)> {
        let objects = self.inventory.objects.iter();
        objects.filter(|(key, item)| {
            let is_own = item.object.state != ObjectState::Preexisting;
            let is_of_kind = (&key.group, &key.kind) == (&query.gvk.group, &query.gvk.kind);
            let is_there = match &query.name {
                Some(name) => key.name == *name && key.namespace == query.namespace,
                None => query.namespace.is_none() || key.namespace == query.namespace,
            };
            is_own && is_of_kind && is_there
        })
    }

    /// Returns the live object, if the installation still owns it.
    async fn read_live(
        &self,
        gvk: &Gvk,
        key: &ObjectKey,
        item: &InventoryItem,
    ) -> Result<Option<Value>, OperationError> {
        let Some(info) = self.kinds.get(gvk) else {
            return Ok(None);
        };
        let namespace = key.namespace.as_deref();
        let object = live::get(self.cluster, gvk, info, namespace, &key.name).await;
        let object = object.map_err(|error| OperationError::LookupUnreadable {
            object: key.to_string(),
            error,
        })?;
        Ok(object.filter(|object| {
            let metadata = &object["metadata"];
            // A planned object has no recorded uid, but carries our label if an interrupted operation created it.
            let is_same = item.object.state == ObjectState::Planned
                || metadata["uid"] == item.object.uid.as_str();
            is_same && metadata["labels"][LABEL_OWNER] == self.owner.as_str()
        }))
    }

    /// Returns a summary of what was looked up.
    ///
    /// # Errors
    /// An object could not be read.
    pub(crate) fn into_summary(self) -> Result<LookupSummary, OperationError> {
        let read = self.read.into_inner();
        if let Some(error) = read.error {
            return Err(error);
        }
        let found = read.objects.iter().filter(|(_, object)| object.is_some());
        let found: BTreeSet<String> = found.map(|((_, key), _)| key.to_string()).collect();
        let objects = read.objects.iter();
        let secrets = objects.filter(|((_, key), _)| key.is_secret());
        Ok(LookupSummary {
            line: describe(&found, &read.missing),
            secrets: secrets
                .filter_map(|(_, object)| object.as_ref())
                .flat_map(secret_values)
                .collect(),
        })
    }
}

impl LookupSummary {
    /// Removes from the secrets the words that the chart or its values contain (`user: admin`). If they were masked, every name that
    /// contains them would be masked, and no object with one of them could be recognised as unchanged.
    pub(crate) fn drop_chart_words<'t>(&mut self, texts: impl Iterator<Item = &'t [u8]>) {
        if self.secrets.is_empty() {
            return;
        }
        let is_part = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        let texts: Vec<_> = texts.map(String::from_utf8_lossy).collect();
        let words = texts.iter().flat_map(|text| text.split(|c| !is_part(c)));
        let words: HashSet<&str> = words.collect();
        let is_word = |value: &Value| {
            value
                .as_str()
                .is_some_and(|text| words.contains(text.trim()))
        };
        self.secrets.retain(|value| !is_word(value));
    }
}

impl LookupCache {
    /// Keeps the first error: helm would only repeat its text.
    fn keep_first_error(&mut self, error: OperationError) -> String {
        let words = error.chain();
        self.error.get_or_insert(error);
        words
    }

    fn insert(&mut self, key: (Gvk, ObjectKey), object: Option<Value>) -> Result<(), String> {
        let size = object.as_ref().map(|object| object.to_string().len());
        self.bytes = self.bytes.saturating_add(size.unwrap_or_default());
        self.objects.insert(key, object);
        if self.objects.len() > MAX_OBJECTS || self.bytes > MAX_BYTES {
            return Err(format!(
                "the chart looks up more than {MAX_OBJECTS} objects or {} MiB",
                MAX_BYTES >> 20
            ));
        }
        Ok(())
    }
}

/// Returns the values of a Secret, as text if they are text.
fn secret_values(secret: &Value) -> impl Iterator<Item = Value> {
    let data = secret.get("data").and_then(Value::as_object);
    let values = data.into_iter().flatten().map(|(_, value)| value);
    values.map(|value| {
        let bytes = value.as_str().and_then(|text| STANDARD.decode(text).ok());
        let plain = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        plain.map_or_else(|| value.clone(), Value::from)
    })
}

/// Returns the warning for the plan, or `None` if nothing was looked up.
fn describe(found: &BTreeSet<String>, missing: &BTreeSet<String>) -> Option<String> {
    let parts = [("found", found), ("not found", missing)];
    let parts = parts.into_iter().filter(|(_, objects)| !objects.is_empty());
    let parts: Vec<String> = parts
        .map(|(what, objects)| format!("{what}: {}", list_first(objects, MAX_NAMED)))
        .collect();
    let begin = "`lookup` in the chart reads live objects of this installation only";
    (!parts.is_empty()).then(|| format!("{begin}; {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_chart_spells_out_stays_readable() {
        let secret = json!({"data": {
            "user": STANDARD.encode("admin"), "password": STANDARD.encode("q9xKw2\n"), "key": "//79/A==", "url": STANDARD.encode("a://b"),
        }});
        let mut seen = LookupSummary {
            line: None,
            secrets: secret_values(&secret).collect(),
        };
        let chart = "adminUser: admin\nusers: [q9xKw2x]\n".as_bytes();
        seen.drop_chart_words([chart, b"{\"a\":\"b\"}"].into_iter());
        let expected = [json!("//79/A=="), json!("q9xKw2\n"), json!("a://b")];
        assert_eq!(seen.secrets, expected);
    }

    #[test]
    fn the_line_names_what_was_asked_for() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(describe(&BTreeSet::new(), &BTreeSet::new()), None);
        let said = describe(&names(&["a/Secret a"]), &names(&["b", "c", "d", "e", "f"]));
        let expected = "`lookup` in the chart reads live objects of this installation only; found: a/Secret a; \
            not found: b, c, d and 2 more";
        assert_eq!(said.as_deref(), Some(expected));
    }
}
