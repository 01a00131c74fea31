//! Charts that a chart is made of: helm fetches what its lock file names, once; then it is in the cache.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use common::api::names::{CLIENT, hex_prefix};
use common::render::chart::{Chart, Origin};
use common::render::package::{File, MAX_BYTES, MAX_FILES, Package, PackageError};
use serde_json::json;

use addons_sources::cache::{Cache, Note};

use super::process::{Call, run};
use super::workspace::{Workspace, read, wrong};
use super::{Helm, HelmError};

const BOUND: Duration = Duration::from_secs(120);
const OUTPUT: usize = 1 << 20;
/// Kind of the notes in the cache: the digest of a chart, and that of the chart with its dependencies.
const NOTES: &str = "helm-dependencies";

/// The chart with everything that it is made of. Archives have it: whoever packs them sees to that.
///
/// # Errors
/// No chart; a dependency that cannot be resolved, or has to be fetched where that is forbidden; helm's own.
pub async fn complete<'a>(
    helm: &Helm,
    package: &'a Package,
    cache: &Cache,
    offline: bool,
) -> Result<Cow<'a, Package>, HelmError> {
    if package.as_file().is_some() {
        return Ok(Cow::Borrowed(package));
    }
    let chart = Chart::read(package).map_err(HelmError::Chart)?;
    let missing = chart.missing(package).map_err(HelmError::Chart)?;
    if missing.is_empty() {
        return Ok(Cow::Borrowed(package));
    }
    // The files decide it all: folders are among them, and what is fetched is named by the lock file.
    let digest = package.digest();
    if let Some(complete) = cached(cache, &digest) {
        return Ok(Cow::Owned(complete));
    }
    let remote = missing
        .iter()
        .filter(|(_, origin)| matches!(origin, Origin::Remote(_)));
    let remote: Vec<&str> = remote
        .map(|(dependency, _)| dependency.name.as_str())
        .collect();
    if offline && !remote.is_empty() {
        let names = remote.join(", ");
        return Err(HelmError::Offline { names });
    }
    let complete = build(helm, &chart, package).await?;
    let note = Note {
        digest: cache.put(&complete.to_bytes()),
        ..Note::default()
    };
    cache.set_note(NOTES, &digest, &note);
    Ok(Cow::Owned(complete))
}

fn cached(cache: &Cache, digest: &str) -> Option<Package> {
    let note = cache.note(NOTES, digest)?;
    Package::from_bytes(&cache.get(&note.digest)?).ok()
}

async fn build(helm: &Helm, chart: &Chart, package: &Package) -> Result<Package, HelmError> {
    let workspace = Workspace::new()?;
    let folder = workspace.chart(package)?;
    // Every repository that the lock file names, for helm builds only from those it knows.
    let urls = chart.dependencies.iter();
    let urls = urls.map(|dependency| dependency.repository.as_str());
    let repositories: Vec<_> = urls
        .filter(|url| url.starts_with("http://") || url.starts_with("https://"))
        .map(|url| json!({"name": repository_name(url), "url": url}))
        .collect();
    let known = json!({"apiVersion": "v1", "repositories": repositories}).to_string();
    let path = Path::new("config").join("repositories.yaml");
    workspace.write(&path, known.as_bytes())?;
    let args: [OsString; 3] = ["dependency".into(), "build".into(), folder.clone().into()];
    let call = Call::new("dependency build", BOUND, OUTPUT).args(args);
    run(&helm.program, &workspace, call).await?;
    let mut files = package.files().to_vec();
    let charts = folder.join("charts");
    let listed = std::fs::read_dir(&charts).map_err(|source| wrong(&charts, source))?;
    let mut room = MAX_BYTES;
    for entry in listed.take(MAX_FILES) {
        let entry = entry.map_err(|source| wrong(&charts, source))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("charts/{name}");
        let is_new = name.ends_with(".tgz") && package.get(&path).is_none();
        if is_new {
            let bytes = read(&entry.path(), room)?;
            let bytes = bytes.ok_or(HelmError::Package(PackageError::TooLarge))?;
            room = room.saturating_sub(bytes.len());
            files.push(File { path, bytes });
        }
    }
    Package::folder(files).map_err(HelmError::Package)
}

/// The name of a repository for helm: one URL is one name.
fn repository_name(url: &str) -> String {
    let digest = hex_prefix(url.trim_end_matches('/').as_bytes(), 16);
    format!("{CLIENT}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_url_is_one_name() {
        let name = repository_name("https://a.example/charts");
        assert_eq!(name, repository_name("https://a.example/charts/"));
        assert_ne!(name, repository_name("https://b.example/charts"));
        assert!(
            name.starts_with("kubectl-addons-") && name.len() == 31,
            "{name}"
        );
    }
}
