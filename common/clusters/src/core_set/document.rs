//! Reads the ConfigMaps `core-addon-rules` and `custom-core-addons`. This is strict: an unknown field is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::SignedDuration;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::UnknownCoreSet;
use super::rollout::{self, CoreRollout};
use common::api::names::{CORE_ADDON_RULES, CUSTOM_CORE_ADDONS, installation_name};
use common::expression::profile::{self, Profile};
use common::manifest::yaml::{YamlOptions, documents};

/// The key of the rules in their ConfigMap.
pub const KEY_RULES: &str = "rules.yaml";
/// The key of the rollout in the ConfigMap of the rules.
pub const KEY_ROLLOUT: &str = "rollout";
/// The key of the list in its ConfigMap.
pub const KEY_ADDONS: &str = "addons.yaml";

/// The most rules, and the most add-ons of one list.
const MOST: usize = 500;
/// The most bytes of one text: the limit of the API server for a whole ConfigMap.
const LONGEST: usize = 1 << 20;
/// The most steps of all conditions together. Each condition has at most [`common::expression::STEPS`].
const STEPS: u64 = 5_000_000;

/// The rules and the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CoreDocument {
    /// The rules.
    pub rules: Vec<CoreRule>,
    /// The list of the cluster's administrators.
    pub custom: Vec<ListedAddon>,
}

/// An add-on of the list, and the clusters that it is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedAddon {
    /// The add-on.
    pub addon: CoreAddon,
    /// The labels that the namespaces of its clusters have; `None` = it is for every cluster but the one with the list.
    pub clusters: Option<BTreeMap<String, String>>,
}

impl ListedAddon {
    /// Whether the add-on is for a cluster.
    #[must_use]
    pub fn is_for(&self, profile: &Profile) -> bool {
        match &self.clusters {
            None => !profile.is_home,
            Some(labels) => labels.iter().all(|(key, value)| {
                profile.labels.as_ref().and_then(|known| known.get(key)) == Some(value)
            }),
        }
    }
}

/// A rule: add-ons for all clusters in which a condition holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreRule {
    /// The name of the rule.
    pub name: String,
    /// The condition.
    pub when: String,
    /// The add-ons.
    pub addons: Vec<CoreAddon>,
}

/// A core add-on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreAddon {
    /// The name of the add-on.
    pub name: String,
    /// The version; `None` = the newest that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The catalogue; `None` = any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<String>,
    /// The digest of the entry, in a catalogue of any class; `None` = an entry of class Core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The values.
    #[serde(
        default,
        deserialize_with = "values",
        skip_serializing_if = "Option::is_none"
    )]
    pub values: Option<Map<String, Value>>,
}

/// Reads the values of an add-on. An error does not repeat them.
fn values<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Map<String, Value>>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::Object(values) => Ok(Some(values)),
        _ => Err(D::Error::custom("values: it is not a map")),
    }
}

/// The rollout, as written in the ConfigMap.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenRollout {
    canary: Option<usize>,
    first: Option<Vec<String>>,
    max_unavailable: Option<Value>,
    soak: Option<String>,
    deadline: Option<String>,
    failures: Option<usize>,
}

/// Reads the rollout. Fields that are not set are as in [`rollout::DEFAULT`].
///
/// # Errors
/// [`UnknownCoreSet::Malformed`].
pub fn read_rollout(text: Option<&str>) -> Result<CoreRollout, UnknownCoreSet> {
    let key = DocumentKey {
        config_map: CORE_ADDON_RULES,
        key: KEY_ROLLOUT,
    };
    let Some(written) = key.read_single(text, "map")? else {
        return Ok(rollout::DEFAULT);
    };
    if !written.is_object() {
        return Err(key.malformed(String::new(), "it is not one map".to_owned()));
    }
    let written: WrittenRollout = serde_json::from_value(written)
        .map_err(|error| key.malformed(String::new(), error.to_string()))?;
    let mut waves = rollout::DEFAULT;
    waves.first = written.first.unwrap_or_default();
    waves.failures = written.failures.unwrap_or(waves.failures);
    let read = &mut waves.rollout;
    read.canaries = written.canary.unwrap_or(read.canaries);
    if let Some(most) = written.max_unavailable {
        let most = most
            .as_str()
            .map_or_else(|| most.to_string(), str::to_owned);
        let most = most.parse();
        let most = most.map_err(|error: crate::fleet::MaxUnavailableError| {
            key.malformed(".maxUnavailable".to_owned(), error.to_string())
        })?;
        read.max_unavailable = Some(most);
    }
    for (field, text, time) in [
        (".soak", written.soak, &mut read.soak),
        (".deadline", written.deadline, &mut waves.deadline),
    ] {
        let Some(text) = text else {
            continue;
        };
        let parsed: Option<SignedDuration> = text.parse().ok();
        let parsed = parsed.and_then(|parsed| Duration::try_from(parsed).ok());
        *time = parsed.ok_or_else(|| {
            let problem = format!("{text:?} is not a duration; write it as 5m or 30s");
            key.malformed(field.to_owned(), problem)
        })?;
    }
    Ok(waves)
}

impl CoreDocument {
    /// Reads the texts of the two keys; `None` = the ConfigMap or its key is missing. Every condition is checked against
    /// [`Profile::sample`].
    ///
    /// # Errors
    /// [`UnknownCoreSet::Missing`]; [`UnknownCoreSet::Malformed`]; [`UnknownCoreSet::Condition`] for a condition that has no result for the sample.
    pub fn read(rules: Option<&str>, addons: Option<&str>) -> Result<Self, UnknownCoreSet> {
        let custom = read_addons(addons)?;
        let rules = read_rules(rules)?;
        Ok(Self { rules, custom })
    }
}

