//! Dependencies of a chart that are folders of the chart itself: helm packs them. Charts from repositories were fetched before, like every
//! source ([`addons_sources::dependency`]), so helm contacts no server.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use addons_render::chart::{Chart, ChartDependency, ChartError, DependencyOrigin};
use addons_render::package::{MAX_BYTES, Package, PackageError, PackagedFile};
use addons_sources::archive;
use addons_versions::constraint::{Constraint, parse_version};

use super::process::{HelmCall, flag};
use super::workspace::{Workspace, read_limited};
use super::{Helm, HelmError};

const BOUND: Duration = Duration::from_secs(60);
const OUTPUT: usize = 1 << 20;

/// Returns the chart with all its dependencies. An archive already contains them, because whoever packs it adds them.
///
/// # Errors
/// The package is not a chart, a dependency is missing or has a version that the chart does not accept, or helm fails.
pub async fn complete_chart<'a>(
    helm: &Helm,
    package: &'a Package,
) -> Result<Cow<'a, Package>, HelmError> {
    if package.as_file().is_some() {
        return Ok(Cow::Borrowed(package));
    }
    let chart = Chart::read(package).map_err(HelmError::Chart)?;
    let archived = archive::archived_charts(package);
    let missing = chart
        .missing_dependencies(package, &archived)
        .map_err(HelmError::Chart)?;
    let mut files = Vec::new();
    for (dependency, origin) in missing {
        let DependencyOrigin::Folder(folder) = origin else {
            return Err(HelmError::NotFetched {
                name: dependency.name.clone(),
            });
        };
        let file = pack_folder(helm, package, dependency, &folder).await?;
        if !files.contains(&file) {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Ok(Cow::Borrowed(package));
    }
    files.extend(package.files().iter().cloned());
    let complete = Package::from_folder(files).map_err(HelmError::Package)?;
    Ok(Cow::Owned(complete))
}

/// Packs a folder of the chart into an archive with helm.
async fn pack_folder(
    helm: &Helm,
    package: &Package,
    dependency: &ChartDependency,
    folder: &str,
) -> Result<PackagedFile, HelmError> {
    let inside = package.files().iter().filter_map(|file| {
        let path = file.path.strip_prefix(folder)?.strip_prefix('/')?;
        let (path, bytes) = (path.to_owned(), file.bytes.clone());
        Some(PackagedFile { path, bytes })
    });
    let inside = Package::from_folder(inside.collect()).map_err(HelmError::Package)?;
    let chart = Chart::read_any(&inside).map_err(HelmError::Chart)?;
    check_dependency(dependency, &chart, folder)?;
    let workspace = Workspace::new()?;
    let at = workspace.write_chart(&inside)?;
    let made = workspace.path().join("data");
    let args: [OsString; 3] = ["package".into(), at.into(), flag("destination", &made)];
    let call = HelmCall::new("package", BOUND, OUTPUT).args(args);
    helm.run(&workspace, call).await?;
    let name = format!("{}-{}.tgz", chart.name, chart.version);
    let bytes = read_limited(&made.join(Path::new(&name)), MAX_BYTES)?;
    Ok(PackagedFile {
        path: format!("charts/{name}"),
        bytes: bytes.ok_or(HelmError::Package(PackageError::TooLarge))?,
    })
}

/// Checks name and version, because helm silently leaves out a chart with another name or version.
fn check_dependency(
    dependency: &ChartDependency,
    chart: &Chart,
    folder: &str,
) -> Result<(), HelmError> {
    let range = dependency.version.trim();
    let is_in_range = || {
        let range = Constraint::parse(range).ok();
        let version = parse_version(&chart.version).ok();
        range
            .zip(version)
            .is_some_and(|(range, version)| range.matches(&version))
    };
    if chart.name == dependency.name && (range.is_empty() || is_in_range()) {
        return Ok(());
    }
    Err(HelmError::Chart(ChartError::Dependency {
        name: dependency.name.clone(),
        problem: format!("{folder} has {} {}", chart.name, chart.version),
        way_out: "write the version that the folder has into Chart.yaml",
    }))
}
