//! Reads archives of charts, manifests and templates in memory. Helm reads the archive of a chart itself when
//! it renders.

use std::collections::BTreeSet;
use std::io::{self, Read};

use addons_render::chart;
use addons_render::package::{MAX_BYTES, MAX_FILES, Package, PackageError, PackagedFile};
use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

/// The bytes of headers and padding, in addition to the files.
const OVERHEAD: u64 = (MAX_FILES as u64) * 2048;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file is not gzip or not tar, or it is truncated.
    #[error("it is not a .tgz archive, or it is cut off")]
    Unreadable(#[source] io::Error),
    /// The unpacked archive exceeds the limit.
    #[error("it is larger than {} MiB unpacked", MAX_BYTES >> 20)]
    TooLarge,
    /// An entry is a link or a device.
    #[error("{path} is not a regular file; a chart may hold only files")]
    Kind {
        /// The path of the entry.
        path: String,
    },
    /// A path is outside the top folder of the archive.
    #[error("{path} is outside the chart's folder")]
    Outside {
        /// The path of the entry.
        path: String,
    },
    /// The files cannot be a package.
    #[error(transparent)]
    Package(#[from] PackageError),
}

/// Returns the files of a chart archive, without the top folder.
///
/// # Errors
/// [`ArchiveError`].
pub fn unpack(bytes: &[u8]) -> Result<Package, ArchiveError> {
    let mut root: Option<String> = None;
    let files = read_entries(bytes, |path| {
        strip_top_folder(&path, &mut root).map(str::to_owned)
    })?;
    Ok(Package::from_folder(files)?)
}

/// Returns the files of an archive of manifests or templates, without the top folder if there is exactly one.
///
/// # Errors
/// [`ArchiveError`].
pub fn read_files(bytes: impl Read) -> Result<Package, ArchiveError> {
    let mut files = read_entries(bytes, |path| {
        Ok(path.strip_prefix("./").unwrap_or(&path).to_owned())
    })?;
    let mut root: Option<String> = None;
    let inner: Result<Vec<String>, _> = files
        .iter()
        .map(|file| strip_top_folder(&file.path, &mut root).map(str::to_owned))
        .collect();
    if let Ok(inner) = inner {
        for (file, inner) in files.iter_mut().zip(inner) {
            file.path = inner;
        }
    }
    Ok(Package::from_folder(files)?)
}

/// Unpacks a package of manifests or templates if it is one file whose name is that of an archive.
///
/// # Errors
/// [`ArchiveError`].
pub fn unpack_package(package: Package) -> Result<Package, ArchiveError> {
    match package.as_file() {
        Some(file) if is_archive(&file.path) => read_files(file.bytes.as_slice()),
        _ => Ok(package),
    }
}

/// Returns the names of the charts that are archived in `charts/` of a chart. They are read from the
/// archives, as helm does, because an archive can have any file name.
#[must_use]
pub fn archived_charts(package: &Package) -> BTreeSet<String> {
    let archives = package.files().iter().filter(|file| {
        let name = file.path.strip_prefix("charts/");
        name.is_some_and(|name| name.ends_with(".tgz") && !name.contains('/'))
    });
    archives
        .filter_map(|file| chart::chart_name(&unpack(&file.bytes).ok()?))
        .collect()
}

/// Whether the extension of a path is that of an archive.
#[must_use]
pub fn is_archive(path: &str) -> bool {
    path.ends_with(".tgz") || path.ends_with(".tar.gz")
}

/// Returns the regular files of an archive. `placed` maps their paths.
fn read_entries(
    bytes: impl Read,
    mut placed: impl FnMut(String) -> Result<String, ArchiveError>,
) -> Result<Vec<PackagedFile>, ArchiveError> {
    let limit = MAX_BYTES as u64 + OVERHEAD;
    // Read all gzip members, as helm does. A manifest that only helm reads would be applied unchecked.
    let mut archive = Archive::new(MultiGzDecoder::new(bytes).take(limit));
    let mut files = Vec::new();
    let mut size = 0_u64;
    for entry in archive.entries().map_err(ArchiveError::Unreadable)? {
        let mut entry = entry.map_err(ArchiveError::Unreadable)?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Directory | EntryType::XGlobalHeader | EntryType::XHeader => continue,
            _ => return Err(ArchiveError::Kind { path }),
        }
        if is_ambiguous(&mut entry).map_err(ArchiveError::Unreadable)? {
            return Err(ArchiveError::Kind { path });
        }
        let inner = placed(path)?;
        size = size.saturating_add(entry.size());
        if size > MAX_BYTES as u64 {
            return Err(ArchiveError::TooLarge);
        }
        if files.len() >= MAX_FILES {
            return Err(PackageError::TooMany.into());
        }
        let mut bytes = Vec::new();
        entry
            .read_to_end(&mut bytes)
            .map_err(ArchiveError::Unreadable)?;
        files.push(PackagedFile { path: inner, bytes });
    }
    // Read to the checksum at the end, to detect an archive that is truncated after its last file.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(ArchiveError::Unreadable)?;
    if rest.limit() == 0 {
        return Err(ArchiveError::TooLarge);
    }
    Ok(files)
}

