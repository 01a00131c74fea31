//! The objects of a request, with the namespace and name of the request where they have none of their own.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::admission::marks::Marks;
use crate::admission::object::Object;
use crate::admission::review::{Request, category};
use crate::admission::rules::catalogue::in_use;
use crate::admission::verdict::Problem;
use crate::api::catalogue::AddonCatalogue;
use crate::api::installation::AddonInstallation;

/// The marks of an object, with the namespace and name of the request where it has none of its own.
pub(super) fn marks(request: &Request<'_>, object: Option<&RawValue>) -> Result<Marks, Problem> {
    let raw = object.ok_or_else(|| missing(request))?;
    let mut marks = Marks::read(raw).map_err(|error| wrong(request, &error))?;
    let metadata = &mut marks.metadata;
    complete(request, &mut metadata.namespace, &mut metadata.name);
    Ok(marks)
}

/// The object as a catalogue.
pub(super) fn catalogue(
    request: &Request<'_>,
    raw: Option<&RawValue>,
) -> Result<AddonCatalogue, Problem> {
    let Object { metadata, spec } = object(request, raw)?;
    Ok(AddonCatalogue {
        metadata,
        spec,
        status: None,
    })
}

/// The object as an installation.
pub(super) fn installation(
    request: &Request<'_>,
    raw: Option<&RawValue>,
) -> Result<AddonInstallation, Problem> {
    let Object { metadata, spec } = object(request, raw)?;
    Ok(AddonInstallation {
        metadata,
        spec,
        status: None,
    })
}

/// The object with a specification of ours.
fn object<S: DeserializeOwned>(
    request: &Request<'_>,
    object: Option<&RawValue>,
) -> Result<Object<S>, Problem> {
    let raw = object.ok_or_else(|| missing(request))?;
    let mut object: Object<S> =
        serde_json::from_str(raw.get()).map_err(|error| wrong(request, &error))?;
    let metadata = &mut object.metadata;
    complete(request, &mut metadata.namespace, &mut metadata.name);
    Ok(object)
}

/// What the rules of a deletion read of a catalogue: one that cannot be read otherwise, e.g. of an older schema, can be deleted.
pub(super) fn deleted(request: &Request<'_>) -> Result<AddonCatalogue, Problem> {
    let raw = request.old_object.ok_or_else(|| missing(request))?;
    let mut old = in_use::names(raw).map_err(|error| wrong(request, &error))?;
    let metadata = &mut old.metadata;
    complete(request, &mut metadata.namespace, &mut metadata.name);
    Ok(old)
}

fn complete(request: &Request<'_>, namespace: &mut Option<String>, name: &mut Option<String>) {
    for (field, given) in [(namespace, &request.namespace), (name, &request.name)] {
        if field.as_deref().unwrap_or_default().is_empty() {
            given.clone_into(field);
        }
    }
}

fn missing(request: &Request<'_>) -> Problem {
    Problem::invalid(
        "unreadable",
        "",
        format!(
            "the review of {} {} holds no object",
            request.operation.name(),
            request.kind.kind
        ),
    )
}

/// Quotes nothing of the object: serde's own message would contain values.
fn wrong(request: &Request<'_>, error: &serde_json::Error) -> Problem {
    Problem::invalid(
        "unreadable",
        "",
        format!(
            "the object cannot be read as {}: {} at line {}, column {}",
            request.kind.kind,
            category(error),
            error.line(),
            error.column()
        ),
    )
}
