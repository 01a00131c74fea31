//! The effect of a changed CRD on live objects: counted, listed, and refused unless the user accepts it.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CrdComparison, ImpossibleChange, SchemaChange, SchemaEffect};
use crate::{InstallationPlan, Verb};
use common::api::names::InstallationName;
use common::manifest::key::ObjectKey;
use common::text::and_more;
use common::values::mask::SecretMask;

/// The maximum number of objects to list by name.
const MAX_NAMED: usize = 5;

/// The effect of a changed CRD on the live objects of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Breakage {
    /// The definition.
    pub definition: ObjectKey,
    /// Kind of its objects.
    pub kind: String,
    /// Changes that the API server refuses, whatever the user accepts.
    pub impossible: Vec<ImpossibleChange>,
    /// Changes that break live objects, or may break objects that were not read, as sentences.
    pub changes: Vec<String>,
    /// Objects that lose data.
    pub loses: AffectedObjects,
    /// Objects that become invalid but lose no data.
    pub invalid: AffectedObjects,
    /// Why some live objects could not be read. It is then unknown whether they break.
    pub unseen: Option<String>,
}

/// The changes of one CRD that break no live object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HarmlessChanges {
    /// The definition.
    pub definition: ObjectKey,
    /// Removed fields that no live object sets, as sentences.
    pub removed: Vec<String>,
    /// Other changes that forbid what no live object has, as sentences.
    pub narrowed: Vec<String>,
    /// Rules that only the API server can evaluate, as sentences.
    pub unjudged: Vec<String>,
}

/// What a scan of the live objects found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanResult {
    /// Changes that break objects, or may break those that were not read.
    pub breakage: Option<Breakage>,
    /// Changes that break none.
    pub harmless: Option<HarmlessChanges>,
    /// What clients of the kind have to do, as sentences.
    pub warnings: Vec<String>,
}

/// Affected objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AffectedObjects {
    /// The first names, as `namespace/name`, sorted.
    pub names: Vec<String>,
    /// Their total number.
    pub count: usize,
}

/// A plan that is refused because of changed CRDs. Exit code 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BreakageError {
    /// The API server refuses the changes.
    #[error("the {} of {} cannot be done: {}", noun(*verb), installation.name, joined(reasons))]
    Impossible {
        /// The installation.
        installation: InstallationName,
        /// The operation that was planned.
        verb: Verb,
        /// The CRDs, and the changes that the API server refuses.
        reasons: Vec<(ObjectKey, ImpossibleChange)>,
    },
    /// Live objects would break, and the user did not accept this.
    #[error("the {} of {} would {harm}", noun(*verb), installation.name)]
    Breaks {
        /// The installation.
        installation: InstallationName,
        /// The operation that was planned.
        verb: Verb,
        /// `lose data in 3 Certificates (default/web, default/api, shop/web)`.
        harm: String,
    },
}

/// Checks live objects, page by page, against the changes of one CRD.
#[derive(Debug)]
pub struct ObjectScan {
    comparison: CrdComparison,
    /// How many objects each change breaks.
    counts: Vec<usize>,
    loses: BTreeSet<String>,
    invalid: BTreeSet<String>,
    object_count: usize,
    has_more: bool,
}

impl ObjectScan {
    /// Starts a scan without objects.
    #[must_use]
    pub fn new(comparison: CrdComparison) -> Self {
        Self {
            counts: vec![0; comparison.changes.len()],
            comparison,
            loses: BTreeSet::new(),
            invalid: BTreeSet::new(),
            object_count: 0,
            has_more: false,
        }
    }

    /// Checks objects that were read in `version`.
    pub fn check_objects(&mut self, version: &str, objects: &[Value]) {
        self.object_count = self.object_count.saturating_add(objects.len());
        for object in objects {
            for (change, count) in self.comparison.changes.iter().zip(&mut self.counts) {
                if change.version == version && change.breaks(object) {
                    *count += 1;
                    let hurt = if change.loses_data() {
                        &mut self.loses
                    } else {
                        &mut self.invalid
                    };
                    hurt.insert(name_of(object));
                }
            }
        }
    }