/// Whether other readers could see another name or content because of the extended headers of the entry. Helm
/// must not read files that were not checked.
fn is_ambiguous(entry: &mut Entry<'_, impl Read>) -> io::Result<bool> {
    let mut keys = BTreeSet::new();
    for header in entry.pax_extensions()?.into_iter().flatten() {
        let header = header?;
        let key = header.key_bytes();
        if key.starts_with(b"GNU.sparse.")
            || header.value_bytes().is_empty()
            || !keys.insert(key.to_vec())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the path below the top folder of the archive.
fn strip_top_folder<'a>(path: &'a str, root: &mut Option<String>) -> Result<&'a str, ArchiveError> {
    let outside = || ArchiveError::Outside {
        path: path.to_owned(),
    };
    let relative = path.strip_prefix("./").unwrap_or(path);
    let (folder, rest) = relative.split_once('/').ok_or_else(outside)?;
    if matches!(folder, "" | "." | "..") || root.get_or_insert_with(|| folder.to_owned()) != folder
    {
        return Err(outside());
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;

    fn entry(builder: &mut Builder<Vec<u8>>, path: &str, kind: EntryType, bytes: &[u8]) {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_entry_type(kind);
        // `set_path` refuses the names that this test uses.
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        builder.append(&header, bytes).unwrap();
    }

    fn tgz(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (path, kind, bytes) in entries {
            entry(&mut builder, path, *kind, bytes);
        }
        gzip(&builder.into_inner().unwrap())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(bytes).unwrap();
        gz.finish().unwrap()
    }

    const CHART: (&str, EntryType, &[u8]) = ("web/Chart.yaml", EntryType::Regular, b"name: web\n");

    #[test]
    fn files_without_their_folder() {
        let bytes = tgz(&[("web/", EntryType::Directory, b""), CHART]);
        let package = unpack(&bytes).unwrap();
        assert_eq!(package.files()[0].path, "Chart.yaml");
        assert_eq!(package.files()[0].bytes, b"name: web\n");
    }

    /// An archive of two gzip members; helm reads both.
    #[test]
    fn all_members_are_read() {
        let mut builder = Builder::new(Vec::new());
        entry(&mut builder, CHART.0, CHART.1, CHART.2);
        let first = builder.get_ref().len();
        entry(
            &mut builder,
            "web/templates/a.yaml",
            EntryType::Regular,
            b"a: 1\n",
        );
        let tar = builder.into_inner().unwrap();
        let (first, second) = tar.split_at(first);
        let bytes = [gzip(first), gzip(second)].concat();
        let package = unpack(&bytes).unwrap();
        assert!(package.get("templates/a.yaml").is_some());
        // A file with a damaged second member is not an archive.
        let cut = bytes.get(..bytes.len() - 1).unwrap();
        assert!(matches!(unpack(cut), Err(ArchiveError::Unreadable(_))));
    }

    /// Go uses the last of two names, and the name in the headers of a sparse file.
    #[test]
    fn a_second_name_is_refused() {
        for names in [
            &[("path", "web/README.x")][..],
            &[("path", "web/README.x"), ("path", "web/templates/x.yaml")],
            &[
                ("path", "web/README.x"),
                ("GNU.sparse.name", "web/templates/x.yaml"),
            ],
            &[("path", "")],
        ] {
            let mut builder = Builder::new(Vec::new());
            entry(&mut builder, CHART.0, CHART.1, CHART.2);
            let names_of = names.iter().map(|(key, value)| (*key, value.as_bytes()));
            builder.append_pax_extensions(names_of).unwrap();
            entry(&mut builder, "web/x", EntryType::Regular, b"a: 1\n");
            let unpacked = unpack(&gzip(&builder.into_inner().unwrap()));
            assert_eq!(unpacked.is_ok(), names.len() == 1 && !names[0].1.is_empty());
        }
    }

    #[test]
    fn manifests_need_no_folder() {
        let regular = EntryType::Regular;
        for (entries, expected) in [
            (&[("web/a.yaml", regular, &b""[..])][..], "a.yaml"),
            (&[("./a.yaml", regular, b"")], "a.yaml"),
            (
                &[("./web/a.yaml", regular, b""), ("./b.yaml", regular, b"")],
                "b.yaml",
            ),
        ] {
            let package = read_files(tgz(entries).as_slice()).unwrap();
            let last = package.files().last().unwrap();
            assert!(last.path == expected || package.get(expected).is_some());
        }
        assert!(read_files(tgz(&[("../a.yaml", regular, b"")]).as_slice()).is_err());
    }

    #[test]
    fn unsafe_archives_are_refused() {
        for (entries, words) in [
            (
                &[("../Chart.yaml", EntryType::Regular, &b""[..])][..],
                "is outside",
            ),
            (&[("/etc/passwd", EntryType::Regular, b"")], "is outside"),
            (&[("Chart.yaml", EntryType::Regular, b"")], "is outside"),
            (&[CHART, ("other/a", EntryType::Regular, b"")], "is outside"),
            (
                &[("web/../../a", EntryType::Regular, b"")],
                "leads out of the package",
            ),
            (
                &[CHART, ("web/a", EntryType::Symlink, b"")],
                "not a regular file",
            ),
            (
                &[CHART, ("web/a", EntryType::Link, b"")],
                "not a regular file",
            ),
            (
                &[CHART, ("web/a", EntryType::Char, b"")],
                "not a regular file",
            ),
            (&[CHART, CHART], "occurs twice"),
            (&[], "holds no file"),
        ] {
            let error = unpack(&tgz(entries)).unwrap_err();
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn truncated_archives_are_refused() {
        let bytes = tgz(&[CHART]);
        for cut in [0, 1, 10, bytes.len() / 2, bytes.len() - 1] {
            let error = unpack(bytes.get(..cut).unwrap()).unwrap_err();
            assert!(
                matches!(error, ArchiveError::Unreadable(_)),
                "{cut}: {error}"
            );
        }
        assert!(unpack(b"<html>").is_err());
    }

    #[test]
    fn bombs_end() {
        let zeros = vec![0; MAX_BYTES + 1];
        let bytes = tgz(&[("web/a", EntryType::Regular, &zeros)]);
        assert!(bytes.len() < 1 << 20);
        assert!(matches!(unpack(&bytes), Err(ArchiveError::TooLarge)));
        // After the end of the archive.
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        let mut builder = Builder::new(Vec::new());
        entry(&mut builder, CHART.0, CHART.1, CHART.2);
        gz.write_all(&builder.into_inner().unwrap()).unwrap();
        gz.write_all(&vec![0; MAX_BYTES + (32 << 20)]).unwrap();
        let error = unpack(&gz.finish().unwrap()).unwrap_err();
        assert!(matches!(error, ArchiveError::TooLarge), "{error}");
    }
}
