//! Renders fetched packages, and parses them into the objects of the installations.

pub(crate) mod authority;
pub mod chart;
pub mod inputs;
pub mod jail;
pub(crate) mod lookup;
pub mod values_from;

use std::collections::BTreeSet;
use std::time::Duration;

use addons_plan::choices::Choices;
use addons_render::hooks::{self, Occasion};
use addons_render::kkp::{self, StopFlag};
use addons_render::objects::{self, ObjectsError, RenderRequest, RenderSource, RenderedObjects};
use addons_render::package::Package;
use addons_render::random::RandomFields;
use addons_render::text::{self, RenderedText};
use addons_sources::{SourceError, archive};
use common::api::catalogue::{HelmMode, Method};
use common::api::installation::{HelmRelease, Installed, Signature};
use common::api::names::InstallationName;
use common::api::names::installation_name;
use common::catalogue::CatalogueEntry;
use common::catalogue::due::DueVerdict;
use common::manifest::Manifest;
use common::manifest::key::ObjectKey;
use common::patch::{PatchedObject, Patches};
use common::values::mask::SecretMask;
use futures::StreamExt as _;
use futures::stream;
use tokio::sync::oneshot;

use self::chart::{ChartRenderings, CompleteChart};
use self::inputs::{Inputs, RenderData};
use crate::context::Context;
use crate::error::{OperationError, within};
use crate::fetch::{self, AT_ONCE, Fetched, VerifiedPackage};
use crate::resolve::resolved::Resolved;
use crate::stage::{StageResult, Staged};

/// The rendered objects of an installation.
#[derive(Debug)]
pub struct Rendered {
    /// The inputs of the rendering.
    pub inputs: Inputs,
    /// The objects.
    pub manifests: Vec<Manifest>,
    /// The fields that the chart generates at random.
    pub random: RandomFields,
    /// What the patches of the installation changed.
    pub patched: Vec<PatchedObject>,
    /// The chart that helm itself installs, with its values; the objects are then empty.
    pub release: Option<CompleteChart>,
    /// The hash of the entry, or that of the package if the entry has none (semantics 11.4).
    pub manifest_hash: String,
    /// The commit, image digest or chart version.
    pub resolved: Option<String>,
    /// See [`VerifiedPackage::signature`].
    pub signature: Option<Signature>,
    /// Where the package was read.
    pub location: String,
    /// The names of the definitions in `crds/` of its charts.
    pub definitions: BTreeSet<String>,
    /// Resting hooks as the manifests name them: [`addons_render::hooks::HookSelection::resting`].
    pub resting: Vec<ObjectKey>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// See [`Fetched::is_due`].
    pub is_due: bool,
}

impl Rendered {
    /// Returns what will be recorded as installed.
    pub(crate) fn target(
        &self,
        resolved: &Resolved,
        helm_release: Option<HelmRelease>,
    ) -> Installed {
        Installed {
            manifest_hash: self.manifest_hash.clone(),
            resolved: self.resolved.clone(),
            signature: self.signature.clone(),
            helm_release,
            ..resolved.target(&self.inputs)
        }
    }
}

/// Renders fetched packages, several add-ons at the same time.
pub async fn render(ctx: &Context, fetched: Vec<Staged<Fetched>>) -> Vec<Staged<Rendered>> {
    let rendering = stream::iter(fetched).map(|Staged { resolved, stage }| async move {
        let stage = match stage {
            StageResult::Due(fetched) => {
                StageResult::from_result(render_one(ctx, &resolved, fetched).await.map(Some))
            }
            StageResult::UpToDate => StageResult::UpToDate,
            StageResult::Failed(error) => StageResult::Failed(error),
        };
        Staged { resolved, stage }
    });
    rendering.buffered(AT_ONCE).collect().await
}

