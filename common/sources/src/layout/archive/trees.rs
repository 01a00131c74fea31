//! The manifests of an archive that belong together: indexes and what they list.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::oci::layout::NamedManifest;
use common::oci::manifest::MAX_MANIFESTS;

use super::{LayoutArchiveError, MAX_ENTRIES};

/// The manifests that each manifest lists. An image can have a thousand names, and a thousand indexes can
/// list the same manifest.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// The listed digests by the digest of the manifest.
    listed: BTreeMap<String, Vec<String>>,
}

impl Trees {
    /// Reads each manifest once. `listed` returns the digests that a manifest lists.
    ///
    /// # Errors
    /// Errors of `listed`, or more manifests than an image can have or than can be pushed.
    pub(super) fn read(
        path: &Path,
        named: &[NamedManifest],
        mut listed: impl FnMut(&str) -> Result<Vec<String>, LayoutArchiveError>,
    ) -> Result<Self, LayoutArchiveError> {
        let mut trees = Self::default();
        let mut counts = BTreeMap::<&str, usize>::new();
        // An image is pushed under each of its names.
        let mut pushed = 0_usize;
        for one in named {
            let root = one.descriptor.digest.as_str();
            let count = match counts.get(root) {
                Some(count) => *count,
                None => {
                    let count = trees.add(path, root, &mut listed)?;
                    counts.insert(root, count);
                    count
                }
            };
            pushed += count;
            if pushed > MAX_ENTRIES {
                return Err(LayoutArchiveError::TooManyNamed {
                    path: path.to_owned(),
                    limit: MAX_ENTRIES,
                });
            }
        }
        Ok(trees)
    }

    /// Reads the manifests of a tree that were not read before. Returns the number of manifests in the tree,
    /// each counted as often as it is listed.
    fn add(
        &mut self,
        path: &Path,
        root: &str,
        read: &mut impl FnMut(&str) -> Result<Vec<String>, LayoutArchiveError>,
    ) -> Result<usize, LayoutArchiveError> {
        let (mut count, mut seen) = (1_usize, BTreeSet::new());
        let mut left = vec![root.to_owned()];
        while let Some(digest) = left.pop() {
            if !seen.insert(digest.clone()) {
                continue;
            }
            let listed = match self.listed.entry(digest) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => {
                    let listed = read(unknown.key())?;
                    unknown.insert(listed)
                }
            };
            count += listed.len();
            if count > MAX_MANIFESTS {
                return Err(LayoutArchiveError::TooMany {
                    path: path.to_owned(),
                    digest: root.to_owned(),
                });
            }
            left.extend(listed.iter().cloned());
        }
        Ok(count)
    }

    /// Returns the digests of a tree, each after those that it lists.
    pub(super) fn ordered<'a>(&'a self, root: &'a str) -> Vec<&'a str> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        let mut left = vec![(root, false)];
        while let Some((digest, is_complete)) = left.pop() {
            if is_complete {
                found.push(digest);
                continue;
            }
            if !seen.insert(digest) {
                continue;
            }
            left.push((digest, true));
            let listed = self.listed.get(digest).into_iter().flatten();
            left.extend(listed.map(|one| (one.as_str(), false)));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use common::image::Image;
    use common::oci::manifest::{Descriptor, INDEX};

    use super::*;

    fn digest(number: usize) -> String {
        format!("sha256:{number:064x}")
    }

    fn named(name: usize, root: usize) -> NamedManifest {
        NamedManifest {
            image: Image::parse(&format!("quay.io/a/b{name}:1")).unwrap(),
            descriptor: Descriptor {
                media_type: INDEX.to_owned(),
                digest: digest(root),
                size: 1,
            },
        }
    }

    /// Reads trees in which each root below `roots` lists `children` manifests, numbered from 1,000,000. Also
    /// returns how many manifests were read.
    fn read(
        named: &[NamedManifest],
        roots: usize,
        children: usize,
    ) -> (Result<Trees, LayoutArchiveError>, usize) {
        let listed: Vec<String> = (0..children).map(|it| digest(1_000_000 + it)).collect();
        let roots: BTreeSet<String> = (0..roots).map(digest).collect();
        let mut reads = 0;
        let trees = Trees::read(Path::new("site.tar"), named, |digest| {
            reads += 1;
            Ok(match roots.contains(digest) {
                true => listed.clone(),
                false => Vec::new(),
            })
        });
        (trees, reads)
    }

    #[test]
    fn a_manifest_is_read_once_however_many_names_lead_to_it() {
        let one: Vec<NamedManifest> = (0..200).map(|name| named(name, 0)).collect();
        let (trees, reads) = read(&one, 1, 2_000);
        assert_eq!(reads, 2_001);
        let root = digest(0);
        let trees = trees.unwrap();
        let tree = trees.ordered(&root);
        assert_eq!((tree.len(), tree.last()), (2_001, Some(&root.as_str())));
        // Different roots that list the same manifests.
        let many: Vec<NamedManifest> = (0..200).map(|name| named(name, name)).collect();
        let (trees, reads) = read(&many, 200, 2_000);
        assert!(trees.is_ok());
        assert_eq!(reads, 2_200);
    }

    #[test]
    fn more_than_can_be_pushed_is_refused_before_all_of_it_is_walked() {
        let (wide, reads) = read(&[named(0, 0)], 1, MAX_MANIFESTS);
        assert!(
            matches!(wide, Err(LayoutArchiveError::TooMany { .. })),
            "{wide:?}"
        );
        assert_eq!(reads, 1);
        for distinct in [false, true] {
            let many = (0..2_000).map(|name| named(name, if distinct { name } else { 0 }));
            let many: Vec<NamedManifest> = many.collect();
            let (trees, reads) = read(&many, 2_000, 999);
            assert!(
                matches!(trees, Err(LayoutArchiveError::TooManyNamed { .. })),
                "{trees:?}"
            );
            assert!(reads <= 999 + 501, "{reads}");
        }
    }
}
