//! A catalogue of the cluster is brought up to date from where it came.
//!
//! The object says that in `spec.from`, and keeps its class and its registry whatever the file says. What cannot be read or is
//! refused leaves its add-ons as they are, and is a condition.

use addons_engine::EngineError;
use addons_engine::catalogues::{self, NotSynced};
use addons_sources::location::{self, Located};
use addons_sources::{Access, Reach};
use common::admission::{Requester, validate};
use common::api::catalogue::{
    AddonCatalogue, AddonCatalogueSpec, CatalogueClass, CatalogueFrom, SourceKind,
};
use common::api::conditions;
use common::catalogue::{beside, size};
use common::manifest::digest;

use super::{DistributionError, md5};
use crate::context::Context;
use crate::error::{OperationError, within};
use crate::event::Finding;
use crate::records::Records;
use crate::verdict;

/// The longest message of a condition, in characters.
const LONGEST: usize = 1000;

/// A catalogue that is up to date.
#[derive(Clone, Debug, PartialEq)]
pub struct Synced {
    /// As it is stored now.
    pub object: AddonCatalogue,
    /// The commit, the digest of the image, or the sha256 of the file.
    pub revision: String,
    /// Whether its add-ons changed.
    pub is_changed: bool,
}

/// What `spec.from` holds.
struct Read {
    bytes: Vec<u8>,
    location: String,
    revision: String,
}

/// Brings a catalogue, as it was read before, up to date. Where nothing changed, nothing is written.
///
/// # Errors
/// What it comes from cannot be read, or is refused; this is written into its status as well. Those of the requests.
pub async fn sync(ctx: &Context, known: &AddonCatalogue) -> Result<Synced, OperationError> {
    let home = ctx.home().await?;
    let synced = attempt(ctx, known).await;
    match &synced {
        Ok(synced) => {
            let read = Ok(synced.revision.clone());
            catalogues::record_sync(home, &synced.object, &read).await?;
        }
        Err(error) => {
            if let Some(reason) = reason(error) {
                let message = bounded(error.chain());
                let read = Err(NotSynced { reason, message });
                catalogues::record_sync(home, known, &read).await?;
            }
        }
    }
    synced
}

async fn attempt(ctx: &Context, known: &AddonCatalogue) -> Result<Synced, OperationError> {
    let name = known.metadata.name.clone().unwrap_or_default();
    let Some(from) = &known.spec.from else {
        return Err(DistributionError::NoFrom { name }.into());
    };
    let place = || format!("catalogue {name}");
    let read = within(read(ctx, known, from).await, place)?;
    let revision = read.revision.clone();
    if is_current(known, &revision) {
        return Ok(Synced {
            object: known.clone(),
            revision,
            is_changed: false,
        });
    }
    let spec = within(content(ctx, known, from, read), place)?;
    if spec == known.spec {
        return Ok(Synced {
            object: known.clone(),
            revision,
            is_changed: false,
        });
    }
    if let Err(error) = size::check(&spec) {
        return Err(DistributionError::TooLarge { name, error }.into());
    }
    judge(ctx, known, &spec).await?;
    let object = catalogues::replace(ctx.home().await?, known, spec).await?;
    Ok(Synced {
        object,
        revision,
        is_changed: true,
    })
}

/// Whether the status says that this very object holds what is there.
fn is_current(known: &AddonCatalogue, revision: &str) -> bool {
    let Some(status) = &known.status else {
        return false;
    };
    let condition = conditions::raised(&status.conditions, conditions::SYNCED);
    let is_of_object =
        condition.is_some_and(|it| it.observed_generation == known.metadata.generation);
    let read = status.synced.as_ref();
    is_of_object && read.is_some_and(|read| read.revision == revision)
}

