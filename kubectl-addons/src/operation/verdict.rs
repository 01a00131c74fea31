//! Defaults and verdicts as the webhook computes them, so that nothing differs where none is installed (semantics 10).

use std::sync::Arc;

use addons_engine::identity;
use anyhow::{Context as _, Result};
use common::admission::marks::Marks;
use common::admission::rules;
use common::admission::verdict::Verdict;
use common::admission::{Facts, Requester, Settings, mutate, validate};
use common::api::installation::AddonInstallation;
use common::catalogue::Origin;
use common::catalogue::select::ClusterFacts;

use crate::output;
use crate::session::Session;

use super::candidate::Candidate;
use super::known::Known;

/// The plugin's own denial, in the words of the webhook: exit 6.
#[derive(Debug, thiserror::Error)]
#[error("{what} is refused: {message}")]
pub struct Refused {
    /// What was judged.
    pub what: String,
    /// The denial.
    pub message: String,
}

/// What verdicts may look at: what was read already, and the catalogues where installations name them.
///
/// # Errors
/// Catalogues cannot be read.
pub async fn facts(
    session: &Session,
    known: &Known,
    cluster: ClusterFacts,
    catalogues: bool,
) -> Result<Facts> {
    let catalogues = if catalogues {
        session.catalogues().await?
    } else {
        &[]
    };
    let installations = known.records.iter().map(|record| {
        let mut record = record.clone();
        record.status = None;
        Arc::new(record)
    });
    let system_namespace = session.global().system_namespace.clone();
    Ok(Facts {
        catalogues: catalogues.iter().cloned().map(Arc::new).collect(),
        installations: installations.collect(),
        cluster,
        settings: Settings {
            system_namespace,
            ..Settings::default()
        },
        ..Facts::default()
    })
}

/// Fills in what is missing and judges the result.
///
/// # Errors
/// [`Refused`].
pub async fn settle(session: &Session, candidate: &mut Candidate, facts: &Facts) -> Result<()> {
    let object = serde_json::to_value(&candidate.wanted)
        .context("the installation cannot be written as JSON")?;
    let patch = mutate::defaults(&object, Some(&candidate.name.namespace), facts);
    if !patch.0.is_empty() {
        let mut object = object;
        json_patch::patch(&mut object, &patch)
            .context("the defaults do not fit the installation")?;
        candidate.wanted =
            serde_json::from_value(object).context("the defaults do not fit the installation")?;
    }
    if candidate.wanted.spec.target_namespace.is_none() {
        candidate.wanted.spec.target_namespace = Some(candidate.target_namespace().to_owned());
    }
    let requester = if candidate.wanted.spec.core_addon {
        identity::whoami(session.cluster().await?).await?
    } else {
        Requester::default()
    };
    let mut verdict = validate::installation(
        &candidate.wanted,
        candidate.existing.as_ref(),
        &requester,
        facts,
    );
    // The webhook cannot know the entries of an index; here the chosen one is at hand.
    if matches!(*candidate.entry.origin, Origin::Index { .. }) {
        let values = rules::installation::values(&candidate.wanted, &candidate.entry);
        verdict.problems.extend(values);
    }
    tell(&format!("installation {}", candidate.name), &verdict)
}

/// Judges the deletion of an installation.
///
/// # Errors
/// [`Refused`].
pub async fn deletion(session: &Session, record: &AddonInstallation, facts: &Facts) -> Result<()> {
    let marks = Marks::of(record);
    let requester = if record.spec.core_addon {
        identity::whoami(session.cluster().await?).await?
    } else {
        Requester::default()
    };
    let mut verdict = validate::installation_deletion(&marks, &requester, facts);
    // They tell how to do what this command is about to do.
    verdict.warnings.clear();
    tell(
        &format!(
            "uninstalling {}",
            record.metadata.name.as_deref().unwrap_or_default()
        ),
        &verdict,
    )
}

/// Prints the warnings, and makes an error of the denial.
///
/// # Errors
/// [`Refused`].
pub fn tell(what: &str, verdict: &Verdict) -> Result<()> {
    for warning in &verdict.warnings {
        output::note(&format!("careful: {warning}"));
    }
    match verdict.denial() {
        Some(denial) => Err(Refused {
            what: what.to_owned(),
            message: denial.message,
        }
        .into()),
        None => Ok(()),
    }
}
