//! Finds the Helm release that `adopt NAME` takes over, and takes its name, namespace, version and values with it (semantics 12.11).

use std::fmt;

use addons_engine::release::stored::{self, StoredRelease};
use addons_engine::{EngineError, former};
use addons_plan::found::{ForeignInstall, FoundBy};
use addons_plan::snapshot::FormerMark;
use common::api::installation::{AddonInstallation, AddonInstallationSpec};
use common::api::names::InstallationName;
use common::values::merge::overlay;
use common::values::sensitive::find_secrets;
use serde_json::{Map, Value, json};

use super::records::to_helm_release;
use super::{ForeignInstalls, find_offered_version};
use crate::context::Context;
use crate::error::{AdoptError, OperationError};
use crate::intent::{Edit, NewInstallation};
use crate::render::values_from::read_secrets;

/// What a new installation takes with it from a Helm release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenRelease {
    /// The release: `Helm release shop/web`.
    pub release: String,
    /// The chart of the release, if the add-on is only a subchart of it.
    pub umbrella: Option<String>,
    /// The paths of the values that are recorded in the installation.
    pub values: Vec<String>,
}

/// The values that a user gave a release.
#[derive(PartialEq)]
enum GivenValues {
    /// A map.
    Known(Value),
    /// The release has no records.
    Absent,
    /// The records cannot be read, for this reason.
    Unreadable(String),
}

/// The values may contain secrets, and are not printed.
impl fmt::Debug for GivenValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(_) => f.write_str("Known"),
            Self::Absent => f.write_str("Absent"),
            Self::Unreadable(why) => f.debug_tuple("Unreadable").field(why).finish(),
        }
    }
}

impl ForeignInstalls {
    /// Returns the Helm release that `adopt ADDON` means, and the name of its add-on. A release in another namespace than the default one
    /// counts only if the catalogue names no namespace. Several releases that fit equally well are none.
    #[must_use]
    pub fn release_of(&self, new: &NewInstallation) -> Option<(&ForeignInstall, String)> {
        let addon = new.addon.name.as_str();
        let name = new.name.as_deref();
        let (target, defaults) = (new.target_namespace.as_deref(), self.namespaces.get(addon));
        let is_here = |install: &ForeignInstall| {
            let namespace = install.namespace.as_deref();
            match (target, defaults, namespace) {
                (Some(target), _, namespace) => namespace == Some(target),
                (None, Some(defaults), Some(namespace)) => defaults.contains(namespace),
                _ => false,
            }
        };
        let is_free = target.is_none() && !self.placed.contains(addon);
        let has_name = |install: &ForeignInstall| install.name == name.unwrap_or(addon);
        let has_chart = |install: &ForeignInstall| install.chart.as_deref() == Some(addon);
        let is_open = name.is_none();
        let rules: [&dyn Fn(&ForeignInstall) -> bool; 4] = [
            &|install| has_name(install) && is_here(install),
            &|install| has_name(install) && has_chart(install) && is_free,
            &|install| is_open && has_chart(install) && is_here(install),
            &|install| is_open && has_chart(install) && is_free,
        ];
        if self.offered.contains_key(addon) {
            let found = rules.iter().find_map(|rule| self.only_release(rule))?;
            return Some((found, addon.to_owned()));
        }
        // The name of a release, whose chart is on offer.
        let of_chart = |install: &ForeignInstall| {
            let chart = install.chart.as_deref().filter(|_| is_open);
            install.name == addon
                && chart.is_some_and(|chart| self.offered.contains_key(chart))
                && target.is_none_or(|target| install.namespace.as_deref() == Some(target))
        };
        let found = self.only_release(&of_chart)?;
        Some((found, found.chart.clone()?))
    }

