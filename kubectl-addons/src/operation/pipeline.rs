//! The way from names to plans, for every command that changes installations or shows what a change would be.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use common::admission::Facts;
use common::api::installation::AddonInstallation;
use common::api::names;
use common::catalogue::select::{Request, Rules};
use common::catalogue::{Catalogue, Entry, Origin};
use common::plan::InstallationName;
use common::plan::file::{EntryFacts, PlannedInstallation};
use common::values;
use futures::future::try_join;
use serde_json::json;

use crate::cli::operation::{Source, Values};
use crate::output;
use crate::session::Session;
use crate::usage::Usage;

use super::candidate::Candidate;
use super::choose::{Wish, choose};
use super::known::{Known, name_of};
use super::prompt;
use super::requirements::Available;
use super::together::{self, Flags, Planned};
use super::verdict;

/// What the user said about one new installation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Name of the installation.
    pub name: Option<&'a str>,
    /// Target namespace.
    pub target_namespace: Option<&'a str>,
    /// Core add-on.
    pub core: bool,
}

/// Everything that plans are made of, read once: records, catalogues, version.
pub struct Pipeline<'a> {
    session: &'a Session,
    source: &'a Source,
    /// The records of the cluster.
    pub known: Known,
    facts: Facts,
    asks: bool,
}

impl<'a> Pipeline<'a> {
    /// Reads records, catalogues and version: three requests at the same time.
    ///
    /// # Errors
    /// One of them fails.
    pub async fn new(session: &'a Session, source: &'a Source) -> Result<Self> {
        let catalogues = async {
            // With an index nobody looks at the catalogues.
            if source.channel.is_none() {
                session.catalogues().await.map(drop)
            } else {
                Ok(())
            }
        };
        let records_and_catalogues = try_join(Known::read(session), catalogues);
        let (version, (known, ())) =
            try_join(session.facts(None, None), records_and_catalogues).await?;
        let facts = verdict::facts(session, &known, version, source.channel.is_none()).await?;
        Ok(Self {
            session,
            source,
            known,
            facts,
            asks: false,
        })
    }

    /// Asks on a terminal for values that forms require and nobody has given, unless the user said `yes` to everything.
    #[must_use]
    pub fn asking(mut self, yes: bool) -> Self {
        self.asks = !yes;
        self
    }

    /// The candidate for a new installation, or for the one that has its name already.
    ///
    /// # Errors
    /// No such add-on, nothing fits, or the verdict is a denial.
    pub async fn install(
        &self,
        wish: &Wish,
        wanted: Wanted<'_>,
        overlay: &Values,
    ) -> Result<Candidate> {
        let catalogue = self.session.catalogue(self.source).await?;
        let request = Request {
            addon: &wish.name,
            version: wish.version.as_deref(),
            ..Request::default()
        };
        let (entry, selection) = choose(
            &catalogue,
            &request,
            &self.facts.cluster,
            self.session.rules(),
        )?;
        tell(&selection.warnings);
        let name = InstallationName {
            namespace: self.namespace_of(&entry)?,
            name: wanted
                .name
                .map_or_else(|| names::installation_name(&entry.addon), str::to_owned),
        };
        let existing = self.known.get(&name).cloned();
        let mut candidate = Candidate::new(name, existing, entry, selection.rules);
        candidate.is_asked_for = wish.version.is_some();
        let spec = &mut candidate.wanted.spec;
        if let Some(namespace) = wanted.target_namespace {
            spec.target_namespace = Some(namespace.to_owned());
        }
        spec.core_addon |= wanted.core;
        self.settle(candidate, overlay).await
    }

    /// The candidate for an upgrade of a record.
    ///
    /// # Errors
    /// As for [`Pipeline::install`]; a record whose origin cannot be read.
    pub async fn upgrade(
        &self,
        record: &AddonInstallation,
        version: Option<&str>,
        overlay: &Values,
    ) -> Result<Candidate> {
        let reference = &record.spec.addon_ref;
        let catalogue = self.catalogue_of(record).await?;
        let request = Request {
            addon: &reference.name,
            version,
            id: None,
            catalogue: if self.source.channel.is_none() {
                reference.catalogue.as_deref()
            } else {
                None
            },
        };
        let (entry, selection) = choose(
            &catalogue,
            &request,
            &self.facts.cluster,
            self.session.rules(),
        )?;
        tell(&selection.warnings);
        let mut candidate = Candidate::new(
            name_of(record),
            Some(record.clone()),
            entry,
            selection.rules,
        );
        candidate.is_asked_for = version.is_some();
        self.settle(candidate, overlay).await
    }