/// Returns given objects as if they had been rendered. They are always planned, because edits of live objects are repaired (semantics 21.1).
pub(crate) fn take_given(installations: Vec<Resolved>, choices: &Choices) -> Vec<Staged<Rendered>> {
    let rendered = installations.into_iter().filter_map(|resolved| {
        let given = resolved.given.clone()?;
        let mut manifests = given.manifests.clone();
        let patches = Patches::compile(&resolved.wanted.spec.patches);
        let patched = patches.and_then(|it| it.apply(&mut manifests, resolved.target_namespace()));
        let patched = match patched {
            Ok(patched) => patched,
            Err(error) => {
                let stage = StageResult::Failed(given.wrap_error(&resolved, error.into()));
                return Some(Staged { resolved, stage });
            }
        };
        let inputs = Inputs::without_cluster(&resolved, RenderData::None);
        let due = resolved.check_due(&inputs, Some(&given.digest));
        let occasion = match due {
            DueVerdict::No => Occasion::Repair,
            _ => resolved.occasion(),
        };
        let kept = hooks::select_for_occasion(manifests, occasion, Method::Manifest);
        let mut warnings = given.warnings.clone();
        warnings.extend(patched.iter().filter_map(PatchedObject::warn_secret));
        warnings.extend(kept.left_out.iter().map(ToString::to_string));
        let rendered = Rendered {
            inputs,
            manifests: kept.manifests,
            random: RandomFields::default(),
            patched,
            release: None,
            manifest_hash: given.digest.clone(),
            resolved: None,
            signature: None,
            location: given.path.clone(),
            definitions: BTreeSet::new(),
            resting: kept.resting,
            warnings,
            is_due: due != DueVerdict::No || choices.repair,
        };
        let stage = StageResult::Due(rendered);
        Some(Staged { resolved, stage })
    });
    rendered.collect()
}

/// Renders one package to its objects, or to the chart that helm itself installs.
async fn render_one(
    ctx: &Context,
    resolved: &Resolved,
    fetched: Fetched,
) -> Result<Rendered, OperationError> {
    let template = &resolved.entry.version.template;
    let helm = template.helm.as_ref();
    let is_release = helm.is_some_and(|helm| helm.mode == HelmMode::Release);
    let Fetched {
        inputs,
        package: verified,
        is_due,
        occasion,
    } = fetched;
    if template.method != Method::Helm || !is_release {
        let rendered = render_objects(ctx, resolved, occasion, inputs, verified).await?;
        let mut manifests = rendered.manifests;
        if resolved.entry.version.needs_pki {
            let now = ctx.cluster().await?.now();
            manifests.extend(authority::manifests(&resolved.entry, now)?);
        }
        return Ok(Rendered {
            is_due,
            manifests,
            ..rendered
        });
    }
    let VerifiedPackage {
        fetched,
        manifest_hash,
        signature,
        warnings,
    } = verified;
    within(
        Patches::check_release(&resolved.wanted.spec.patches),
        || resolved.place(),
    )?;
    let chart = chart::complete(ctx, resolved, &inputs, fetched.package).await;
    let chart = within(chart, || resolved.place())?;
    let warnings = warnings.into_iter().chain(chart.warnings.clone()).collect();
    Ok(Rendered {
        manifests: Vec::new(),
        random: RandomFields::default(),
        patched: Vec::new(),
        release: Some(chart),
        manifest_hash,
        resolved: fetched.resolved,
        signature,
        location: fetched.location,
        definitions: BTreeSet::new(),
        resting: Vec::new(),
        warnings,
        inputs,
        is_due,
    })
}

