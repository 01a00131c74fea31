//! Sentences about archives for sites without internet.

use std::path::Path;

use addons_airgap::Progress;
use addons_airgap::export::Exported;
use addons_airgap::import::Imported;
use common::registry::Registry;

/// Describes the progress of an export or import.
pub fn progress(progress: &Progress) -> String {
    match progress {
        Progress::Verifying => "verifying the archive".to_owned(),
        Progress::Copying { name } => format!("copying {name}"),
        Progress::Blob { name, done, size } => format!(
            "copying {name}: {} of a blob of {}",
            self::size(*done),
            self::size(*size)
        ),
        Progress::Moved { name, former } => {
            format!("moved {name}: it was {former} until now")
        }
        Progress::Copied {
            name,
            blobs,
            bytes,
            there,
        } => format!(
            "copied {name}: {} ({}), {there} there already",
            counted(*blobs, "blob"),
            size(*bytes)
        ),
        Progress::Warning(warning) => format!("warning: {warning}"),
    }
}

/// Tells what an interrupted export leaves on disk.
pub fn export_interrupted(archive: &Path) -> String {
    format!(
        "interrupted: what was fetched is kept in {}.partial; to continue, run the same command again",
        archive.display()
    )
}

/// Tells what an interrupted import leaves in the registry.
pub fn import_interrupted() -> String {
    "interrupted: what was pushed stays in the registry; to continue, run the same command again"
        .to_owned()
}

/// Describes an export: `site.tar: 4 images and artifacts, 1 referrer, 12.3 MiB`.
pub fn exported(archive: &Path, exported: &Exported) -> String {
    let Exported {
        images,
        referrers,
        bytes,
    } = exported;
    format!(
        "{}: {} and artifacts, {}, {}",
        archive.display(),
        counted(*images, "image"),
        counted(*referrers, "referrer"),
        size(*bytes)
    )
}

/// Describes an import: `mirror.example.org/site: 5 images, artifacts and referrers; 7 blobs pushed (12.3 MiB), 2 there already`.
pub fn imported(registry: &Registry, imported: &Imported) -> String {
    format!(
        "{registry}: {} images, artifacts and referrers; {} pushed ({}), {} there already",
        imported.images,
        counted(imported.sent, "blob"),
        size(imported.bytes),
        imported.there
    )
}

/// Returns the command that installs the imported add-ons.
pub fn command(registry: &Registry, imported: &Imported) -> Option<String> {
    let catalogue = imported.catalogue.as_ref()?;
    if imported.addons.is_empty() {
        return None;
    }
    let addons = imported.addons.join(" ");
    Some(format!(
        "kubectl addons install {addons} --registry {registry} --channel oci://{catalogue}"
    ))
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats a number of bytes as MiB.
fn size(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts() {
        assert_eq!(size((12 << 20) + (400 << 10)), "12.3 MiB");
        assert_eq!(
            (counted(1, "blob"), counted(0, "blob")),
            ("1 blob".into(), "0 blobs".into())
        );
    }

    #[test]
    fn the_command_names_everything_that_the_catalogue_lists() {
        let registry = "mirror.example.org/site".parse().unwrap();
        let catalogue = "mirror.example.org/site/kubectl-addons/catalogue:site".to_owned();
        let imported = Imported {
            catalogue: Some(catalogue),
            addons: vec!["web".to_owned(), "db".to_owned()],
            ..Imported::default()
        };
        assert_eq!(
            command(&registry, &imported).as_deref(),
            Some(
                "kubectl addons install web db --registry mirror.example.org/site \
                 --channel oci://mirror.example.org/site/kubectl-addons/catalogue:site"
            )
        );
        assert_eq!(command(&registry, &Imported::default()), None);
    }
}
