//! Sentences about archives for sites without internet.

use std::path::Path;

use addons_airgap::AirgapProgress;
use addons_airgap::export::Exported;
use addons_airgap::import::Imported;
use common::registry::Registry;

/// Describes the progress of an export or import.
pub fn describe_progress(progress: &AirgapProgress) -> String {
    match progress {
        AirgapProgress::Verifying => "verifying the archive".to_owned(),
        AirgapProgress::Copying { name } => format!("copying {name}"),
        AirgapProgress::Blob { name, done, size } => format!(
            "copying {name}: {} of a blob of {}",
            self::format_mebibytes(*done),
            self::format_mebibytes(*size)
        ),
        AirgapProgress::Moved { name, former } => {
            format!("moved {name}: it was {former} until now")
        }
        AirgapProgress::Copied {
            name,
            blobs,
            bytes,
            there,
        } => format!(
            "copied {name}: {} ({}), {there} there already",
            format_count(*blobs, "blob"),
            format_mebibytes(*bytes)
        ),
        AirgapProgress::NotSigned => "warning: the catalogue requires signatures (spec.signature): publish it with --sign-key, or sign \
             each package in the registry, before add-ons are installed from it"
            .to_owned(),
        AirgapProgress::Warning(warning) => format!("warning: {warning}"),
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
pub fn describe_export(archive: &Path, exported: &Exported) -> String {
    let Exported {
        images,
        referrers,
        bytes,
    } = exported;
    format!(
        "{}: {} and artifacts, {}, {}",
        archive.display(),
        format_count(*images, "image"),
        format_count(*referrers, "referrer"),
        format_mebibytes(*bytes)
    )
}

/// Describes an import: `mirror.example.org/site: 5 images, artifacts and referrers; 7 blobs pushed (12.3 MiB), 2 there already`.
pub fn describe_import(registry: &Registry, imported: &Imported) -> String {
    format!(
        "{registry}: {} images, artifacts and referrers; {} pushed ({}), {} there already",
        imported.images,
        format_count(imported.sent, "blob"),
        format_mebibytes(imported.bytes),
        imported.there
    )
}

/// Returns the command that installs the imported add-ons.
pub fn install_command(registry: &Registry, imported: &Imported) -> Option<String> {
    let catalogue = imported.catalogue.as_ref()?;
    if imported.addons.is_empty() {
        return None;
    }
    let addons = imported.addons.join(" ");
    Some(format!(
        "kubectl addons install {addons} --registry {registry} --channel oci://{catalogue}"
    ))
}

/// `1 blob`, `2 blobs`.
pub(super) fn format_count(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats a number of bytes as MiB.
pub(super) fn format_mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts() {
        assert_eq!(format_mebibytes((12 << 20) + (400 << 10)), "12.3 MiB");
        assert_eq!(
            (format_count(1, "blob"), format_count(0, "blob")),
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
            install_command(&registry, &imported).as_deref(),
            Some(
                "kubectl addons install web db --registry mirror.example.org/site \
                 --channel oci://mirror.example.org/site/kubectl-addons/catalogue:site"
            )
        );
        assert_eq!(install_command(&registry, &Imported::default()), None);
    }
}
