//! The changes of a plan as a reviewer reads them: a line for every decision, what may cost most first.
//!
//! - [`list_decisions`]: the lines. The confirmation, `diff`, the page and the text for a pull request show the same ones.
//! - [`list_objects`]: the objects one by one, with lines below each.

pub mod field;

use addons_plan::InstallationPlan;
use addons_plan::changes::{FieldChange, ObjectChange, ObjectDiff};
use addons_plan::review::definition::{self, DefinitionChange};
use addons_plan::review::rights::{self, Grant, RightsChange};
use addons_plan::review::{
    self, ImageChange, MarkCount, Review, ReviewedObject, changes_only_marks, is_mark,
};
use addons_plan::summary;
use common::text::{and_more, list_first};
use jiff::Timestamp;

use super::plan::{MAX_LISTED_OBJECTS, count_objects};

/// How many grants of one role, and fields of one object, a line names.
const MAX_NAMED: usize = 4;
/// Why pods restart of which only marks change.
const RESTARTED_FOR_MARKS: &str = "for a label or checksum of its pods";
/// How many objects that use an image are named.
const MAX_USERS: usize = 2;
/// How many changed fields of a definition are listed one by one; more are counted.
const MAX_SCHEMA_FIELDS: usize = 5;

/// A line of a review: `images    docker.io/web  1.0 → 1.1  (Deployment web)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the line is about: `rights`, `images`, `restarts`, `changes`, `schemas` or `marks`.
    pub word: &'static str,
    /// The rest of the line.
    pub text: String,
}

/// Lists what a plan changes, in the order in which to review it. New objects are not in it, except their rights and images.
pub fn list_decisions(review: &Review, plan: &InstallationPlan) -> Vec<Decision> {
    let line = |word| move |text| Decision { word, text };
    let rights = review.rights.iter().flat_map(|rights| {
        let lines = name_rights(rights, MAX_NAMED).into_iter();
        lines.map(|line| format!("{}  {line}", rights.key))
    });
    let images = list_images(&review.images);
    let is_restarted = |object: &&ReviewedObject| object.restarts;
    let (restarted, others): (Vec<_>, Vec<_>) = review.workloads.iter().partition(is_restarted);
    // That a new image restarts its pods needs no line of its own.
    let is_only_image = |object: &&ReviewedObject| {
        let mut images = review.images.iter();
        object.fields.is_empty() && images.any(|image| image.objects.contains(&object.key))
    };
    let restarted = restarted.into_iter().filter(|it| !is_only_image(it));
    let restarts = list_changed(restarted.collect(), describe_restart);
    let others = others.into_iter().chain(&review.configuration);
    let changes = list_changed(others.collect(), |object| name_fields(&object.fields));
    let schemas = list_schemas(&review.definitions, plan);
    let marks = describe_marks(review.marks);
    let lines = rights.map(line("rights"));
    let lines = lines.chain(images.into_iter().map(line("images")));
    let lines = lines.chain(restarts.into_iter().map(line("restarts")));
    let lines = lines.chain(changes.into_iter().map(line("changes")));
    let lines = lines.chain(schemas.into_iter().map(line("schemas")));
    lines.chain(marks.into_iter().map(line("marks"))).collect()
}

/// Describes what a role or binding gains and loses: `gains get on secrets`.
fn name_rights(rights: &RightsChange, most: usize) -> Vec<String> {
    let grants = |word: &str, grants: &[Grant]| {
        let named: Vec<String> = grants.iter().take(most).map(Grant::to_string).collect();
        let more = and_more(grants.len().saturating_sub(most));
        (!grants.is_empty()).then(|| format!("{word} {}{more}", named.join("; ")))
    };
    let role = rights.bound_role.as_deref().unwrap_or("its role");
    let subjects = |word: &str, subjects: &[String]| {
        let named = (!subjects.is_empty()).then(|| list_first(subjects, most));
        named.map(|subjects| format!("{word} {subjects}"))
    };
    let lines = [
        grants("gains", &rights.gained),
        grants("loses", &rights.lost),
        subjects(&format!("gives {role} to"), &rights.bound),
        subjects(&format!("takes {role} from"), &rights.unbound),
    ];
    lines.into_iter().flatten().collect()
}

