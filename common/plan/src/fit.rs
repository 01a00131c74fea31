//! Adjusts a desired object to the live one, so that applying it gives the same result as creating it.
//!
//! Server-side apply removes fields that the installation owns and no longer sets, and nothing else. Four kinds of fields would otherwise
//! stay, or be refused for reasons outside the manifest (semantics 12.7):
//! - [`LeftoverField`]: the other member of a union, the other name of a field, a default that followed from a former value. No manager owns it,
//!   or one that cannot keep it. It is claimed before the apply, which then drops it.
//! - [`KeptField`]: fields that may only grow, that a platform or kapp appends to, or replicas that were scaled to zero. They keep their live value.
//! - [`FixedField`]: a field that the server silently restores, as if it were immutable.
//! - [`CoOwnedField`]: a field that the installation owned and that another manager owns as well ([`find_co_owned_fields`]). It is only reported.
//!
//! The sources are the types, defaults and validation of Kubernetes 1.36; each rule names its source.

mod quantity;

use std::sync::Arc;

use serde_json::{Map, Value};

use super::conflicts::{Policy, REPLICAS};
use super::immutable::FixedField;
use common::api::installation::ConflictPolicy;
use common::manifest::key::ObjectKey;
use common::manifest::managed_fields::path::{self, ManagedPath};
use common::manifest::managed_fields::{self, other_owners};
use common::manifest::normal::pod_spec_path;

/// A desired object as it is sent, and the live fields that it removes or keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedObject {
    /// The object as it is sent.
    pub object: Arc<Value>,
    /// Groups of fields with leftovers.
    groups: Vec<FieldGroup>,
    /// Live fields that have to be removed.
    pub leftovers: Vec<LeftoverField>,
    /// Fields that keep their live value.
    pub kept: Vec<KeptField>,
    /// Fields that the server restores. Only a new object gets the wanted value.
    pub fixed: Vec<FixedField>,
}

/// A live field that an apply would leave although it does not belong beside the desired ones.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftoverField {
    /// The field.
    pub path: ManagedPath,
    /// Its live value.
    pub live: Value,
    /// Its other owners, and when they last wrote.
    pub owners: Vec<(String, Option<String>)>,
    /// Whether it is removed whatever the policy for conflicts is, because its owner only filled in what the installation asked for.
    pub is_ours_to_drop: bool,
}

/// A field that keeps its live value, whatever the manifest says.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptField {
    /// The field.
    pub path: ManagedPath,
    /// Its live value.
    pub live: Value,
    /// The value of the manifest.
    pub wanted: Value,
    /// Its other owners, and when they last wrote.
    pub owners: Vec<(String, Option<String>)>,
    /// Why.
    pub why: &'static str,
}

/// A field that the installation owned and no longer sets, but that stays because other managers own it as well.
#[derive(Clone, Debug, PartialEq)]
pub struct CoOwnedField {
    /// The field.
    pub path: ManagedPath,
    /// Its value.
    pub value: Value,
    /// Who owns it.
    pub owners: Vec<String>,
}

/// Fields of one nested object that are only valid together: as they are live, or as they are desired.
#[derive(Clone, Debug, PartialEq)]
struct FieldGroup {
    at: ManagedPath,
    members: Vec<String>,
}

/// Handlers of probes and lifecycle hooks (core/v1 ProbeHandler, LifecycleHandler: "One and only one of the fields must be specified").
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
/// core/v1 EnvVar and EnvVarSource: `value` "cannot be used" beside `valueFrom`, and a source is one of these.
const VALUE: [&str; 2] = ["value", "valueFrom"];
const SOURCES: [&str; 5] = [
    "fieldRef",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
];
/// core/v1 PodSpec.ServiceAccountName and its deprecated alias: the server copies each into the other.
const ACCOUNT: [&str; 2] = ["serviceAccountName", "serviceAccount"];
/// Prefix of the labels that kapp adds to objects, pod templates and selectors.
const KAPP_LABELS: &str = "kapp.k14s.io/";
/// core/v1 PersistentVolumeClaimSpec.Resources: "requests.storage" may only grow (validation: "field can not be less than
/// status.capacity").
const STORAGE: [&str; 4] = ["spec", "resources", "requests", "storage"];
/// Labels that platforms use to keep admission webhooks away from their own namespaces. They append expressions with them to the selectors
/// of every webhook: Azure's admissions enforcer (Azure/AKS#1771), GKE Autopilot.
const PLATFORM_LABELS: [&str; 3] = [
    "control-plane",
    "kubernetes.azure.com/managedby",
    "kubernetes.io/metadata.name",
];

