//! Compares the files of a directory on several machines.

use super::DirectoryFile;
use crate::api::names::hex_prefix;
use crate::manifest::digest::sha256;

/// Returns a digest of all files, which are sorted by path. Returns `None` if a file cannot be read, is empty, or is still being
/// written.
#[must_use]
pub fn digest(files: &[DirectoryFile]) -> Option<String> {
    let mut text = String::new();
    for file in files {
        let bytes = file.content.as_deref().ok()?;
        if file.is_changing || bytes.trim_ascii().is_empty() {
            return None;
        }
        text.push_str(&format!("{}  {}\n", sha256(bytes), file.path));
    }
    Some(hex_prefix(text.as_bytes(), 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: Result<&str, &str>) -> DirectoryFile {
        DirectoryFile {
            path: path.to_owned(),
            content: content
                .map(|text| text.as_bytes().to_vec())
                .map_err(str::to_owned),
            is_changing: false,
        }
    }

    #[test]
    fn a_digest_is_of_names_and_contents_and_of_nothing_half_done() {
        let base = digest(&[file("a.yaml", Ok("a")), file("b.yaml", Ok("b"))]);
        assert_eq!(base.as_deref().map(str::len), Some(16));
        assert!(digest(&[]).is_some_and(|empty| Some(empty) != base));
        for (files, is_whole) in [
            (vec![file("a.yaml", Ok("a"))], true),
            (vec![file("a.yaml", Ok("a")), file("c.yaml", Ok("b"))], true),
            (vec![file("a.yaml", Ok("b")), file("b.yaml", Ok("a"))], true),
            (
                vec![file("a.yaml", Ok("a")), file("b.yaml", Ok(" \n"))],
                false,
            ),
            (
                vec![file("a.yaml", Ok("a")), file("b.yaml", Err("no"))],
                false,
            ),
        ] {
            let other = digest(&files);
            assert_eq!(other.is_some(), is_whole, "{files:?}");
            assert_ne!(other, base, "{files:?}");
        }
        let changing = DirectoryFile {
            is_changing: true,
            ..file("a.yaml", Ok("a"))
        };
        assert_eq!(digest(&[changing]), None);
    }
}