/// Renders and parses a package. `occasion` selects the hooks that are applied.
///
/// # Errors
/// A template, a chart or a manifest fails, with its place.
pub async fn render_objects(
    ctx: &Context,
    resolved: &Resolved,
    occasion: Occasion,
    mut inputs: Inputs,
    verified: VerifiedPackage,
) -> Result<Rendered, OperationError> {
    let place = || resolved.place();
    let (package, location) = (verified.fetched.package, verified.fetched.location);
    let method = resolved.entry.version.template.method;
    let mut looked_up = None;
    let source = if method == Method::Helm {
        let is_upgrade = resolved.occasion() == Occasion::Upgrade;
        let renderings =
            chart::render_with_lookup(ctx, resolved, &inputs, package, is_upgrade).await;
        let ChartRenderings {
            text,
            again,
            lookups: seen,
            crds,
        } = within(renderings, place)?;
        inputs.looked_up = seen.secrets;
        looked_up = seen.line;
        RenderSource::Texts { text, again, crds }
    } else if method == Method::GoTemplate && ctx.settings().jail.is_some() {
        within(template_source(ctx, &inputs, package), place)?
    } else {
        let text = render_text(ctx, resolved, &inputs, package).await;
        RenderSource::from_text(within(text, place)?)
    };
    let request = RenderRequest {
        source,
        location: location.clone(),
        method,
        occasion: Some(occasion),
        duplicate_keys: ctx.duplicate_keys(),
        registry: within(resolved.registry(), place)?,
        patches: resolved.wanted.spec.patches.clone(),
        namespace: resolved.target_namespace().to_owned(),
    };
    let mask = inputs.mask();
    let RenderedObjects {
        manifests,
        random,
        patched,
        resting,
        definitions,
        warnings,
        doubts,
    } = within(parse_objects(ctx, resolved, &request, &mask).await, place)?;
    let all = verified.warnings.into_iter().chain(warnings);
    let all = all.chain(looked_up).chain(doubts);
    let warnings = all.map(|warning| mask.mask_text(&warning)).collect();
    Ok(Rendered {
        inputs,
        manifests,
        random,
        patched,
        release: None,
        manifest_hash: verified.manifest_hash,
        resolved: verified.fetched.resolved,
        signature: verified.signature,
        location,
        definitions,
        resting,
        warnings,
        is_due: true,
    })
}

/// Parses rendered texts into objects, in a separate process if the context has a jail.
///
/// # Errors
/// Those of the texts, or of the process.
pub(crate) async fn parse_objects(
    ctx: &Context,
    resolved: &Resolved,
    request: &RenderRequest,
    mask: &SecretMask,
) -> Result<RenderedObjects, OperationError> {
    match &ctx.settings().jail {
        Some(jail) => {
            let _slot = ctx.acquire_slot(resolved.wanted.spec.is_guard()).await;
            jail.render(request, ctx.time_to_render(), mask).await
        }
        None => objects::render_objects(request, &StopFlag::default()).map_err(|error| {
            let error = match error {
                ObjectsError::Text(error) => OperationError::from(error),
                ObjectsError::Manifest(error) => OperationError::from(error),
                ObjectsError::Patch(error) => OperationError::from(error),
            };
            error.masked(mask)
        }),
    }
}

/// Returns the templates of a package with their data, for rendering by another process.
fn template_source(
    ctx: &Context,
    inputs: &Inputs,
    package: Package,
) -> Result<RenderSource, OperationError> {
    let package = archive::unpack_package(package).map_err(SourceError::Archive)?;
    jail::check_files(&package)?;
    let layers = inputs.with_package(text::package_values(&package)?);
    Ok(RenderSource::Templates {
        data: inputs.template_document(&layers.merge_all()),
        package,
        strict: ctx.settings().strict,
    })
}

/// Returns the objects of an entry as they would be installed, without an installation. For a given version of Kubernetes, no request is
/// sent to a cluster.
///
/// # Errors
/// A source, a template or a manifest fails, with its place.
pub async fn render_entry(
    ctx: &Context,
    entry: &CatalogueEntry,
    kubernetes: Option<&str>,
) -> Result<Rendered, OperationError> {
    render_uninstalled(ctx, &resolve_uninstalled(ctx, entry), kubernetes).await
}

