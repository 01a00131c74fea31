//! Charts that a chart is made of: folders of its own, which helm packs. What lies in repositories was fetched before, as every source is
//! ([`addons_sources::dependency`]); helm asks no server.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use addons_render::chart::{Chart, ChartError, Dependency, Origin};
use addons_render::package::{File, MAX_BYTES, Package, PackageError};
use addons_sources::archive;
use addons_versions::constraint::{Constraint, version};

use super::process::{Call, flag};
use super::workspace::{Workspace, read};
use super::{Helm, HelmError};

const BOUND: Duration = Duration::from_secs(60);
const OUTPUT: usize = 1 << 20;

/// The chart with everything that it is made of. Archives have it: whoever packs them sees to that.
///
/// # Errors
/// No chart; a dependency that is not there, or has another version than the chart wants; helm's own.
pub async fn complete<'a>(
    helm: &Helm,
    package: &'a Package,
) -> Result<Cow<'a, Package>, HelmError> {
    if package.as_file().is_some() {
        return Ok(Cow::Borrowed(package));
    }
    let chart = Chart::read(package).map_err(HelmError::Chart)?;
    let archived = archive::archived_charts(package);
    let missing = chart
        .missing(package, &archived)
        .map_err(HelmError::Chart)?;
    let mut files = Vec::new();
    for (dependency, origin) in missing {
        let Origin::Folder(folder) = origin else {
            return Err(HelmError::NotFetched {
                name: dependency.name.clone(),
            });
        };
        let file = packed(helm, package, dependency, &folder).await?;
        if !files.contains(&file) {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Ok(Cow::Borrowed(package));
    }
    files.extend(package.files().iter().cloned());
    let complete = Package::folder(files).map_err(HelmError::Package)?;
    Ok(Cow::Owned(complete))
}

/// A folder of the chart as the archive that helm makes of it.
async fn packed(
    helm: &Helm,
    package: &Package,
    dependency: &Dependency,
    folder: &str,
) -> Result<File, HelmError> {
    let inside = package.files().iter().filter_map(|file| {
        let path = file.path.strip_prefix(folder)?.strip_prefix('/')?;
        let (path, bytes) = (path.to_owned(), file.bytes.clone());
        Some(File { path, bytes })
    });
    let inside = Package::folder(inside.collect()).map_err(HelmError::Package)?;
    let chart = Chart::read_any(&inside).map_err(HelmError::Chart)?;
    check(dependency, &chart, folder)?;
    let workspace = Workspace::new()?;
    let at = workspace.chart(&inside)?;
    let made = workspace.path().join("data");
    let args: [OsString; 3] = ["package".into(), at.into(), flag("destination", &made)];
    let call = Call::new("package", BOUND, OUTPUT).args(args);
    helm.run(&workspace, call).await?;
    let name = format!("{}-{}.tgz", chart.name, chart.version);
    let bytes = read(&made.join(Path::new(&name)), MAX_BYTES)?;
    Ok(File {
        path: format!("charts/{name}"),
        bytes: bytes.ok_or(HelmError::Package(PackageError::TooLarge))?,
    })
}

/// Helm leaves out a chart of another name or version without a word.
fn check(dependency: &Dependency, chart: &Chart, folder: &str) -> Result<(), HelmError> {
    let range = dependency.version.trim();
    let is_in_range = || {
        let range = Constraint::parse(range).ok();
        let version = version(&chart.version).ok();
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