fn list_images(images: &[ImageChange]) -> Vec<String> {
    let shown = images.iter().take(MAX_LISTED_OBJECTS).map(|image| {
        let what = match (&image.old, &image.new) {
            (Some(old), Some(new)) => match (split_image(old), split_image(new)) {
                ((name, old), (same, new)) if name == same => format!("{name}  {old} → {new}"),
                _ => format!("{old} → {new}"),
            },
            (None, Some(new)) => format!("+ {new}"),
            (Some(old), None) => format!("- {old}"),
            (None, None) => String::new(),
        };
        let users = image.objects.iter();
        let users: Vec<String> = users
            .map(|key| format!("{} {}", key.kind, key.name))
            .collect();
        format!("{what}  ({})", list_first(users, MAX_USERS))
    });
    let mut lines: Vec<String> = shown.collect();
    if let Some(rest @ 1..) = images.len().checked_sub(MAX_LISTED_OBJECTS) {
        lines.push(format!("and {rest} more"));
    }
    lines
}

/// Splits an image into its name and its tag or digest, which is `latest` if it has none.
fn split_image(image: &str) -> (&str, &str) {
    if let Some(parts) = image.split_once('@') {
        return parts;
    }
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, tag),
        _ => (image, "latest"),
    }
}

/// Lists changed objects, or counts them by kind if they are many.
fn list_changed(
    objects: Vec<&ReviewedObject>,
    describe: impl Fn(&ReviewedObject) -> String,
) -> Vec<String> {
    if objects.len() > MAX_LISTED_OBJECTS {
        let kinds = summary::kinds(objects.iter().map(|object| &object.key));
        return vec![format!("{:<11} {kinds}", count_objects(objects.len()))];
    }
    let lines = objects.into_iter();
    lines
        .map(|object| match describe(object).as_str() {
            "" => object.key.to_string(),
            what => format!("{}  {what}", object.key),
        })
        .collect()
}

fn describe_restart(object: &ReviewedObject) -> String {
    match name_fields(&object.fields) {
        fields if fields.is_empty() => RESTARTED_FOR_MARKS.to_owned(),
        fields => fields,
    }
}

fn name_fields(fields: &[FieldChange]) -> String {
    let named: Vec<String> = fields.iter().map(field::name_field).collect();
    list_first(named, MAX_NAMED)
}

/// Describes each changed definition, or all together if they are many.
fn list_schemas(definitions: &[DefinitionChange], plan: &InstallationPlan) -> Vec<String> {
    let lines = |definition: &DefinitionChange| {
        let what = describe_definition(definition, plan);
        format!("{}  {what}", definition.key.name)
    };
    if definitions.len() <= MAX_NAMED {
        return definitions.iter().map(lines).collect();
    }
    // What removes a version is never only counted.
    let (alone, counted): (Vec<_>, Vec<_>) = definitions
        .iter()
        .partition(|definition| !definition.removed_versions.is_empty());
    let mut together = DefinitionChange::default();
    for definition in &counted {
        together.add(definition);
    }
    let mut texts: Vec<String> = alone.into_iter().map(lines).collect();
    if !counted.is_empty() {
        let what = add_effect(together.describe(), &together, |_| {
            plan.breakages.is_empty()
        });
        texts.push(format!("{} definitions  {what}", counted.len()));
    }
    texts
}

/// Describes the changes of one definition, and whether they break live objects.
fn describe_definition(definition: &DefinitionChange, plan: &InstallationPlan) -> String {
    add_effect(definition.describe(), definition, |definition| {
        let mut breakages = plan.breakages.iter();
        !breakages.any(|breakage| breakage.definition == definition.key)
    })
}

fn add_effect(
    what: String,
    definition: &DefinitionChange,
    is_harmless: impl Fn(&DefinitionChange) -> bool,
) -> String {
    match definition.removed + definition.narrowed > 0 && is_harmless(definition) {
        true => format!("{what}; no live object is affected"),
        false => what,
    }
}

fn describe_marks(marks: MarkCount) -> Option<String> {
    let fields = match marks.fields {
        0 => return None,
        1 => "1 label or annotation".to_owned(),
        count => format!("{count} labels and annotations"),
    };
    let of = count_objects(marks.objects);
    Some(format!(
        "{fields} of {of}, which only name an application, a version or a tool"
    ))
}

