//! `requiredResourceTypes`: what an add-on needs the cluster to serve before it can be planned.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use addons_engine::required;
use anyhow::Result;
use common::api::catalogue::ResourceType;
use common::manifest::Manifest;
use common::plan::InstallationName;
use common::plan::brought::Brought;

use crate::output;
use crate::progress::{counting, seconds};
use crate::session::Session;

use super::candidate::Candidate;

/// Not served in time: exit 3. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[error("{addon}: timed out after {} waiting for {}{}", seconds(*waited), named(types), looks(types))]
pub struct NotServed {
    /// The add-on.
    addon: String,
    /// What is still missing.
    types: Vec<ResourceType>,
    /// How long it was waited for.
    waited: Duration,
}

/// What the add-ons of one command bring, and how long they wait for what none of them does.
#[derive(Debug)]
pub struct RequiredTypes {
    brought: Vec<(InstallationName, Brought)>,
    /// `None` for a command that only shows what it would do.
    timeout: Option<Duration>,
    begun: Instant,
}

impl RequiredTypes {
    /// Of the objects of each add-on.
    pub fn new<'a>(
        addons: impl Iterator<Item = (&'a InstallationName, &'a [Manifest])>,
        timeout: Option<Duration>,
    ) -> Self {
        let brought = addons.map(|(name, manifests)| {
            let objects = manifests.iter().map(|manifest| &manifest.object);
            (name.clone(), Brought::of(objects))
        });
        Self {
            brought: brought.collect(),
            timeout,
            begun: Instant::now(),
        }
    }

    /// Waits until the cluster serves the types that an add-on requires and the command does not bring, and tells which other
    /// add-ons bring the rest: they go first. A command that only shows what it would do does not wait but warns, for what it
    /// shows may differ once the types are served.
    ///
    /// # Errors
    /// [`NotServed`]; the server cannot be asked.
    pub async fn settle(
        &self,
        session: &Session,
        candidate: &Candidate,
    ) -> Result<Vec<InstallationName>> {
        let mut types = candidate
            .entry
            .version
            .template
            .required_resource_types
            .clone();
        let mut first = Vec::new();
        types.retain(|wanted| {
            let mut bringing = self
                .brought
                .iter()
                .filter(|(_, brought)| brought.serves(wanted));
            let Some((name, _)) = bringing.clone().next() else {
                return true;
            };
            // What it brings itself is no reason to wait for others.
            if !bringing.any(|(name, _)| *name == candidate.name) {
                first.push(name.clone());
            }
            false
        });
        // Most add-ons require none; nothing is asked then.
        if !types.is_empty() {
            self.wait(session, &candidate.name.name, &types).await?;
        }
        Ok(first)
    }

    async fn wait(&self, session: &Session, addon: &str, types: &[ResourceType]) -> Result<()> {
        let cluster = session.cluster().await?;
        let Some(timeout) = self.timeout else {
            let missing = required::missing(cluster, types).await?;
            if !missing.is_empty() {
                output::note(&format!(
                    "careful: {addon} requires {}, which this cluster does not serve; installing it waits for that",
                    named(&missing)
                ));
            }
            return Ok(());
        };
        let bar = output::live().then(counting);
        let tell = |missing: &[ResourceType]| {
            let text = format!("… {addon}  waiting for {}", named(missing));
            match &bar {
                Some(bar) => bar.set_message(text),
                None => output::note(&format!("  {text}")),
            }
        };
        let left = timeout.saturating_sub(self.begun.elapsed());
        let missing = required::wait(cluster, types, left, &tell).await;
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        match missing? {
            types if types.is_empty() => Ok(()),
            types => Err(NotServed {
                addon: addon.to_owned(),
                types,
                waited: timeout,
            }
            .into()),
        }
    }
}

fn named(types: &[ResourceType]) -> String {
    let names: Vec<String> = types.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// The ways out, a line each.
fn looks(types: &[ResourceType]) -> String {
    let mut groups: Vec<&str> = types.iter().map(|wanted| wanted.group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    let mut lines = String::new();
    for group in groups {
        // Writing to a String cannot fail.
        let _ = write!(
            lines,
            "\n  look:   kubectl api-resources --api-group={group}"
        );
    }
    lines
        .push_str("\n  accept: --timeout DURATION, after the add-on that defines it was installed");
    lines
}