/// Whether the fit of a desired object can depend on the live one, which then has to be read.
#[must_use]
pub fn needs_live_object(key: &ObjectKey, wanted: &Value, policy: &Policy) -> bool {
    let yields = policy.at(REPLICAS).0 == ConflictPolicy::Yield;
    if pod_spec_path(key).is_some() || yields && wanted.pointer("/spec/replicas").is_some() {
        return true;
    }
    matches!(
        (key.group.as_str(), key.kind.as_str()),
        (
            "",
            "Secret" | "Service" | "ServiceAccount" | "PersistentVolumeClaim"
        ) | ("policy", "PodDisruptionBudget")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
            | (
                "admissionregistration.k8s.io",
                "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration"
            )
    )
}

/// Adjusts a desired object to the live one. `manager` is the installation's field manager.
#[must_use]
pub fn fit(
    key: &ObjectKey,
    wanted: &Arc<Value>,
    policy: &Policy,
    live: &Value,
    manager: &str,
) -> FittedObject {
    let entries = live.pointer("/metadata/managedFields");
    let mut fitting = Fitter {
        wanted: wanted.as_ref(),
        live,
        entries: entries.and_then(Value::as_array).map_or(&[], Vec::as_slice),
        manager,
        fitted: FittedObject {
            object: Arc::clone(wanted),
            groups: Vec::new(),
            leftovers: Vec::new(),
            kept: Vec::new(),
            fixed: Vec::new(),
        },
    };
    fitting.fit_replicas(policy);
    if key.group == "apps" {
        fitting.fit_selector();
    }
    if let Some(pointer) = pod_spec_path(key).filter(|_| key.kind != "Pod") {
        fitting.fit_pods(&ManagedPath::default().fields(pointer));
    }
    let root = ManagedPath::default();
    match (key.group.as_str(), key.kind.as_str()) {
        // apps/v1 DeploymentStrategy.RollingUpdate: "Present only if DeploymentStrategyType = RollingUpdate".
        ("apps", "Deployment") => fitting.fit_strategy(&root.fields(&["spec", "strategy"])),
        // apps/v1 DaemonSetUpdateStrategy, StatefulSetUpdateStrategy: likewise.
        ("apps", "DaemonSet" | "StatefulSet") => {
            fitting.fit_strategy(&root.fields(&["spec", "updateStrategy"]));
        }
        // policy/v1 PodDisruptionBudgetSpec: "maxUnavailable … is a mutually exclusive setting with minAvailable".
        ("policy", "PodDisruptionBudget") => {
            fitting.fit_union(&root.field("spec"), &["minAvailable", "maxUnavailable"]);
        }
        // admissionregistration/v1 WebhookClientConfig: "Exactly one of `url` or `service` must be specified".
        ("admissionregistration.k8s.io", _) => fitting.fit_webhooks(),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => fitting.fit_conversion(),
        ("", "Secret") => fitting.fit_secret(),
        ("", "Service") => fitting.fit_service(),
        ("", "ServiceAccount") => fitting.fit_pull_secrets(),
        ("", "PersistentVolumeClaim") => fitting.fit_storage(),
        _ => {}
    }
    fitting.fitted
}

impl FittedObject {
    /// Returns the paths of all leftovers, which have to be claimed before the apply.
    #[must_use]
    pub fn claimed_paths(&self) -> Vec<ManagedPath> {
        let leftovers = self.leftovers.iter();
        leftovers.map(|leftover| leftover.path.clone()).collect()
    }