    /// The candidate that a plan file recorded, with the entry as it stands now.
    ///
    /// # Errors
    /// The entry is gone, or the verdict is a denial.
    pub async fn replay(&self, planned: &PlannedInstallation) -> Result<Candidate> {
        let (facts, to) = (&planned.entry, &planned.to);
        let catalogue = match &facts.origin {
            Origin::Index { location } => self.session.index(location).await?,
            Origin::Catalogue { .. } => Catalogue::of_objects(self.session.catalogues().await?),
        };
        let same_name = |entry: &&Entry| {
            let version = &entry.version;
            *entry.origin == facts.origin
                && (&entry.addon, &version.version, &version.id)
                    == (&facts.addon, &to.version, &to.id)
        };
        // Entries of a kops index may differ in their hash or range alone.
        let entry = catalogue
            .entries
            .iter()
            .filter(same_name)
            .max_by_key(|entry| {
                (
                    EntryFacts::of(entry).digest == facts.digest,
                    entry.place == facts.place,
                )
            });
        let entry =
            entry.with_context(|| format!("{} in {} is gone", facts.addon, facts.origin))?;
        let rules = to.rules.map_or(Rules::Channels, Rules::from);
        let name = planned.installation.clone();
        let existing = self.known.get(&name).cloned();
        let mut candidate = Candidate::new(name, existing, entry.clone(), rules);
        candidate.is_asked_for = true;
        let (wanted, recorded) = (&mut candidate.wanted, &planned.wanted);
        wanted.spec = recorded.spec.clone();
        wanted.metadata.labels = some(&recorded.labels);
        wanted.metadata.annotations = some(&recorded.annotations);
        let finalizers = recorded.finalizers.clone();
        wanted.metadata.finalizers = (!finalizers.is_empty()).then_some(finalizers);
        verdict::settle(self.session, &mut candidate, &self.facts).await?;
        Ok(candidate)
    }

    /// The plans of candidates.
    ///
    /// # Errors
    /// What is required and neither there nor part of the command.
    pub async fn plan(&self, candidates: Vec<Candidate>, flags: Flags) -> Result<Vec<Planned>> {
        let available = self.available(&candidates).await?;
        together::plan(self.session, &self.known, &available, candidates, flags).await
    }

    /// Only where somebody requires something: then the catalogues are looked through for a version that would do.
    async fn available(&self, candidates: &[Candidate]) -> Result<Available> {
        let mut available = Available::new();
        let mut requirements = candidates
            .iter()
            .map(|candidate| &candidate.entry.version.requires);
        if requirements.any(|requires| !requires.is_empty()) {
            for entry in &self.session.catalogue(self.source).await?.entries {
                let versions = available.entry(entry.addon.clone()).or_default();
                versions.push(entry.version.version.clone());
            }
        }
        Ok(available)
    }

    /// Records that the user means by a name, or all of this cluster.
    ///
    /// # Errors
    /// No such record, or several where no namespace was given.
    pub fn record(&self, name: &str) -> Result<&AddonInstallation> {
        find(&self.known, name, self.session)
    }

    /// The verdict on the deletion of a record.
    ///
    /// # Errors
    /// The denial.
    pub async fn deletion(&self, record: &AddonInstallation) -> Result<()> {
        verdict::deletion(self.session, record, &self.facts).await
    }

    async fn settle(&self, mut candidate: Candidate, overlay: &Values) -> Result<Candidate> {
        let spec = &mut candidate.wanted.spec;
        if !overlay.files.is_empty() || !overlay.set.is_empty() {
            spec.values = Some(overlaid(spec.values.take(), overlay)?);
        }
        if let Some(registry) = &overlay.registry {
            spec.registry = (!registry.is_empty()).then(|| registry.clone());
        }
        if self.asks {
            prompt::fill(&mut candidate)?;
        }
        match verdict::settle(self.session, &mut candidate, &self.facts).await {
            Ok(()) => Ok(candidate),
            Err(error) => Err(prompt::with_way_out(error, &candidate)),
        }
    }