/// An object in a list.
#[derive(Clone, Debug)]
pub struct ListedObject<'a> {
    /// What happens to it.
    pub change: &'a ObjectDiff,
    /// Its changes, a line for each.
    pub lines: Vec<String>,
}

/// Lists the objects that a plan creates, changes, recreates, or is refused, in the order in which to review them. `full` leaves nothing out
/// and shortens nothing; otherwise objects of which only marks change are left out, because marks are counted.
pub fn list_objects<'a>(
    plan: &InstallationPlan,
    changes: impl IntoIterator<Item = &'a ObjectDiff>,
    full: bool,
    now: Timestamp,
) -> Vec<ListedObject<'a>> {
    let is_shown = |change: &&ObjectDiff| {
        change.change() != ObjectChange::Unchanged && (full || !changes_only_marks(change))
    };
    let mut shown: Vec<&ObjectDiff> = changes.into_iter().filter(is_shown).collect();
    shown.sort_by_key(|change| review::rank(change));
    let listed = shown.into_iter().map(|change| ListedObject {
        change,
        lines: describe_object(plan, change, full, now),
    });
    listed.collect()
}

/// The mark before an object in a list.
pub fn change_mark(change: ObjectChange) -> char {
    match change {
        ObjectChange::Added => '+',
        ObjectChange::Changed => '~',
        ObjectChange::Recreated => '±',
        ObjectChange::Refused => '!',
        ObjectChange::Unchanged => ' ',
    }
}

/// Describes the changes of one object. `full`: see [`list_objects`].
fn describe_object(
    plan: &InstallationPlan,
    change: &ObjectDiff,
    full: bool,
    now: Timestamp,
) -> Vec<String> {
    let mut lines = Vec::new();
    let object = plan.step(&change.key).map(|step| step.object.as_ref());
    let rights = RightsChange::new(change, object);
    if let Some(rights) = &rights {
        let most = if full { usize::MAX } else { MAX_NAMED };
        lines.extend(name_rights(rights, most));
    }
    let is_hidden = |field: &&FieldChange| {
        !full && is_mark(&field.path) || rights.is_some() && rights::is_right(&change.key, field)
    };
    let fields: Vec<&FieldChange> = change
        .fields
        .iter()
        .filter(|field| !is_hidden(field))
        .collect();
    let is_definition = !full && change.key.is_definition();
    let (descriptions, fields): (Vec<_>, Vec<_>) = fields
        .into_iter()
        .partition(|field| is_definition && is_description(field));
    if is_definition && fields.len() > MAX_SCHEMA_FIELDS {
        lines.extend(count_schema(plan, change, &fields));
    } else {
        let fields = fields.into_iter();
        lines.extend(fields.flat_map(|field| field::format_field(field, full, now)));
    }
    if full {
        lines.extend(list_harmless(plan, change));
    }
    // Only marks of pods are left, because the list leaves other marks out.
    if lines.is_empty() && descriptions.is_empty() && !change.fields.is_empty() {
        lines.push(format!("restarts {RESTARTED_FOR_MARKS}"));
    }
    match descriptions.len() {
        0 => {}
        1 => lines.push("1 description changed".to_owned()),
        count => lines.push(format!("{count} descriptions changed")),
    }
    lines
}

fn count_schema(
    plan: &InstallationPlan,
    change: &ObjectDiff,
    fields: &[&FieldChange],
) -> Option<String> {
    let harmless = plan.harmless_changes(&change.key);
    let counted = DefinitionChange::new(&change.key, fields, harmless)?;
    Some(describe_definition(&counted, plan))
}

/// Lists the changes of a definition that break no live object.
fn list_harmless(plan: &InstallationPlan, change: &ObjectDiff) -> Vec<String> {
    let harmless = plan.harmless_changes(&change.key);
    let sentences = harmless.map(|harmless| harmless.sentences().cloned());
    sentences.into_iter().flatten().collect()
}