    /// Returns the object as it is sent, but with the live values of all groups with leftovers, so that the server can validate everything
    /// else in a dry run.
    #[must_use]
    pub fn bridge(&self, live: &Value) -> Value {
        let mut object = Value::clone(&self.object);
        for group in &self.groups {
            group.copy_members(live, &mut object);
        }
        object
    }

    /// Replaces the live values of the groups in the server's answer to the bridged object, so that it shows what the apply will leave.
    pub fn apply_bridged_groups(&self, answer: &mut Value) {
        for group in &self.groups {
            group.copy_members(&self.object, answer);
            if group.at.get(&self.object).is_none()
                && group
                    .at
                    .get(answer)
                    .and_then(Value::as_object)
                    .is_some_and(Map::is_empty)
            {
                group.at.remove(answer);
            }
        }
    }
}

impl FieldGroup {
    /// Replaces the members of `to` with those of `from`.
    fn copy_members(&self, from: &Value, to: &mut Value) {
        let from = self.at.get(from);
        let Some(to) = self.at.get_or_create(to) else {
            return;
        };
        for member in &self.members {
            to.remove(member);
            if let Some(value) = from.and_then(|from| from.get(member)) {
                to.insert(member.clone(), value.clone());
            }
        }
    }
}

struct Fitter<'a> {
    wanted: &'a Value,
    live: &'a Value,
    entries: &'a [Value],
    manager: &'a str,
    fitted: FittedObject,
}

