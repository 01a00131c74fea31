//! The metrics of each installation. They are written when they are asked for, so that a loop over many installations does not pay for
//! them with every event.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use common::api::names::InstallationName;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::{BoolLabel, CountedState, VersionFit, bool_label};

/// The most installations with metrics of their own: the first by namespace and name. The sums count all.
const MOST: usize = 2000;

/// The state of each installation. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct InstallationSeries(Arc<Mutex<BTreeMap<InstallationName, CountedState>>>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InfoLabels {
    namespace: String,
    name: String,
    addon: String,
    version: String,
    fit: &'static str,
    core: BoolLabel,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabels {
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DriftLabels {
    namespace: String,
    name: String,
    differs: &'static str,
}

impl InstallationSeries {
    /// Replaces the installations. `all` is sorted by name.
    pub(super) fn update(&self, all: &[(&InstallationName, &CountedState)]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = all.get(..MOST).unwrap_or(all);
        known.retain(|name, _| all.binary_search_by(|(one, _)| (*one).cmp(name)).is_ok());
        for (name, state) in all {
            if known.get(*name) != Some(*state) {
                known.insert((*name).clone(), (*state).clone());
            }
        }
    }
}

impl Collector for InstallationSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let info = Family::<InfoLabels, Gauge>::default();
        let installed = Family::<NameLabels, Gauge>::default();
        let drifted = Family::<DriftLabels, Gauge>::default();
        let windows = Family::<NameLabels, Gauge>::default();
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, state) in known.iter() {
            let InstallationName { namespace, name } = name.clone();
            let names = NameLabels {
                namespace: namespace.clone(),
                name: name.clone(),
            };
            if let Some(at) = state.installed_at {
                installed.get_or_create(&names).set(at);
            }
            if let Some(opens) = state.found.window {
                windows.get_or_create(&names).set(opens);
            }
            let drift = state.found.drift;
            for (differs, count) in [("edited", drift.edited), ("missing", drift.missing)] {
                if !drift.is_empty() {
                    let labels = DriftLabels {
                        namespace: namespace.clone(),
                        name: name.clone(),
                        differs,
                    };
                    let count = i64::try_from(count).unwrap_or(i64::MAX);
                    drifted.get_or_create(&labels).set(count);
                }
            }
            let labels = InfoLabels {
                namespace,
                name,
                addon: state.addon.clone(),
                version: state.version.clone(),
                fit: match state.fit {
                    VersionFit::Unlisted => "unknown",
                    VersionFit::Fits => bool_label(true),
                    VersionFit::Misfit => bool_label(false),
                },
                core: bool_label(state.is_core),
            };
            info.get_or_create(&labels).set(1);
        }
        drop(known);
        write(
            &mut encoder,
            "installation_info",
            "The version of an installation, and whether it fits its cluster",
            &info,
        )?;
        write(
            &mut encoder,
            "installation_installed_timestamp_seconds",
            "When the version of an installation was installed",
            &installed,
        )?;
        write(
            &mut encoder,
            "installation_drifted_objects",
            "Objects that were edited or deleted and are not restored",
            &drifted,
        )?;
        write(
            &mut encoder,
            "installation_window_timestamp_seconds",
            "When the maintenance window opens for which a change waits",
            &windows,
        )
    }
}

/// Writes a metric, unless it has no value.
fn write<L>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    family: &Family<L, Gauge>,
) -> fmt::Result
where
    L: Clone + Hash + Eq + EncodeLabelSet,
{
    if family.is_empty() {
        return Ok(());
    }
    let encoder = encoder.encode_descriptor(name, help, None, family.metric_type())?;
    family.encode(encoder)
}
