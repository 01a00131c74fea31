//! Our engine in a process of its own, so that its memory can be told: `child TIMES DATA FOLDER…`.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use addons_gotemplate::TemplateFile;
use addons_render::kkp::{KkpOptions, render};
use addons_render::package::{Package, PackagedFile};
use anyhow::{Context as _, Result, bail};

use super::addons::sha256;

/// The argument that makes the benchmark its own child.
pub(crate) const NAME: &str = "child";

/// Renders every folder so often, and prints `SHA256  NAME` of each.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [times, data, folders @ ..] = arguments else {
        bail!("usage: {NAME} TIMES DATA FOLDER…");
    };
    let times: usize = times.parse()?;
    let data = serde_json::from_slice(&fs::read(data)?)?;
    let packages = folders
        .iter()
        .map(|folder| package(Path::new(folder)).with_context(|| folder.clone()))
        .collect::<Result<Vec<_>>>()?;
    let options = KkpOptions::default();
    for round in 1..=times {
        for (folder, package) in folders.iter().zip(&packages) {
            let templates = package
                .files()
                .iter()
                .map(|file| {
                    let text = std::str::from_utf8(&file.bytes)?;
                    let name = file.path.as_str();
                    Ok(TemplateFile { name, text })
                })
                .collect::<Result<Vec<_>>>()?;
            let rendered = render(&templates, &data, &options)?;
            if round == times {
                let name = Path::new(folder).file_name().unwrap_or_default();
                let line = format!("{}  {}\n", sha256(rendered.text.as_bytes()), name.display());
                std::io::stdout().write_all(line.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// The templates of a folder.
fn package(folder: &Path) -> Result<Package> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "yaml") {
                let bytes = fs::read(&path)?;
                let path = path.strip_prefix(folder)?.to_string_lossy().into_owned();
                files.push(PackagedFile { path, bytes });
            }
        }
    }
    Ok(Package::from_folder(files)?)
}