impl Fitter<'_> {
    fn others(&self, path: &ManagedPath) -> Vec<(String, Option<String>)> {
        other_owners(self.entries, path, self.manager)
    }

    fn is_ours(&self, path: &ManagedPath) -> bool {
        path.is_in(&managed_fields::owned_fields(self.entries, self.manager))
    }

    /// Marks live members of the object at `at` that are not desired as leftovers. Members that only the installation owns are skipped,
    /// because the apply removes them anyway.
    fn drop_unwanted(&mut self, at: &ManagedPath, members: &[&str], is_ours_to_drop: bool) {
        let wanted = at.get(self.wanted);
        let is_wanted = |member: &&&str| wanted.is_some_and(|wanted| is_set(wanted.get(member)));
        let mut found = Vec::new();
        for member in members.iter().filter(|member| !is_wanted(member)) {
            let path = at.field(member);
            let Some(live) = path.get(self.live).filter(|live| !live.is_null()) else {
                continue;
            };
            let owners = self.others(&path);
            if !owners.is_empty() || !self.is_ours(&path) {
                found.push(LeftoverField {
                    live: live.clone(),
                    path,
                    owners,
                    is_ours_to_drop,
                });
            }
        }
        if !found.is_empty() {
            self.fitted.leftovers.extend(found);
            self.fitted.groups.push(FieldGroup {
                at: at.clone(),
                members: members.iter().map(|&member| member.to_owned()).collect(),
            });
        }
    }

    /// Handles a union: if the manifest sets one of these members of the object at `at`, the others have to be removed.
    fn fit_union(&mut self, at: &ManagedPath, members: &[&str]) {
        let wanted = at.get(self.wanted);
        let sets = |member: &&str| wanted.is_some_and(|wanted| is_set(wanted.get(member)));
        if members.iter().any(sets) {
            self.drop_unwanted(at, members, false);
        }
    }

    fn fit_strategy(&mut self, at: &ManagedPath) {
        let kind = at.field("type").get(self.wanted).and_then(Value::as_str);
        if kind.is_some_and(|kind| kind != "RollingUpdate") {
            self.drop_unwanted(at, &["type", "rollingUpdate"], false);
        }
    }

    fn fit_pods(&mut self, at: &ManagedPath) {
        // An account that the manifest drops would stay under its other name. An account that other managers set is theirs.
        let is_theirs = ACCOUNT
            .iter()
            .any(|name| !self.others(&at.field(name)).is_empty());
        let is_named = is_set(at.field("serviceAccountName").get(self.wanted));
        if !is_theirs && !is_named {
            self.drop_unwanted(at, &ACCOUNT, false);
        }
        // core/v1 VolumeSource: "Only one of its members may be specified. If not specified, the Volume is implied to be an EmptyDir".
        let volumes = at.field("volumes");
        for (name, volume) in items_by_name(&volumes, self.wanted) {
            let item = volumes.item(name);
            let live = item.get(self.live).and_then(Value::as_object);
            let keys = volume.keys().chain(live.into_iter().flat_map(Map::keys));
            let mut sources: Vec<&str> = keys
                .map(String::as_str)
                .filter(|key| *key != "name")
                .collect();
            sources.sort_unstable();
            sources.dedup();
            self.fit_union(&item, &sources);
        }
        for list in ["initContainers", "containers"] {
            let list = at.field(list);
            for (name, container) in items_by_name(&list, self.wanted) {
                self.fit_container(&list.item(name), container);
            }
        }
    }

    fn fit_container(&mut self, at: &ManagedPath, wanted: &Map<String, Value>) {
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            self.fit_union(&at.field(probe), &HANDLERS);
        }
        for hook in ["postStart", "preStop"] {
            self.fit_union(&at.fields(&["lifecycle", hook]), &HANDLERS);
        }
        let env = at.field("env");
        for (name, _) in items_by_name(&env, self.wanted) {
            let item = env.item(name);
            self.fit_union(&item, &VALUE);
            self.fit_union(&item.field("valueFrom"), &SOURCES);
        }
        // core/v1 Container.ImagePullPolicy: "Defaults to Always if :latest tag is specified, or IfNotPresent otherwise", once.
        let policy = at.field("imagePullPolicy");
        let live = policy.get(self.live).and_then(Value::as_str);
        let image = wanted.get("image").and_then(Value::as_str);
        if let (Some(live), Some(image)) = (live, image)
            && !is_set(wanted.get("imagePullPolicy"))
            && self.others(&policy).is_empty()
            && live != default_pull_policy(image)
        {
            self.drop_unwanted(at, &["imagePullPolicy"], false);
        }
    }

    fn fit_webhooks(&mut self) {
        let webhooks = ManagedPath::default().field("webhooks");
        for (name, _) in items_by_name(&webhooks, self.wanted) {
            let item = webhooks.item(name);
            self.fit_union(&item.field("clientConfig"), &["service", "url"]);
            for selector in ["namespaceSelector", "objectSelector"] {
                let path = item.field(selector);
                let (live, wanted) = (path.get(self.live), path.get(self.wanted));
                if let (Some(live), Some(wanted)) = (live, wanted)
                    && is_grown_selector(live, wanted)
                {
                    self.keep_live_value(
                        path.clone(),
                        live.clone(),
                        wanted.clone(),
                        "the platform appends to it",
                    );
                }
            }
        }
    }

    /// apiextensions/v1 CustomResourceConversion.Webhook: "Required when `strategy` is set to `Webhook`", and forbidden otherwise. The CA
    /// bundle that another client injected is removed with its webhook.
    fn fit_conversion(&mut self) {
        let at = ManagedPath::default().fields(&["spec", "conversion"]);
        let strategy = |object| at.field("strategy").get(object).and_then(Value::as_str);
        let is_off = match strategy(self.wanted) {
            Some(strategy) => strategy != "Webhook",
            // Some operators enable the conversion themselves.
            None => at.get(self.wanted).is_none_or(Value::is_null) && self.is_ours(&at),
        };
        if is_off && strategy(self.live) == Some("Webhook") {
            self.drop_unwanted(&at, &["strategy", "webhook"], true);
        }
    }

    /// Handles keys that were applied as `stringData`: the server stored them in `data`, where they have no owner.
    fn fit_secret(&mut self) {
        let data = ManagedPath::default().field("data");
        let texts = ManagedPath::default().field("stringData");
        let live = data.get(self.live).and_then(Value::as_object);
        let stale: Vec<&str> = live
            .into_iter()
            .flat_map(Map::keys)
            .map(String::as_str)
            .filter(|key| {
                let is_owned = |path: &ManagedPath| !self.others(path).is_empty();
                !self.is_ours(&data.field(key))
                    && !is_owned(&data.field(key))
                    && !is_owned(&texts.field(key))
            })
            .collect();
        // Without managedFields, the owners of the fields are unknown.
        if !self.entries.is_empty() {
            self.drop_unwanted(&data, &stale, false);
        }
    }

    /// core/v1 ServiceSpec.ClusterIP: an update without one keeps that of the live Service (`patchAllocatedValues`), including `None`.
    fn fit_service(&mut self) {
        let spec = ManagedPath::default().field("spec");
        let field = |object, name: &str| spec.field(name).get(object).cloned();
        let is_headless = field(self.live, "clusterIP") == Some("None".into());
        let is_named = ["clusterIP", "clusterIPs"]
            .iter()
            .any(|name| is_set(field(self.wanted, name).as_ref()));
        let is_external = field(self.wanted, "type") == Some("ExternalName".into());
        let path = spec.field("clusterIP");
        if is_headless && !is_named && !is_external && self.others(&path).is_empty() {
            self.fitted.fixed.push(FixedField {
                field: path.to_string(),
                rule: "the server keeps None, although the manifest does not set it any more"
                    .to_owned(),
            });
        }
    }

    /// core/v1 ServiceAccount.ImagePullSecrets: server-side apply treats the list as one value. OpenShift appends the account's own
    /// (`NAME-dockercfg-xxxxx`).
    fn fit_pull_secrets(&mut self) {
        let path = ManagedPath::default().field("imagePullSecrets");
        let names = |object| -> Option<Vec<&str>> {
            let items = path.get(object)?.as_array()?.iter();
            Some(
                items
                    .filter_map(|item| item.get("name")?.as_str())
                    .collect(),
            )
        };
        let (Some(live), Some(wanted)) = (names(self.live), names(self.wanted)) else {
            return;
        };
        let mut more = live.iter().filter(|name| !wanted.contains(name)).peekable();
        let is_grown = more.peek().is_some() && more.all(|name| name.contains("-dockercfg-"));
        if is_grown && wanted.iter().all(|name| live.contains(name)) {
            let value = |object| path.get(object).cloned().unwrap_or_default();
            let (live, wanted) = (value(self.live), value(self.wanted));
            self.keep_live_value(path, live, wanted, "the platform appends to it");
        }
    }

    /// apps/v1 selectors are immutable, and kapp adds the label of its application to them: it stays, as it does in the pod template.
    fn fit_selector(&mut self) {
        let path = ManagedPath::default().fields(&["spec", "selector"]);
        let (Some(live), Some(wanted)) = (path.get(self.live), path.get(self.wanted)) else {
            return;
        };
        let mut without = live.clone();
        if let Some(Value::Object(labels)) = without.get_mut("matchLabels") {
            labels.retain(|name, _| !name.starts_with(KAPP_LABELS));
        }
        if without != *live && without == *wanted {
            let (live, wanted) = (live.clone(), wanted.clone());
            self.keep_live_value(
                path,
                live,
                wanted,
                "kapp added its label, and a selector cannot change",
            );
        }
    }

    fn fit_storage(&mut self) {
        let path = ManagedPath::default().fields(&STORAGE);
        let size = |object| quantity::parse(path.get(object)?.as_str()?);
        if let (Some(live), Some(wanted)) = (size(self.live), size(self.wanted))
            && wanted < live
        {
            let value = |object| path.get(object).cloned().unwrap_or_default();
            let (live, wanted) = (value(self.live), value(self.wanted));
            self.keep_live_value(path, live, wanted, "a claim never shrinks");
        }
    }

    /// `Scale.spec.replicas` is omitted if it is 0, so a client that scales to zero owns no field, and an apply finds no conflict.
    fn fit_replicas(&mut self, policy: &Policy) {
        let path = ManagedPath::default().fields(&["spec", "replicas"]);
        let (Some(live), Some(wanted)) = (path.get(self.live), path.get(self.wanted)) else {
            return;
        };
        let is_zero = live.as_i64() == Some(0) && wanted.as_i64() != Some(0);
        let is_unowned =
            !self.entries.is_empty() && !self.is_ours(&path) && self.others(&path).is_empty();
        if is_zero && is_unowned && policy.at(REPLICAS).0 == ConflictPolicy::Yield {
            let (live, wanted) = (live.clone(), wanted.clone());
            self.keep_live_value(path, live, wanted, "another client scaled it to zero");
        }
    }

    /// Keeps the live value of a field: omits it if the installation does not own it, and sends the live value if an apply without it would
    /// remove it.
    fn keep_live_value(
        &mut self,
        path: ManagedPath,
        live: Value,
        wanted: Value,
        why: &'static str,
    ) {
        let is_ours = self.is_ours(&path);
        let owners = self.others(&path);
        let object = Arc::make_mut(&mut self.fitted.object);
        if is_ours {
            path.set(object, live.clone());
        } else {
            path.remove(object);
        }
        self.fitted.kept.push(KeptField {
            path,
            live,
            wanted,
            owners,
            why,
        });
    }
}

