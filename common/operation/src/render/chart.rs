//! Charts: the input for helm, and the objects that it renders.

mod complete;

use addons_helm::HelmError;
use addons_helm::dependencies;
use addons_helm::lookup::Lookup;
use addons_helm::template::{TemplateRequest, template};
use addons_render::chart::release_name::release_name;
use addons_render::chart::unknown::find_unknown_keys;
use addons_render::chart::{Chart, TEMPLATE_DATA, mentions_template_data};
use addons_render::hooks::Occasion;
use addons_render::package::{Package, PackagedFile};
use addons_render::random;
use addons_render::text::{RenderedText, TextSection};
use addons_versions::tolerant;
use common::catalogue::select::{ClusterVersions, RejectionReason, find_misfit};
use common::nearest::did_you_mean;
use common::values::layers::{LayerValues, Layers};
use common::values::mask::SecretMask;
use serde_json::{Map, Value};

pub use self::complete::CompleteChart;
use super::inputs::Inputs;
use super::jail;
use super::lookup::{LookupSource, LookupSummary};
use crate::context::Context;
use crate::error::{OperationError, within};
use crate::event::{Activity, OperationEvent};
use crate::resolve::choose::ChooseError;
use crate::resolve::resolved::Resolved;

/// How deep charts within charts are searched.
const MAX_NESTING: usize = 4;

/// Prepares everything that helm needs for an installation.
///
/// # Errors
/// There is no helm; the package is not a chart; a dependency cannot be fetched; helm refuses the name.
pub(crate) async fn complete(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    package: Package,
) -> Result<CompleteChart, OperationError> {
    let set = resolved.entry.version.template.helm.as_ref();
    let set = set.and_then(|helm| helm.release_name.as_deref());
    let release = release_name(set, &resolved.name.name)?;
    if ctx.settings().jail.is_some() {
        let files = addons_helm::chart_files(&package)?;
        jail::check_files(&files)?;
    }
    let helm = ctx.helm().await?;
    let package = dependencies::complete_chart(helm, &package)
        .await?
        .into_owned();
    let files = addons_helm::chart_files(&package)?;
    let chart = Chart::read(&files).map_err(HelmError::Chart)?;
    check_kubernetes(inputs, &resolved.entry.addon, &chart)?;
    let defaults = LayerValues::new("values.yaml of the chart", chart.values.clone());
    let layers = inputs.with_package(defaults);
    let mut values = layers.merge_all();
    let data = inputs.template_document(&values);
    let mut inner = Vec::new();
    unpack(&files, 0, &mut inner);
    let warnings = unknown_values(&chart, &layers, std::iter::once(&*files).chain(&inner));
    if let Value::Object(values) = &mut values
        && !chart.is_closed
        && reads_data(std::iter::once(&*files).chain(&inner), values)
    {
        values.insert(TEMPLATE_DATA.to_owned(), data);
    }
    drop(files);
    Ok(CompleteChart {
        release,
        package,
        whole_numbers: layers.whole_numbers(),
        skips_crds: resolved.skips_crds(),
        warnings,
        values,
        mask: inputs.mask(),
    })
}

/// Refuses a chart for other versions of Kubernetes before helm does: helm's refusal does not tell this reason from others.
fn check_kubernetes(inputs: &Inputs, addon: &str, chart: &Chart) -> Result<(), OperationError> {
    let document = inputs.template_document(&Value::Null);
    let facts = ClusterVersions {
        kubernetes: kubernetes(&document).and_then(|version| tolerant::parse(version).ok()),
        kkp: None,
        profile: None,
    };
    match find_misfit(&chart.constraints(), &facts) {
        Some(RejectionReason::DoesNotMatch { range, version, .. }) => {
            let Chart {
                name,
                version: of_chart,
                ..
            } = chart;
            Err(OperationError::Choose(ChooseError::DoesNotFit {
                name: addon.to_owned(),
                details: format!(
                    ": chart {name} {of_chart}: kubeVersion {range} does not match {version}"
                ),
            }))
        }
        _ => Ok(()),
    }
}

/// Returns the version of Kubernetes from the template data.
fn kubernetes(document: &Value) -> Option<&str> {
    let version = document.pointer("/Cluster/Version")?.as_str()?;
    Some(version).filter(|version| !version.is_empty())
}

/// Warns about values of the installation that no other layer has and that no file of the chart names.
fn unknown_values<'a>(
    chart: &Chart,
    layers: &Layers,
    packages: impl Iterator<Item = &'a Package> + Clone,
) -> Vec<String> {
    let below = Layers {
        spec: LayerValues::default(),
        ..layers.clone()
    };
    let texts = packages.flat_map(Package::files);
    let texts = texts
        .filter(|file| !is_archive(file))
        .map(|file| file.bytes.as_slice());
    let unknown = find_unknown_keys(chart, &below.merge_all(), layers.spec.values(), texts);
    let words = unknown.into_iter().map(|(path, near)| {
        let near = did_you_mean(near.as_deref());
        format!("value {path}: chart {} has no such value{near}", chart.name)
    });
    words.collect()
}

/// Whether a file of the chart, or a template in its values (`tpl`), names the template data. Any other chart that prints all its values
/// would print the data as well.
fn reads_data<'a>(
    mut packages: impl Iterator<Item = &'a Package>,
    values: &Map<String, Value>,
) -> bool {
    packages.any(mentions_template_data)
        || values
            .values()
            .any(|it| it.to_string().contains(TEMPLATE_DATA))
}

/// Renders a chart with helm.
///
/// # Errors
/// Those of [`complete()`]; helm's own; the Kubernetes version is not known.
pub(crate) async fn render_text(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    package: Package,
    is_upgrade: bool,
) -> Result<RenderedText, OperationError> {
    let chart = complete(ctx, resolved, inputs, package).await?;
    run_helm_template(ctx, resolved, inputs, &chart, is_upgrade, None).await
}

