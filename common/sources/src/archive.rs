//! Archives of charts, manifests and templates, read in memory. Helm reads a chart by itself when it renders.

use std::collections::BTreeSet;
use std::io::{self, Read};

use addons_render::chart;
use addons_render::package::{File, MAX_BYTES, MAX_FILES, Package, PackageError};
use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

/// Headers and padding beside the bytes of the files.
const OVERHEAD: u64 = (MAX_FILES as u64) * 2048;

/// Why a chart archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Not gzip, not tar, or cut off.
    #[error("it is not a .tgz archive, or it is cut off")]
    Unreadable(#[source] io::Error),
    /// A decompression bomb.
    #[error("it is larger than {} MiB unpacked", MAX_BYTES >> 20)]
    TooLarge,
    /// A link, a device.
    #[error("{path} is not a regular file; a chart may hold only files")]
    Kind {
        /// Its path.
        path: String,
    },
    /// A path outside of its one folder.
    #[error("{path} is outside the chart's folder")]
    Outside {
        /// Its path.
        path: String,
    },
    /// Files that cannot be a package.
    #[error(transparent)]
    Package(#[from] PackageError),
}

/// The files of a chart archive, without the folder that all of them are in.
///
/// # Errors
/// [`ArchiveError`].
pub fn unpack(bytes: &[u8]) -> Result<Package, ArchiveError> {
    let mut root: Option<String> = None;
    let files = read(bytes, |path| inside(&path, &mut root).map(str::to_owned))?;
    Ok(Package::folder(files)?)
}

/// The files of an archive of manifests or templates: without the folder that all of them are in, where there is one.
///
/// # Errors
/// [`ArchiveError`].
pub fn unpack_files(bytes: &[u8]) -> Result<Package, ArchiveError> {
    read_files(bytes)
}

/// As [`unpack_files`], of an archive that is not in memory.
///
/// # Errors
/// [`ArchiveError`].
pub fn read_files(bytes: impl Read) -> Result<Package, ArchiveError> {
    let mut files = read(bytes, |path| {
        Ok(path.strip_prefix("./").unwrap_or(&path).to_owned())
    })?;
    let mut root: Option<String> = None;
    let inner: Result<Vec<String>, _> = files
        .iter()
        .map(|file| inside(&file.path, &mut root).map(str::to_owned))
        .collect();
    if let Ok(inner) = inner {
        for (file, inner) in files.iter_mut().zip(inner) {
            file.path = inner;
        }
    }
    Ok(Package::folder(files)?)
}

/// The files of a package of manifests or templates, which may be an archive by its name.
///
/// # Errors
/// [`ArchiveError`].
pub fn files(package: Package) -> Result<Package, ArchiveError> {
    match package.as_file() {
        Some(file) if is_archive(&file.path) => unpack_files(&file.bytes),
        _ => Ok(package),
    }
}

/// The names of the charts that lie in `charts/` of a chart as archives. Helm reads them from the archives, too: a file may have any
/// name.
#[must_use]
pub fn archived_charts(package: &Package) -> BTreeSet<String> {
    let archives = package.files().iter().filter(|file| {
        let name = file.path.strip_prefix("charts/");
        name.is_some_and(|name| name.ends_with(".tgz") && !name.contains('/'))
    });
    archives
        .filter_map(|file| chart::name(&unpack(&file.bytes).ok()?))
        .collect()
}

/// Whether a path is that of an archive, by its ending.
#[must_use]
pub fn is_archive(path: &str) -> bool {
    path.ends_with(".tgz") || path.ends_with(".tar.gz")
}

/// The regular files of an archive, each with what becomes of its path.
fn read(
    bytes: impl Read,
    mut placed: impl FnMut(String) -> Result<String, ArchiveError>,
) -> Result<Vec<File>, ArchiveError> {
    let limit = MAX_BYTES as u64 + OVERHEAD;
    // All members, as helm reads them: a manifest that only helm sees would be applied without having been judged.
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
        files.push(File { path: inner, bytes });
    }
    // Read to the end, where the checksum is, to notice an archive that was cut off behind its last file.
    let mut rest = archive.into_inner();
    io::copy(&mut rest, &mut io::sink()).map_err(ArchiveError::Unreadable)?;
    if rest.limit() == 0 {
        return Err(ArchiveError::TooLarge);
    }
    Ok(files)
}

/// Whether its headers give it another name or another content in other readers: helm is not to see files that were not judged.
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

/// The path below the one folder of the archive.
fn inside<'a>(path: &'a str, root: &mut Option<String>) -> Result<&'a str, ArchiveError> {
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
        // `set_path` refuses the names that are tried here.
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

    /// One archive in two members; helm reads both.
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
        // And what is damaged behind the first one is no archive.
        let cut = bytes.get(..bytes.len() - 1).unwrap();
        assert!(matches!(unpack(cut), Err(ArchiveError::Unreadable(_))));
    }

    /// Go takes the last of two names, and that of a sparse file.
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
            let package = unpack_files(&tgz(entries)).unwrap();
            let last = package.files().last().unwrap();
            assert!(last.path == expected || package.get(expected).is_some());
        }
        assert!(unpack_files(&tgz(&[("../a.yaml", regular, b"")])).is_err());
    }

    #[test]
    fn what_is_refused() {
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
    fn what_is_cut_off_is_no_archive() {
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
        // Behind the end of the archive.
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        let mut builder = Builder::new(Vec::new());
        entry(&mut builder, CHART.0, CHART.1, CHART.2);
        gz.write_all(&builder.into_inner().unwrap()).unwrap();
        gz.write_all(&vec![0; MAX_BYTES + (32 << 20)]).unwrap();
        let error = unpack(&gz.finish().unwrap()).unwrap_err();
        assert!(matches!(error, ArchiveError::TooLarge), "{error}");
    }
}