/// Returns the fields that the installation owned before an apply and does not own after it, and that stay because other managers own them.
#[must_use]
pub fn find_co_owned_fields(
    key: &ObjectKey,
    live: &Value,
    answer: &Value,
    manager: &str,
) -> Vec<CoOwnedField> {
    let entries = |object: &Value| {
        let entries = object.pointer("/metadata/managedFields");
        let entries = entries.and_then(Value::as_array);
        entries.cloned().unwrap_or_default()
    };
    let (before, after) = (entries(live), entries(answer));
    let owned = |entries: &[Value]| managed_fields::owned_fields(entries, manager);
    let lost = path::find_lost_paths(&owned(&before), &owned(&after));
    let found = lost.into_iter().filter_map(|path| {
        let value = path.get(answer)?.clone();
        let owners = other_owners(&after, &path, manager);
        let owners: Vec<String> = owners.into_iter().map(|(manager, _)| manager).collect();
        let field = path.to_string();
        // Fields that belong to other managers by contract.
        let is_theirs = field.ends_with(".caBundle")
            || (field == REPLICAS && owners.iter().any(|owner| owner.ends_with("/scale")))
            || (key.kind == "ClusterRole" && answer.get("aggregationRule").is_some());
        (!owners.is_empty() && !is_theirs).then_some(CoOwnedField {
            path,
            value,
            owners,
        })
    });
    found.collect()
}

fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

/// Returns the named items of a list.
fn items_by_name<'a>(
    list: &ManagedPath,
    object: &'a Value,
) -> impl Iterator<Item = (&'a str, &'a Map<String, Value>)> + use<'a> {
    let items = list.get(object).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(|item| {
        let item = item.as_object()?;
        Some((item.get("name")?.as_str()?, item))
    })
}

fn default_pull_policy(image: &str) -> &'static str {
    let (path, digest) = image
        .split_once('@')
        .map_or((image, None), |(path, digest)| (path, Some(digest)));
    let last = path.rsplit('/').next().unwrap_or(path);
    match last.split_once(':') {
        _ if digest.is_some() => "IfNotPresent",
        Some((_, "latest")) | None => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Whether a live selector equals the desired one plus expressions about labels of platforms.
fn is_grown_selector(live: &Value, wanted: &Value) -> bool {
    let expressions = |selector: &Value| -> Vec<Value> {
        let all = selector.get("matchExpressions").and_then(Value::as_array);
        all.cloned().unwrap_or_default()
    };
    let labels = |selector: &Value| selector.get("matchLabels").cloned().unwrap_or_default();
    let (had, wants) = (expressions(live), expressions(wanted));
    let mut more = had.iter().filter(|one| !wants.contains(one)).peekable();
    let is_of_platform = |one: &Value| {
        let key = one.get("key").and_then(Value::as_str);
        key.is_some_and(|key| PLATFORM_LABELS.contains(&key))
    };
    labels(live) == labels(wanted)
        && wants.iter().all(|one| had.contains(one))
        && more.peek().is_some()
        && more.all(is_of_platform)
}

#[cfg(test)]
mod tests;