/// Reads the list.
///
/// # Errors
/// As [`CoreDocument::read`].
pub fn read_addons(text: Option<&str>) -> Result<Vec<ListedAddon>, UnknownCoreSet> {
    let key = DocumentKey {
        config_map: CUSTOM_CORE_ADDONS,
        key: KEY_ADDONS,
    };
    let mut listed = Vec::new();
    for (index, mut element) in key.read_list::<Value>(text)?.into_iter().enumerate() {
        let clusters = element.as_object_mut().and_then(|it| it.remove("clusters"));
        let malformed =
            |field: &str, problem: String| key.malformed(format!("[{index}]{field}"), problem);
        let clusters: Option<BTreeMap<String, String>> = serde_json::from_value(clusters.into())
            .map_err(|error| malformed(".clusters", error.to_string()))?;
        if clusters.as_ref().is_some_and(BTreeMap::is_empty) {
            let problem =
                "it is empty; name labels of namespaces, or leave it out for every other cluster";
            return Err(malformed(".clusters", problem.to_owned()));
        }
        let addon: CoreAddon =
            serde_json::from_value(element).map_err(|error| malformed("", error.to_string()))?;
        listed.push(ListedAddon { addon, clusters });
    }
    key.check_names(listed.iter().map(|it| &it.addon), "")?;
    Ok(listed)
}

/// Reads the rules.
///
/// # Errors
/// As [`CoreDocument::read`].
pub fn read_rules(text: Option<&str>) -> Result<Vec<CoreRule>, UnknownCoreSet> {
    let key = DocumentKey {
        config_map: CORE_ADDON_RULES,
        key: KEY_RULES,
    };
    let rules: Vec<CoreRule> = key.read_list(text)?;
    let (mut names, mut steps) = (BTreeSet::new(), 0_u64);
    for (index, rule) in rules.iter().enumerate() {
        if rule.name.is_empty() || !names.insert(&rule.name) {
            let problem = format!("{:?} is not a name of one rule alone", rule.name);
            return Err(key.malformed(format!("[{index}].name"), problem));
        }
        key.check_names(rule.addons.iter(), &format!("[{index}].addons"))?;
        let when = profile::compile(&rule.when).map_err(|problem| UnknownCoreSet::Condition {
            rule: rule.name.clone(),
            problem,
        })?;
        steps = steps.saturating_add(when.steps());
        if steps > STEPS {
            let problem = format!(
                "the conditions up to this one may take {steps} steps, and {STEPS} are allowed: write fewer comprehensions and regular expressions"
            );
            return Err(key.malformed(format!("[{index}].when"), problem));
        }
    }
    Ok(rules)
}

/// A key of a ConfigMap.
struct DocumentKey {
    config_map: &'static str,
    key: &'static str,
}

impl DocumentKey {
    fn malformed(&self, path: String, problem: String) -> UnknownCoreSet {
        UnknownCoreSet::Malformed {
            config_map: self.config_map,
            key: self.key,
            path,
            problem,
        }
    }

    /// Reads the single YAML document of the key; `None` if there is none. `kind`: the kind that it must have, for messages.
    fn read_single(&self, text: Option<&str>, kind: &str) -> Result<Option<Value>, UnknownCoreSet> {
        let (text, mut found) = (text.unwrap_or_default(), None);
        if text.len() > LONGEST {
            let problem = format!("{} bytes; {LONGEST} are allowed", text.len());
            return Err(self.malformed(String::new(), problem));
        }
        for document in documents(text.as_bytes(), &YamlOptions::default()) {
            let document = document.map_err(|error| {
                self.malformed(format!(", line {}", error.line), error.problem.to_string())
            })?;
            if document.value.is_null() {
                continue;
            }
            if found.replace(document.value).is_some() {
                return Err(self.malformed(String::new(), format!("it is not one {kind}")));
            }
        }
        Ok(found)
    }

    /// Reads the elements of a YAML list.
    fn read_list<T: DeserializeOwned>(&self, text: Option<&str>) -> Result<Vec<T>, UnknownCoreSet> {
        let elements = match self.read_single(text, "list")? {
            None => {
                return Err(UnknownCoreSet::Missing {
                    config_map: self.config_map,
                    key: self.key,
                });
            }
            Some(Value::Array(elements)) => elements,
            Some(_) => {
                return Err(self.malformed(String::new(), "it is not one list".to_owned()));
            }
        };
        if elements.len() > MOST {
            let problem = format!("{} elements; {MOST} are allowed", elements.len());
            return Err(self.malformed(String::new(), problem));
        }
        let elements = elements.into_iter().enumerate();
        elements
            .map(|(index, element)| {
                serde_json::from_value(element)
                    .map_err(|error| self.malformed(format!("[{index}]"), error.to_string()))
            })
            .collect()
    }

    /// Checks that each add-on has a name and is listed only once.
    fn check_names<'a>(
        &self,
        addons: impl Iterator<Item = &'a CoreAddon>,
        path: &str,
    ) -> Result<(), UnknownCoreSet> {
        let mut names = BTreeSet::new();
        for (index, addon) in addons.enumerate() {
            let problem = if addon.name.is_empty() {
                "it is empty".to_owned()
            } else if !names.insert(installation_name(&addon.name)) {
                format!("{} is listed twice", addon.name)
            } else {
                continue;
            };
            return Err(self.malformed(format!("{path}[{index}].name"), problem));
        }
        Ok(())
    }
}