/// As [`render_entry`], for what [`resolve_uninstalled`] returned.
///
/// # Errors
/// As [`render_entry`].
pub(crate) async fn render_uninstalled(
    ctx: &Context,
    resolved: &Resolved,
    kubernetes: Option<&str>,
) -> Result<Rendered, OperationError> {
    let inputs = match kubernetes {
        Some(version) => Inputs::without_cluster(resolved, RenderData::with_version(version)),
        None => Inputs::read(ctx, resolved).await?,
    };
    let mut verified = fetch::package(ctx, resolved).await?;
    if resolved.entry.verifiable_hash().is_none() {
        // A manifestHash covers all bytes; records use the trimmed ones.
        verified.manifest_hash = verified.fetched.package.digest();
    }
    let occasion = resolved.occasion();
    render_objects(ctx, resolved, occasion, inputs, verified).await
}

/// Returns an entry resolved as it would be installed under its own name.
#[must_use]
pub fn resolve_uninstalled(ctx: &Context, entry: &CatalogueEntry) -> Resolved {
    let name = InstallationName {
        namespace: ctx.settings().system_namespace.clone(),
        name: installation_name(&entry.addon),
    };
    Resolved::new(name, None, entry.clone(), ctx.settings().rules)
}

/// Returns the rendered text of a package.
///
/// # Errors
/// A template or a chart fails.
pub async fn render_text(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    package: Package,
) -> Result<RenderedText, OperationError> {
    let files = |package| -> Result<Package, OperationError> {
        archive::unpack_package(package).map_err(|error| SourceError::Archive(error).into())
    };
    match resolved.entry.version.template.method {
        Method::Manifest => Ok(RenderedText::from_manifests(files(package)?)),
        Method::GoTemplate => render_templates(ctx, resolved, inputs, files(package)?).await,
        Method::Helm => {
            let is_upgrade = resolved.occasion() == Occasion::Upgrade;
            chart::render_text(ctx, resolved, inputs, package, is_upgrade).await
        }
    }
}

/// Renders templates on a thread of their own, so that a long rendering delays neither Ctrl-C nor other work.
async fn render_templates(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    package: Package,
) -> Result<RenderedText, OperationError> {
    let layers = inputs.with_package(text::package_values(&package)?);
    let data = inputs.template_document(&layers.merge_all());
    let options = kkp::KkpOptions {
        strict: ctx.settings().strict,
        registry: resolved.registry()?,
        ..kkp::KkpOptions::default()
    };
    let bound = ctx.time_to_render();
    let stopped = StopOnDrop(options.stop.clone());
    let (send, rendered) = oneshot::channel();
    let work = move || {
        // If the receiver was dropped, the rendering was stopped.
        let _ = send.send(RenderedText::from_templates(&package, &data, &options));
    };
    let thread = std::thread::Builder::new().name("templates".to_owned());
    thread.spawn(work).map_err(OperationError::Thread)?;
    let rendered = wait_for_thread(rendered, bound).await;
    drop(stopped);
    rendered?.map_err(|error| OperationError::from(error).masked(&inputs.mask()))
}

/// Waits for the result of the rendering thread.
async fn wait_for_thread<T>(
    rendered: oneshot::Receiver<T>,
    bound: Duration,
) -> Result<T, OperationError> {
    match tokio::time::timeout(bound, rendered).await {
        Ok(Ok(answer)) => Ok(answer),
        // The thread ended without a result, which is not a timeout.
        Ok(Err(_)) => Err(OperationError::LostTemplates),
        Err(_) => Err(OperationError::SlowTemplates { bound }),
    }
}

/// Stops a rendering when it is dropped.
struct StopOnDrop(StopFlag);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_thread_that_ended_without_an_answer_was_not_slow() {
        let bound = Duration::from_millis(1);
        let (send, rendered) = oneshot::channel::<()>();
        let slow = wait_for_thread(rendered, bound).await.unwrap_err();
        assert!(
            matches!(slow, OperationError::SlowTemplates { .. }),
            "{slow}"
        );
        drop(send);
        let (send, rendered) = oneshot::channel::<()>();
        drop(send);
        let lost = wait_for_thread(rendered, bound).await.unwrap_err();
        assert!(matches!(lost, OperationError::LostTemplates), "{lost}");
    }
}