/// The texts of a chart, and what it read for them.
pub(crate) struct ChartRenderings {
    /// The text.
    pub(crate) text: RenderedText,
    /// The second rendering, if the templates generate something at random: the differences are random.
    pub(crate) again: Option<RenderedText>,
    /// What the templates read with `lookup`.
    pub(crate) lookups: LookupSummary,
    /// The files in `crds/`, which helm does not render.
    pub(crate) crds: Vec<TextSection>,
}

/// As [`render_text`], with `lookup` of live objects that the installation owns, and rendered twice if templates generate something at random.
///
/// # Errors
/// As [`render_text`]; an object cannot be read.
pub(crate) async fn render_with_lookup(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    package: Package,
    is_upgrade: bool,
) -> Result<ChartRenderings, OperationError> {
    let chart = complete(ctx, resolved, inputs, package).await?;
    let mut inner = Vec::new();
    unpack(&chart.package, 0, &mut inner);
    let packages = std::iter::once(&chart.package).chain(&inner);
    let files = packages
        .flat_map(Package::files)
        .filter(|file| !is_archive(file));
    let files: Vec<&PackagedFile> = files.collect();
    let is_twice = files
        .iter()
        .any(|file| file.path.contains("templates/") && random::is_random(&file.bytes));
    let crds = collect_crds(&files);
    // Values may contain templates as well (`tpl`).
    let values = chart.values.to_string();
    let mut texts = files.iter().map(|file| file.bytes.as_slice());
    let looks_up = texts.any(random::looks_up) || random::looks_up(values.as_bytes());
    let own = match looks_up {
        true => LookupSource::for_installation(ctx, resolved).await?,
        false => None,
    };
    let both = async |lookup: Option<&Lookup<'_>>| {
        let text = run_helm_template(ctx, resolved, inputs, &chart, is_upgrade, lookup).await?;
        let again = match is_twice {
            true => {
                Some(run_helm_template(ctx, resolved, inputs, &chart, is_upgrade, lookup).await?)
            }
            false => None,
        };
        Ok((text, again))
    };
    let both = match &own {
        Some(own) => {
            let (lookup, questions) = Lookup::new(own.kinds());
            own.answer_during(questions, both(Some(&lookup))).await
        }
        None => both(None).await,
    };
    let mut seen = match own {
        Some(own) => own.into_summary()?,
        None => LookupSummary::default(),
    };
    seen.drop_chart_words(
        files
            .iter()
            .map(|file| file.bytes.as_slice())
            .chain([values.as_bytes()]),
    );
    let mask = SecretMask::from_values(seen.secrets.iter());
    let (text, again) = both.map_err(|error: OperationError| error.masked(&mask))?;
    Ok(ChartRenderings {
        text,
        again,
        lookups: seen,
        crds,
    })
}

/// Returns the files in `crds/` of the charts.
fn collect_crds(files: &[&PackagedFile]) -> Vec<TextSection> {
    let of_crds = |path: &str| path.starts_with("crds/") || path.contains("/crds/");
    let files = files.iter().filter(|file| of_crds(&file.path));
    let sections = files.map(|file| TextSection {
        file: file.path.clone(),
        bytes: file.bytes.clone(),
    });
    sections.collect()
}

/// Collects the charts in a chart.
fn unpack(package: &Package, depth: usize, inner: &mut Vec<Package>) {
    for file in package.files().iter().filter(|file| is_archive(file)) {
        if depth < MAX_NESTING
            && let Ok(chart) = addons_sources::archive::unpack(&file.bytes)
        {
            unpack(&chart, depth + 1, inner);
            inner.push(chart);
        }
    }
}

fn is_archive(file: &PackagedFile) -> bool {
    file.path.ends_with(".tgz")
}

/// Renders a chart that helm itself will install, without the live objects that its templates may look up.
///
/// # Errors
/// As [`render_text`].
pub(crate) async fn render_for_release(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    chart: &CompleteChart,
) -> Result<RenderedText, OperationError> {
    let is_upgrade = resolved.occasion() == Occasion::Upgrade;
    run_helm_template(ctx, resolved, inputs, chart, is_upgrade, None).await
}

async fn run_helm_template(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    chart: &CompleteChart,
    is_upgrade: bool,
    lookup: Option<&Lookup<'_>>,
) -> Result<RenderedText, OperationError> {
    let data = inputs.template_document(&Value::Null);
    let Some(version) = kubernetes(&data) else {
        return Err(OperationError::NoKubernetesVersion);
    };
    let api_versions = if inputs.is_of_cluster() {
        within(ctx.api_versions().await, || {
            "cannot tell what the cluster serves".to_owned()
        })?
    } else {
        &[]
    };
    let request = TemplateRequest {
        release_name: &chart.release,
        namespace: resolved.target_namespace(),
        values: &chart.values,
        whole_numbers: &chart.whole_numbers,
        mask: &chart.mask,
        kube_version: &format!("v{}", version.trim_start_matches('v')),
        api_versions,
        is_upgrade,
        include_crds: !chart.skips_crds,
        timeout: ctx.time_to_render(),
        lookup,
    };
    let work = Activity::Render {
        addon: resolved.entry.addon.clone(),
    };
    ctx.emit(OperationEvent::Began(work.clone()));
    let helm = ctx.helm().await?;
    let text = {
        let _slot = ctx.acquire_slot(resolved.wanted.spec.is_guard()).await;
        template(helm, &chart.package, &request).await
    };
    ctx.emit(OperationEvent::Ended(work));
    let mut text = RenderedText::from_chart(text?);
    text.warnings.clone_from(&chart.warnings);
    Ok(text)
}