    /// Records that not all objects were read: it is unknown whether the others break.
    pub fn mark_incomplete(&mut self) {
        self.has_more = true;
    }

    /// Ends the scan. `unseen` says why objects could not be read.
    #[must_use]
    pub fn finish(self, unseen: Option<String>) -> ScanResult {
        let definition = &self.comparison.definition;
        let more = || {
            format!(
                "there are more of them than the {} that were read",
                self.object_count
            )
        };
        let unseen = unseen.or_else(|| self.has_more.then(more));
        let mut changes = Vec::new();
        let mut harmless = HarmlessChanges {
            definition: definition.clone(),
            unjudged: self.comparison.unjudged.clone(),
            ..HarmlessChanges::default()
        };
        for (change, count) in self.comparison.changes.iter().zip(&self.counts) {
            match count {
                0 if unseen.is_some() => changes.push(change.to_string()),
                0 => {
                    let words = format!("{change}, {}", change.describe_harmless());
                    match change.what {
                        SchemaEffect::Removed => harmless.removed.push(words),
                        _ => harmless.narrowed.push(words),
                    }
                }
                count => changes.push(format!("{change}, {}", self.describe_count(change, *count))),
            }
        }
        let unserved = self.comparison.unserved.iter();
        let warnings = unserved.map(|words| format!("{definition}: {words}"));
        let warnings = warnings.collect();
        let breakage = Breakage {
            definition: definition.clone(),
            kind: self.comparison.kind.clone(),
            changes,
            invalid: AffectedObjects::from_names(self.invalid.difference(&self.loses)),
            loses: AffectedObjects::from_names(&self.loses),
            unseen: unseen.filter(|_| !self.comparison.changes.is_empty()),
            impossible: self.comparison.impossible,
        };
        ScanResult {
            breakage: Some(breakage).filter(Breakage::has_effect),
            harmless: Some(harmless).filter(HarmlessChanges::has_any),
            warnings,
        }
    }

    fn describe_count(&self, change: &SchemaChange, count: usize) -> String {
        let least = if self.has_more { "at least " } else { "" };
        let objects = if count == 1 { "object" } else { "objects" };
        change.describe_breaking(&format!("{least}{count} live {objects}"), count)
    }
}

impl Breakage {
    fn has_effect(&self) -> bool {
        !self.impossible.is_empty() || !self.changes.is_empty() || self.unseen.is_some()
    }

    /// Describes the changes that the user has to know about, one per line. If no object could be read, any of them may break some, and only
    /// the first ones are named.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let impossible = self.impossible.iter().map(ToString::to_string);
        let most = self.unseen.as_ref().map_or(usize::MAX, |_| MAX_NAMED);
        let named = self.changes.iter().take(most).cloned();
        let more = self.changes.len().saturating_sub(most);
        let more = (more > 0).then(|| format!("{more} more changes that forbid what was allowed"));
        let unseen = self.unseen.iter();
        let unseen = unseen.map(|why| format!("whether live objects break cannot be seen: {why}"));
        impossible
            .chain(named)
            .chain(more)
            .chain(unseen)
            .map(|words| format!("{}: {words}", self.definition))
            .collect()
    }

    /// Returns the breakage with values of Secrets masked.
    #[must_use]
    pub fn masked(mut self, mask: &SecretMask) -> Self {
        let impossible = self.impossible.iter_mut().flat_map(ImpossibleChange::texts);
        let texts = impossible.chain(&mut self.changes);
        for text in texts.chain(&mut self.unseen) {
            *text = mask.mask_text(text);
        }
        self
    }

    pub(super) fn describe_harm(&self) -> Vec<String> {
        let kind = |count| count_kind(count, &self.kind);
        let mut harm = Vec::new();
        if self.loses.count > 0 {
            let lost = &self.loses;
            harm.push(format!("lose data in {} ({lost})", kind(lost.count)));
        }
        if self.invalid.count > 0 {
            let invalid = &self.invalid;
            harm.push(format!("make {} invalid ({invalid})", kind(invalid.count)));
        }
        if let Some(why) = &self.unseen {
            harm.push(format!("perhaps break {} ({why})", plural(&self.kind)));
        }
        harm
    }
}