    /// Returns the only release that fits.
    fn only_release(&self, fits: &dyn Fn(&ForeignInstall) -> bool) -> Option<&ForeignInstall> {
        let mut found = self
            .installs
            .iter()
            .filter(|install| install.found_by == FoundBy::Helm && fits(install));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// Gives a new installation the add-on, name, namespace and version of a Helm release, as far as the user named no others, and its
    /// values under those of the user, except those that a named Secret has. Without `takes_values`, no values are taken.
    ///
    /// # Errors
    /// The values cannot be read, and the user gave none; some look like secrets, and the user named no place for them.
    pub async fn take_release(
        &self,
        ctx: &Context,
        new: &mut NewInstallation,
        (release, addon): (&ForeignInstall, String),
        takes_values: bool,
    ) -> Result<TakenRelease, OperationError> {
        let namespace = release.namespace.clone().unwrap_or_default();
        if release.name != new.addon.name || addon != new.addon.name {
            new.name.get_or_insert_with(|| release.name.clone());
        }
        new.addon.name.clone_from(&addon);
        new.target_namespace
            .get_or_insert_with(|| namespace.clone());
        let offered = self.offered.get(&addon).map_or(&[][..], Vec::as_slice);
        let version = find_offered_version(offered, release, &addon);
        if new.addon.version.is_none() {
            new.addon.version = version.map(str::to_owned);
        }
        let mut taken = TakenRelease {
            release: release.to_string(),
            umbrella: None,
            values: Vec::new(),
        };
        if release.subcharts.contains_key(&addon) {
            let chart = release.chart.clone();
            taken.umbrella = chart.filter(|chart| *chart != addon);
        }
        if !takes_values {
            return Ok(taken);
        }
        let given = match read_values(ctx, &namespace, &release.name, &addon).await? {
            GivenValues::Known(given) => given,
            GivenValues::Absent => return Ok(taken),
            GivenValues::Unreadable(_) if gives_all_values(new) => return Ok(taken),
            GivenValues::Unreadable(why) => {
                let release = taken.release;
                return Err(AdoptError::UnreadableValues { release, why }.into());
            }
        };
        let elsewhere = read_named_secrets(ctx, new).await?;
        let own = new.edits.apply_to(None, &[]).unwrap_or_else(|_| json!({}));
        let former = without(&given, &elsewhere);
        let secrets: Vec<String> = find_secrets(&without(&former, &own));
        if !secrets.is_empty() {
            let name = new.name.as_ref().unwrap_or(&new.addon.name);
            return Err(AdoptError::SecretValues {
                installation: InstallationName {
                    namespace: ctx.settings().records_namespace().to_owned(),
                    name: name.clone(),
                },
                namespace,
                release: release.name.clone(),
                paths: secrets,
            }
            .into());
        }
        taken.values = paths(&without(&former, &own));
        new.edits.former = Some(former);
        Ok(taken)
    }
}

/// Whether the user gave values as a whole, and not only some of them.
fn gives_all_values(new: &NewInstallation) -> bool {
    let mut edits = new.edits.values.iter();
    edits.any(|edit| matches!(edit, Edit::Merge(_)))
        || new
            .edits
            .values_from
            .as_ref()
            .is_some_and(|all| !all.is_empty())
}

async fn read_values(
    ctx: &Context,
    namespace: &str,
    name: &str,
    addon: &str,
) -> Result<GivenValues, OperationError> {
    let mark = FormerMark::Helm {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let found = match former::find(ctx.cluster().await?, &mark).await {
        Err(error @ EngineError::Forbidden { .. }) => {
            return Ok(GivenValues::Unreadable(error.to_string()));
        }
        found => found?,
    };
    let Some(found) = found else {
        return Ok(GivenValues::Absent);
    };
    Ok(match to_helm_release(found) {
        Some((_, release)) => GivenValues::Known(values_for(&release, addon)),
        None => GivenValues::Unreadable(stored::StoredError.to_string()),
    })
}

/// Returns the values that a release gives an add-on. An add-on that is a subchart of the chart of the release has those under its key, and
/// the global ones, which have precedence over its own, as helm has it.
pub(super) fn values_for(release: &StoredRelease, addon: &str) -> Value {
    let values = release.config.clone().filter(Value::is_object);
    let values = values.unwrap_or_else(|| json!({}));
    if release.chart().is_some_and(|chart| chart.name == addon) {
        return values;
    }
    let subcharts = || release.subcharts().iter();
    let Some(subchart) = subcharts()
        .find(|subchart| subchart.key() == addon)
        .or_else(|| subcharts().find(|subchart| subchart.name == addon))
    else {
        return values;
    };
    let own = values.get(subchart.key()).filter(|own| own.is_object());
    let mut own = own.cloned().unwrap_or_else(|| json!({}));
    if let Some(global) = values.get("global").filter(|global| global.is_object()) {
        overlay(&mut own, &json!({"global": global}));
    }
    own
}

/// Returns the merged values of the Secrets that the user named.
async fn read_named_secrets(ctx: &Context, new: &NewInstallation) -> Result<Value, OperationError> {
    let mut record = AddonInstallation::new(
        new.name.as_ref().unwrap_or(&new.addon.name),
        AddonInstallationSpec {
            values_from: new.edits.values_from.clone().unwrap_or_default(),
            ..AddonInstallationSpec::default()
        },
    );
    record.metadata.namespace = Some(ctx.settings().records_namespace().to_owned());
    merged_secrets(ctx, &record).await
}

/// Returns the merged values of the Secrets that an installation names.
pub(super) async fn merged_secrets(
    ctx: &Context,
    record: &AddonInstallation,
) -> Result<Value, OperationError> {
    let mut merged = json!({});
    if !record.spec.values_from.is_empty() {
        for layer in read_secrets(ctx, record).await?.values {
            overlay(&mut merged, layer.values());
        }
    }
    Ok(merged)
}

/// Returns the values without those that `other` sets, down to the values of maps.
fn without(values: &Value, other: &Value) -> Value {
    let (Value::Object(fields), Value::Object(others)) = (values, other) else {
        return values.clone();
    };
    let mut rest = Map::new();
    for (key, value) in fields {
        match (value, others.get(key)) {
            (value, None) => {
                rest.insert(key.clone(), value.clone());
            }
            (Value::Object(inner), Some(other @ Value::Object(_))) if !inner.is_empty() => {
                let inner = without(value, other);
                if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
                    rest.insert(key.clone(), inner);
                }
            }
            (_, Some(_)) => {}
        }
    }
    Value::Object(rest)
}

/// Returns the paths of values, down to the values of maps.
fn paths(values: &Value) -> Vec<String> {
    super::records::missing_values(Some(values), None)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::intent::VersionedName;

    fn release(namespace: &str, name: &str, chart: &str) -> ForeignInstall {
        ForeignInstall {
            found_by: FoundBy::Helm,
            name: name.to_owned(),
            namespace: Some(namespace.to_owned()),
            version: Some("1.0.0".to_owned()),
            id: None,
            manifest_hash: None,
            chart: Some(chart.to_owned()),
            channel: None,
            objects: 1,
            namespaces: BTreeSet::from([namespace.to_owned()]),
            subcharts: BTreeMap::new(),
        }
    }

    /// (the add-on, its values)
    #[test]
    fn a_subchart_has_its_own_and_the_global_values() {
        let text = json!({
            "config": {
                "own": 1, "metrics": {"replicas": 2, "global": {"a": 1, "c": 3}}, "second": {"b": 2},
                "global": {"a": 2},
            },
            "chart": {"metadata": {"name": "umbrella", "version": "1.0.0", "dependencies": [
                {"name": "metrics", "version": "8.3.1"}, {"name": "web", "alias": "second", "version": "2.x"},
                {"name": "plain", "version": "1.0.0"},
            ]}},
        });
        let release: StoredRelease = serde_json::from_value(text.clone()).unwrap();
        for (addon, expected) in [
            ("umbrella", text["config"].clone()),
            ("renamed", text["config"].clone()),
            (
                "metrics",
                json!({"replicas": 2, "global": {"a": 2, "c": 3}}),
            ),
            ("second", json!({"b": 2, "global": {"a": 2}})),
            ("web", json!({"b": 2, "global": {"a": 2}})),
            ("plain", json!({"global": {"a": 2}})),
        ] {
            assert_eq!(values_for(&release, addon), expected, "{addon}");
        }
    }

    #[test]
    fn the_version_of_a_subchart_is_not_that_of_its_chart() {
        let mut install = release("plat", "platform", "umbrella");
        let subcharts = [("metrics".to_owned(), "8.3.1".to_owned())];
        install.subcharts = BTreeMap::from(subcharts);
        assert_eq!(install.version_of("metrics"), Some("8.3.1"));
        assert_eq!(install.version_of("umbrella"), Some("1.0.0"));
    }

    /// The add-ons `web`, `metrics` and `dns` are on offer; the catalogue names a namespace for `dns` alone.
    fn found(installs: Vec<ForeignInstall>) -> ForeignInstalls {
        let offered = ["web", "metrics", "dns"].map(|name| (name.to_owned(), Vec::new()));
        let namespaces = [
            ("web", "web"),
            ("metrics", "metrics"),
            ("dns", "kube-system"),
        ];
        let namespaces = namespaces
            .map(|(addon, namespace)| (addon.to_owned(), BTreeSet::from([namespace.to_owned()])));
        ForeignInstalls {
            installs,
            offered: BTreeMap::from(offered),
            namespaces: BTreeMap::from(namespaces),
            placed: BTreeSet::from(["dns".to_owned()]),
            unreadable: Vec::new(),
        }
    }

    /// (the releases as `NAMESPACE/NAME:CHART`, the add-on, `--name`, `--target-namespace`, the release and its add-on)
    #[test]
    fn a_release_is_found_by_name_then_by_chart() {
        let rows = [
            ("shop/web:web", "web", None, None, "shop/web:web"),
            ("shop/web:web web/web:web", "web", None, None, "web/web:web"),
            (
                "shop/web:web web/web:web",
                "web",
                None,
                Some("shop"),
                "shop/web:web",
            ),
            ("shop/web:other", "web", None, Some("shop"), "shop/web:web"),
            ("shop/web:other", "web", None, None, ""),
            ("mon/ksm:metrics", "metrics", None, None, "mon/ksm:metrics"),
            (
                "mon/ksm:metrics",
                "metrics",
                Some("ksm"),
                None,
                "mon/ksm:metrics",
            ),
            ("mon/ksm:metrics", "metrics", Some("other"), None, ""),
            ("mon/a:metrics mon/b:metrics", "metrics", None, None, ""),
            ("mon/ksm:metrics", "ksm", None, None, "mon/ksm:metrics"),
            ("mon/ksm:metrics", "ksm", None, Some("shop"), ""),
            ("mon/ksm:umbrella", "ksm", None, None, ""),
            ("shop/dns:dns", "dns", None, None, ""),
            ("shop/dns:dns", "dns", None, Some("shop"), "shop/dns:dns"),
        ];
        for (there, addon, name, target, expected) in rows {
            let installs = there.split(' ').map(|one| {
                let (namespace, rest) = one.split_once('/').unwrap();
                let (name, chart) = rest.split_once(':').unwrap();
                release(namespace, name, chart)
            });
            let found = found(installs.collect());
            let new = NewInstallation {
                addon: VersionedName::parse(addon),
                name: name.map(str::to_owned),
                target_namespace: target.map(str::to_owned),
                ..NewInstallation::default()
            };
            let release = found.release_of(&new).map(|(install, addon)| {
                let namespace = install.namespace.as_deref().unwrap_or_default();
                format!("{namespace}/{}:{addon}", install.name)
            });
            let label = format!("{there} {addon} {name:?} {target:?}");
            assert_eq!(release.unwrap_or_default(), expected, "{label}");
        }
    }

    #[test]
    fn values_of_secrets_and_of_the_user_are_left_out() {
        let given = json!({"a": {"b": 1, "c": 2}, "d": [1], "e": {}, "f": "x"});
        let other = json!({"a": {"b": 3}, "d": null, "g": 1});
        let rest = without(&given, &other);
        assert_eq!(rest, json!({"a": {"c": 2}, "e": {}, "f": "x"}));
        assert_eq!(paths(&rest), ["a.c", "e", "f"]);
        assert_eq!(without(&given, &given), json!({}));
    }
}