    /// Where the entries of a record come from: what the flags say, else what it was installed from.
    async fn catalogue_of(&self, record: &AddonInstallation) -> Result<Catalogue> {
        let reference = &record.spec.addon_ref;
        if self.source.channel.is_some() || self.source.catalogue.is_some() {
            return self.session.catalogue(self.source).await;
        }
        match (&reference.index, &reference.directory) {
            (Some(index), _) => self.session.index(index).await,
            (None, Some(directory)) => bail!(
                "{} comes from directory {directory}, which upgrade does not read",
                name_of(record)
            ),
            (None, None) => Ok(Catalogue::of_objects(self.session.catalogues().await?)),
        }
    }

    /// Where the record of an entry lives (semantics 5): beside the system's catalogues, or in the namespace of a kops entry.
    fn namespace_of(&self, entry: &Entry) -> Result<String> {
        let global = self.session.global();
        let own = match &*entry.origin {
            Origin::Catalogue { .. } => global.system_namespace.clone(),
            Origin::Index { .. } => entry
                .version
                .default_namespace
                .clone()
                .unwrap_or_else(|| "kube-system".to_owned()),
        };
        match &global.namespace {
            Some(asked) if *asked != own && !self.facts.is_local(asked) => Err(Usage(format!(
                "namespace {asked} does not stand for this cluster; installations of {} live in {own}: leave --namespace out, \
                 or label it kubectl-addons.dev/cluster=local",
                entry.addon
            ))
            .into()),
            Some(asked) => Ok(asked.clone()),
            None => Ok(own),
        }
    }
}

/// The record that the user means by a name.
///
/// # Errors
/// No such record, or several where no namespace was given.
pub fn find<'a>(known: &'a Known, name: &str, session: &Session) -> Result<&'a AddonInstallation> {
    let namespace = session.global().namespace.as_deref();
    let is_meant = |record: &&AddonInstallation| {
        record.metadata.name.as_deref() == Some(name)
            && namespace
                .is_none_or(|namespace| record.metadata.namespace.as_deref() == Some(namespace))
    };
    let found: Vec<&AddonInstallation> = known.records.iter().filter(is_meant).collect();
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let names = known
                .records
                .iter()
                .filter_map(|record| record.metadata.name.as_deref());
            let hint = match common::admission::nearest::nearest(name, names) {
                Some(near) => format!("did you mean {near}?"),
                None => "see what there is: kubectl addons list".to_owned(),
            };
            bail!("no installation named {name}; {hint}")
        }
        several => {
            let namespaces: Vec<String> = several
                .iter()
                .map(|record| name_of(record).namespace)
                .collect();
            Err(Usage(format!(
                "{name} is installed in {}; choose one with --namespace",
                namespaces.join(", ")
            ))
            .into())
        }
    }
}

/// Marks as metadata holds them.
fn some(marks: &BTreeMap<String, String>) -> Option<BTreeMap<String, String>> {
    (!marks.is_empty()).then(|| marks.clone())
}

/// Values with what `-f` and `--set` say over them.
///
/// # Errors
/// A file that cannot be read or is no map; a flag that cannot be read.
pub fn overlaid(values: Option<serde_json::Value>, overlay: &Values) -> Result<serde_json::Value> {
    let mut merged = values.unwrap_or_else(|| json!({}));
    for path in &overlay.files {
        let name = path.to_string_lossy();
        let bytes = std::fs::read(path).with_context(|| format!("--values {name}"))?;
        // A null stays: it takes away what the catalogue or the package sets.
        values::merge::overlay(&mut merged, &values::read(&bytes, &name)?);
    }
    for flag in &overlay.set {
        values::set_from_flag(&mut merged, flag).with_context(|| format!("--set {flag}"))?;
    }
    Ok(merged)
}

fn tell(warnings: &[String]) {
    for warning in warnings {
        output::note(&format!("careful: {warning}"));
    }
}