/// Lists what a changed definition forbids although no live object has it, and the fields of objects that it adds, removes and alters,
/// without descriptions: `+ v1: spec.steps[].delay`. Empty for objects of other kinds.
pub fn list_schema(plan: &InstallationPlan, change: &ObjectDiff) -> Vec<String> {
    if !change.key.is_definition() {
        return Vec::new();
    }
    let fields = change.fields.iter().filter_map(|field| {
        let schema = definition::SchemaField::parse(&field.path)?;
        let mark = match (&field.old, &field.new) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        let definition::SchemaField {
            version,
            field,
            schema_keyword,
        } = schema;
        match schema_keyword.as_deref() {
            None => Some(format!("{mark} {version}: {field}")),
            Some("description") => None,
            Some(keyword) => Some(format!("{mark} {version}: {field} ({keyword})")),
        }
    });
    list_harmless(plan, change)
        .into_iter()
        .chain(fields)
        .collect()
}

/// Whether a field of a definition only describes another one.
fn is_description(field: &FieldChange) -> bool {
    let schema = definition::SchemaField::parse(&field.path);
    schema.is_some_and(|schema| schema.schema_keyword.as_deref() == Some("description"))
}

#[cfg(test)]
mod tests {
    use addons_plan::crd_safety::HarmlessChanges;
    use common::api::names::InstallationName;
    use common::manifest::key::ObjectKey;
    use serde_json::{Value, json};

    use super::*;

    fn key(kind: &str, name: &str) -> ObjectKey {
        ObjectKey {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
        }
    }

    fn field(path: &str, old: Value, new: Value) -> FieldChange {
        FieldChange {
            path: path.to_owned(),
            old: Some(old).filter(|value| !value.is_null()),
            new: Some(new).filter(|value| !value.is_null()),
            owners: Vec::new(),
        }
    }

    fn plan() -> InstallationPlan {
        let name = InstallationName {
            namespace: "kubectl-addons".to_owned(),
            name: "web".to_owned(),
        };
        InstallationPlan::nothing(name, "web")
    }

    fn lines(review: &Review, plan: &InstallationPlan) -> Vec<String> {
        let lines = list_decisions(review, plan).into_iter();
        lines
            .map(|line| format!("{:<9}{}", line.word, line.text))
            .collect()
    }

    fn definition(name: &str) -> DefinitionChange {
        DefinitionChange {
            key: ObjectKey {
                group: "apiextensions.k8s.io".to_owned(),
                kind: "CustomResourceDefinition".to_owned(),
                namespace: None,
                name: name.to_owned(),
            },
            added: 10,
            narrowed: 2,
            ..DefinitionChange::default()
        }
    }

    #[test]
    fn a_line_for_every_decision() {
        let image = |old: Option<&str>, new: Option<&str>, names: &[&str]| ImageChange {
            old: old.map(str::to_owned),
            new: new.map(str::to_owned),
            objects: names.iter().map(|name| key("Deployment", name)).collect(),
        };
        let object =
            |kind: &str, name: &str, restarts: bool, fields: Vec<FieldChange>| ReviewedObject {
                key: key(kind, name),
                restarts,
                fields,
            };
        let review = Review {
            rights: vec![RightsChange {
                key: key("Role", "web"),
                gained: vec![Grant {
                    verbs: vec!["get".to_owned()],
                    resources: vec!["secrets".to_owned()],
                    names: Vec::new(),
                }],
                lost: Vec::new(),
                bound_role: None,
                bound: Vec::new(),
                unbound: Vec::new(),
            }],
            images: vec![
                image(
                    Some("docker.io/web:1.0"),
                    Some("docker.io/web:1.1"),
                    &["a", "b", "c"],
                ),
                image(Some("web"), Some("other@sha256:12"), &["a"]),
                image(None, Some("registry:5000/log"), &["a"]),
            ],
            workloads: vec![
                object(
                    "Deployment",
                    "a",
                    true,
                    vec![field(
                        "spec.strategy.type",
                        json!("Recreate"),
                        json!("RollingUpdate"),
                    )],
                ),
                object("Deployment", "b", true, Vec::new()),
                object("Deployment", "d", true, Vec::new()),
                object(
                    "Deployment",
                    "e",
                    false,
                    vec![field("spec.replicas", json!(1), json!(2))],
                ),
            ],
            configuration: vec![object(
                "ConfigMap",
                "a",
                false,
                vec![field("data.key", Value::Null, json!("x"))],
            )],
            definitions: vec![definition("things.example.test")],
            marks: MarkCount {
                fields: 3,
                objects: 1,
            },
        };
        assert_eq!(
            lines(&review, &plan()),
            [
                "rights   shop/Role web  gains get on secrets",
                "images   docker.io/web  1.0 → 1.1  (Deployment a, Deployment b and 1 more)",
                "images   web → other@sha256:12  (Deployment a)",
                "images   + registry:5000/log  (Deployment a)",
                "restarts shop/Deployment a  strategy.type Recreate → RollingUpdate",
                "restarts shop/Deployment d  for a label or checksum of its pods",
                "changes  shop/Deployment e  replicas 1 → 2",
                "changes  shop/ConfigMap a  + data.key",
                "schemas  things.example.test  10 fields added, 2 narrowed; no live object is affected",
                "marks    3 labels and annotations of 1 object, which only name an application, a version or a tool",
            ]
        );
    }