/// Reads the file, with the credentials that the catalogue names.
async fn read(
    ctx: &Context,
    known: &AddonCatalogue,
    from: &CatalogueFrom,
) -> Result<Read, OperationError> {
    let source = from.source();
    let auth = source.kind().ok().and_then(SourceKind::auth);
    let credentials = match auth {
        Some(auth) => {
            let namespace = known.metadata.namespace.as_deref().unwrap_or_default();
            Some(ctx.credentials(namespace, &auth.secret_ref.name).await?)
        }
        None => None,
    };
    let access = Access {
        reach: Reach::Cluster,
        credentials: credentials.as_deref(),
        ..ctx.access()
    };
    let fetched = addons_sources::package(&source, "", "spec.from", &access).await?;
    let location = fetched.location;
    let Some(file) = fetched.package.as_file() else {
        return Err(DistributionError::Folder { location }.into());
    };
    Ok(Read {
        revision: match fetched.resolved {
            Some(resolved) => resolved,
            None => digest::sha256(&file.bytes),
        },
        bytes: file.bytes.clone(),
        location,
    })
}

/// The spec that the catalogue is to have.
fn content(
    ctx: &Context,
    known: &AddonCatalogue,
    from: &CatalogueFrom,
    read: Read,
) -> Result<AddonCatalogueSpec, OperationError> {
    // The base of what came by URL is where it was asked for, and not where a redirect led: that may be another host tomorrow.
    let location = match &from.url {
        Some(url) => url.manifest.clone(),
        None => read.location,
    };
    let mut found = location::of_bytes(&read.bytes, &location)?;
    let name = known.metadata.name.as_deref().unwrap_or_default();
    let count = found.len();
    let one = match count {
        1 => found.pop(),
        _ => found
            .into_iter()
            .find(|one| one.object.metadata.name.as_deref() == Some(name)),
    };
    let Some(mut one) = one else {
        return Err(DistributionError::NotInFile {
            location,
            name: name.to_owned(),
            found: count,
        }
        .into());
    };
    for warning in md5::take_out(ctx.settings().rules, &mut one) {
        ctx.find(Finding::Index(warning));
    }
    let Located {
        object, warnings, ..
    } = one;
    for warning in warnings {
        ctx.find(Finding::Index(warning));
    }
    let mut spec = object.spec;
    if from.url.is_none() && spec.base_url.as_ref() == Some(&location) {
        spec.base_url = None;
    }
    beside::resolve(&mut spec, from, &read.revision).map_err(DistributionError::from)?;
    Ok(AddonCatalogueSpec {
        addons: spec.addons,
        base_url: spec.base_url,
        ..known.spec.clone()
    })
}

/// As the webhook judges it.
async fn judge(
    ctx: &Context,
    known: &AddonCatalogue,
    spec: &AddonCatalogueSpec,
) -> Result<(), OperationError> {
    let records = Records::read(ctx).await?;
    let facts = verdict::facts(ctx, &records, Default::default(), true).await?;
    let requester = match spec.class {
        CatalogueClass::Core => ctx.requester().await?.clone(),
        CatalogueClass::Custom => Requester::default(),
    };
    let wanted = AddonCatalogue {
        spec: spec.clone(),
        ..known.clone()
    };
    let judged = validate::catalogue(&wanted, Some(known), &requester, &facts);
    let name = known.metadata.name.as_deref().unwrap_or_default();
    Ok(verdict::conclude(
        ctx,
        &format!("catalogue {name}"),
        &judged,
    )?)
}

/// The word for the condition; `None` where the error says nothing of what the catalogue comes from.
fn reason(error: &OperationError) -> Option<&'static str> {
    match error.root() {
        OperationError::Refused(_) | OperationError::Engine(EngineError::Denied { .. }) => {
            Some("Refused")
        }
        OperationError::Distribution(DistributionError::TooLarge { .. }) => Some("TooLarge"),
        OperationError::Distribution(DistributionError::NoFrom { .. })
        | OperationError::Engine(_)
        | OperationError::Connect(_)
        | OperationError::NoCluster => None,
        _ => Some("Unreadable"),
    }
}

fn bounded(message: String) -> String {
    message.chars().take(LONGEST).collect()
}