impl HarmlessChanges {
    /// Returns all of them: first what is removed.
    pub fn sentences(&self) -> impl Iterator<Item = &String> {
        let narrowed = self.narrowed.iter().chain(&self.unjudged);
        self.removed.iter().chain(narrowed)
    }

    fn has_any(&self) -> bool {
        self.sentences().next().is_some()
    }

    /// Returns the changes with values of Secrets masked.
    #[must_use]
    pub fn masked(mut self, mask: &SecretMask) -> Self {
        let all = [&mut self.removed, &mut self.narrowed, &mut self.unjudged];
        for text in all.into_iter().flatten() {
            *text = mask.mask_text(text);
        }
        self
    }
}

impl AffectedObjects {
    fn from_names<'a>(names: impl IntoIterator<Item = &'a String>) -> Self {
        let names: Vec<&String> = names.into_iter().collect();
        Self {
            count: names.len(),
            names: names.into_iter().take(MAX_NAMED).cloned().collect(),
        }
    }
}

impl fmt::Display for AffectedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.count.saturating_sub(self.names.len());
        write!(f, "{}{}", self.names.join(", "), and_more(rest))
    }
}

impl InstallationPlan {
    /// Returns the changes of a definition that break no live object, if there are any.
    #[must_use]
    pub fn harmless_changes(&self, definition: &ObjectKey) -> Option<&HarmlessChanges> {
        let mut all = self.harmless.iter();
        all.find(|harmless| harmless.definition == *definition)
    }

    /// Refuses the plan if its changed CRDs break live objects and the user did not accept this (`accepted`), or if the API server refuses
    /// them.
    ///
    /// # Errors
    /// [`BreakageError`].
    pub fn check_breakages(&self, accepted: bool) -> Result<(), BreakageError> {
        let reasons = self.breakages.iter().flat_map(|breakage| {
            let reasons = breakage.impossible.iter().cloned();
            reasons.map(|reason| (breakage.definition.clone(), reason))
        });
        let reasons: Vec<_> = reasons.collect();
        if !reasons.is_empty() {
            return Err(BreakageError::Impossible {
                installation: self.installation.clone(),
                verb: self.verb,
                reasons,
            });
        }
        let harm: Vec<String> = self
            .breakages
            .iter()
            .flat_map(Breakage::describe_harm)
            .collect();
        if accepted || harm.is_empty() {
            return Ok(());
        }
        Err(BreakageError::Breaks {
            installation: self.installation.clone(),
            verb: self.verb,
            harm: harm.join(" and "),
        })
    }
}

fn noun(verb: Verb) -> &'static str {
    match verb {
        Verb::Install => "installation",
        Verb::Upgrade => "upgrade",
        Verb::Rollback => "rollback",
        Verb::Adopt => "adoption",
        Verb::Uninstall => "uninstallation",
        Verb::Release => "release",
    }
}

fn joined(reasons: &[(ObjectKey, ImpossibleChange)]) -> String {
    let reasons = reasons.iter();
    let reasons = reasons.map(|(definition, reason)| format!("{definition}: {reason}"));
    reasons.collect::<Vec<_>>().join("; ")
}

fn name_of(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or_default();
    match text("/metadata/namespace") {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// `1 Certificate`, `3 Policies`.
pub(crate) fn count_kind(count: usize, kind: &str) -> String {
    match count {
        1 => format!("1 {kind}"),
        count => format!("{count} {}", plural(kind)),
    }
}

fn plural(kind: &str) -> String {
    let before_y = kind
        .strip_suffix('y')
        .filter(|rest| !rest.ends_with(['a', 'e', 'i', 'o', 'u']));
    if let Some(rest) = before_y {
        format!("{rest}ies")
    } else if kind.ends_with(['s', 'x']) || kind.ends_with("ch") || kind.ends_with("sh") {
        format!("{kind}es")
    } else {
        format!("{kind}s")
    }
}