    #[test]
    fn many_objects_are_counted_except_what_loses_a_version() {
        let mut removed = definition("old.example.test");
        removed.removed_versions.push("v1alpha1".to_owned());
        let mut definitions: Vec<_> = (0..MAX_NAMED).map(|i| definition(&i.to_string())).collect();
        definitions.push(removed);
        let configuration = (0..=MAX_LISTED_OBJECTS).map(|i| ReviewedObject {
            key: key("ConfigMap", &i.to_string()),
            restarts: false,
            fields: Vec::new(),
        });
        let review = Review {
            configuration: configuration.collect(),
            definitions,
            ..Review::default()
        };
        assert_eq!(
            lines(&review, &plan()),
            [
                "changes  11 objects  ConfigMap ×11",
                "schemas  old.example.test  v1alpha1 removed, 10 fields added, 2 narrowed; no live object is affected",
                "schemas  4 definitions  40 fields added, 8 narrowed; no live object is affected",
            ]
        );
    }

    #[test]
    fn an_object_that_only_changes_marks_is_listed_if_its_pods_restart() {
        let change = |kind: &str, path: &str| ObjectDiff {
            key: ObjectKey {
                group: "apps".to_owned(),
                ..key(kind, "web")
            },
            action: addons_plan::Action::Update,
            created: false,
            fields: vec![field(path, json!("1"), json!("2"))],
            recreated: None,
            error: None,
            remedy: None,
            unjudged: None,
        };
        let checksum = "spec.template.metadata.annotations[\"checksum/config\"]";
        let changes = [
            change("StatefulSet", "metadata.labels[\"helm.sh/chart\"]"),
            change("Deployment", checksum),
        ];
        let listed = list_objects(&plan(), &changes, false, Timestamp::UNIX_EPOCH);
        let [ListedObject { change, lines }] = listed.as_slice() else {
            panic!("{listed:?}");
        };
        assert_eq!(change.key.kind, "Deployment");
        assert_eq!(lines, &["restarts for a label or checksum of its pods"]);
        let full = list_objects(&plan(), &changes, true, Timestamp::UNIX_EPOCH);
        assert_eq!(full.len(), 2);
    }

    #[test]
    fn a_definition_with_many_fields_is_one_line() {
        let definition = definition("things.example.test").key;
        let schema = "spec.versions[v1].schema.openAPIV3Schema.properties.spec.properties";
        let mut fields: Vec<FieldChange> = (0..=MAX_SCHEMA_FIELDS)
            .map(|i| {
                let path = format!("{schema}.f{i}");
                field(&path, Value::Null, json!({"type": "string"}))
            })
            .collect();
        fields.push(field(
            &format!("{schema}.f0.description"),
            json!("a"),
            json!("b"),
        ));
        let change = |fields: Vec<FieldChange>| ObjectDiff {
            key: definition.clone(),
            action: addons_plan::Action::Update,
            created: false,
            fields,
            recreated: None,
            error: None,
            remedy: None,
            unjudged: None,
        };
        let mut plan = plan();
        plan.harmless.push(HarmlessChanges {
            definition: definition.clone(),
            removed: Vec::new(),
            narrowed: vec!["a".to_owned()],
            unjudged: Vec::new(),
        });
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(
            describe_object(&plan, &change(fields.clone()), false, now),
            [
                "6 fields added, 1 narrowed; no live object is affected",
                "1 description changed"
            ]
        );
        assert_eq!(
            describe_object(&plan, &change(fields.clone()), true, now).len(),
            8
        );
        assert_eq!(
            list_schema(&plan, &change(fields))[..2],
            ["a", "+ v1: spec.f0"]
        );
    }
}
