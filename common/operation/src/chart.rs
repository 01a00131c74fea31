//! Charts: the input for helm, and the objects that it renders.

use addons_helm::dependencies;
use addons_helm::lookup::Lookup;
use addons_helm::template::{TemplateRequest, template};
use common::render::chart::release_name::release_name;
use common::render::hooks::Occasion;
use common::render::package::{File, Package};
use common::render::random;
use common::render::text::Text;
use common::values::layers::Values;
use common::values::mask::Mask;
use serde_json::Value;

use crate::context::Context;
use crate::error::{OperationError, within};
use crate::event::{Event, Work};
use crate::inputs::Inputs;
use crate::lookup::{Own, Seen};
use crate::resolved::Resolved;

/// The key under which the data of templates reaches a chart, beside its values (semantics 10).
const TEMPLATE_DATA: &str = "templateData";

/// How deep charts are looked into that lie in charts.
const NESTED: usize = 4;

/// A chart with everything that helm needs to install it.
#[derive(Clone, Debug)]
pub struct CompleteChart {
    /// Name of the release.
    pub release: String,
    /// The chart, with its dependencies.
    pub package: Package,
    /// The merged values.
    pub values: Value,
    /// Hides what comes from Secrets in errors.
    pub mask: Mask,
}

/// Prepares everything that helm needs for an installation.
///
/// # Errors
/// There is no helm; the package is not a chart; a dependency that cannot be fetched; a name that helm refuses.
pub(crate) async fn complete(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    package: Package,
) -> Result<CompleteChart, OperationError> {
    let set = resolved.entry.version.template.helm.as_ref();
    let set = set.and_then(|helm| helm.release_name.as_deref());
    let release = release_name(set, &resolved.name.name)?;
    let helm = ctx.helm().await?;
    let package = dependencies::complete(helm, &package).await?.into_owned();
    let chart = addons_helm::chart(&package)?;
    let layers = inputs.with_package(Values::new("values.yaml of the chart", chart.values));
    let mut values = layers.merged();
    let data = inputs.document(&values);
    // The schemas of some charts refuse unknown values.
    if let (Value::Object(values), false) = (&mut values, chart.is_closed) {
        values.insert(TEMPLATE_DATA.to_owned(), data);
    }
    Ok(CompleteChart {
        release,
        package,
        values,
        mask: inputs.mask(),
    })
}

/// Renders a chart with helm.
///
/// # Errors
/// Those of [`complete`]; helm's own; a Kubernetes version that is not known.
pub(crate) async fn text(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    package: Package,
    is_upgrade: bool,
) -> Result<Text, OperationError> {
    let chart = complete(ctx, resolved, inputs, package).await?;
    rendered(ctx, resolved, inputs, &chart, is_upgrade, None).await
}

/// The texts of a chart, and what it read for them.
pub(crate) struct Renderings {
    /// The text.
    pub(crate) text: Text,
    /// Rendered a second time, where the templates make something at random: what differs is random.
    pub(crate) again: Option<Text>,
    /// What `lookup` was asked for.
    pub(crate) seen: Seen,
}

/// As [`text`], with the live objects that the installation owns, and where templates make something at random, a second time.
///
/// # Errors
/// As [`text`]; an object that cannot be read.
pub(crate) async fn renderings(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    package: Package,
    is_upgrade: bool,
) -> Result<Renderings, OperationError> {
    let chart = complete(ctx, resolved, inputs, package).await?;
    let mut inner = Vec::new();
    unpack(&chart.package, 0, &mut inner);
    let packages = std::iter::once(&chart.package).chain(&inner);
    let files = packages
        .flat_map(Package::files)
        .filter(|file| !is_archive(file));
    let files: Vec<&File> = files.collect();
    let is_twice = files
        .iter()
        .any(|file| file.path.contains("templates/") && random::is_random(&file.bytes));
    // Values may hold templates, too (`tpl`).
    let values = chart.values.to_string();
    let mut texts = files.iter().map(|file| file.bytes.as_slice());
    let looks_up = texts.any(random::looks_up) || random::looks_up(values.as_bytes());
    let own = match looks_up {
        true => Own::of(ctx, resolved).await?,
        false => None,
    };
    let both = async |lookup: Option<&Lookup<'_>>| {
        let text = rendered(ctx, resolved, inputs, &chart, is_upgrade, lookup).await?;
        let again = match is_twice {
            true => Some(rendered(ctx, resolved, inputs, &chart, is_upgrade, lookup).await?),
            false => None,
        };
        Ok((text, again))
    };
    let both = match &own {
        Some(own) => {
            let (lookup, questions) = Lookup::new(own.kinds());
            own.during(questions, both(Some(&lookup))).await
        }
        None => both(None).await,
    };
    let mut seen = match own {
        Some(own) => own.seen()?,
        None => Seen::default(),
    };
    seen.spelled_out(
        files
            .iter()
            .map(|file| file.bytes.as_slice())
            .chain([values.as_bytes()]),
    );
    let mask = Mask::of(seen.secrets.iter());
    let (text, again) = both.map_err(|error: OperationError| error.masked(&mask))?;
    Ok(Renderings { text, again, seen })
}

/// The charts in a chart.
fn unpack(package: &Package, depth: usize, inner: &mut Vec<Package>) {
    for file in package.files().iter().filter(|file| is_archive(file)) {
        if depth < NESTED
            && let Ok(chart) = addons_sources::archive::unpack(&file.bytes)
        {
            unpack(&chart, depth + 1, inner);
            inner.push(chart);
        }
    }
}

fn is_archive(file: &File) -> bool {
    file.path.ends_with(".tgz")
}

/// Renders a chart that helm itself will install, without the live objects that its templates may look up.
///
/// # Errors
/// As [`text`].
pub(crate) async fn of_release(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    chart: &CompleteChart,
) -> Result<Text, OperationError> {
    let is_upgrade = resolved.occasion() == Occasion::Upgrade;
    rendered(ctx, resolved, inputs, chart, is_upgrade, None).await
}

async fn rendered(
    ctx: &Context,
    resolved: &Resolved,
    inputs: &Inputs,
    chart: &CompleteChart,
    is_upgrade: bool,
    lookup: Option<&Lookup<'_>>,
) -> Result<Text, OperationError> {
    let data = inputs.document(&Value::Null);
    let version = data
        .pointer("/Cluster/Version")
        .and_then(Value::as_str)
        .filter(|version| !version.is_empty());
    let Some(version) = version else {
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
        mask: &chart.mask,
        kube_version: &format!("v{}", version.trim_start_matches('v')),
        api_versions,
        is_upgrade,
        include_crds: true,
        timeout: ctx.time_to_render(),
        lookup,
    };
    let work = Work::Render {
        addon: resolved.entry.addon.clone(),
    };
    ctx.emit(Event::Began(work.clone()));
    let text = template(ctx.helm().await?, &chart.package, &request).await;
    ctx.emit(Event::Ended(work));
    Ok(Text::of_chart(text?))
}
