//! The manifests of an archive that belong together: an index and what it lists.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::oci::layout::Named;
use common::oci::manifest::MAX_MANIFESTS;

use super::{LayoutError, MAX_ENTRIES};

/// What each manifest lists. One image may have a thousand names, and one manifest may be listed by a thousand indexes.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// Digests by digest.
    listed: BTreeMap<String, Vec<String>>,
}

impl Trees {
    /// Reads each manifest once, whatever leads to it. `listed` reads the one of a digest.
    ///
    /// # Errors
    /// Those of `listed`; more manifests than an image can have, or than can be pushed.
    pub(super) fn read(
        path: &Path,
        named: &[Named],
        mut listed: impl FnMut(&str) -> Result<Vec<String>, LayoutError>,
    ) -> Result<Self, LayoutError> {
        let mut trees = Self::default();
        let mut counts = BTreeMap::<&str, usize>::new();
        // Under each of its names, an image is pushed.
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
                return Err(LayoutError::TooManyNamed {
                    path: path.to_owned(),
                    limit: MAX_ENTRIES,
                });
            }
        }
        Ok(trees)
    }

    /// Reads what is not known of a tree; the root and everything that is listed below it, counted as often as it is listed.
    fn add(
        &mut self,
        path: &Path,
        root: &str,
        read: &mut impl FnMut(&str) -> Result<Vec<String>, LayoutError>,
    ) -> Result<usize, LayoutError> {
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
                return Err(LayoutError::TooMany {
                    path: path.to_owned(),
                    digest: root.to_owned(),
                });
            }
            left.extend(listed.iter().cloned());
        }
        Ok(count)
    }

    /// The digests of a tree, each after those that it lists.
    pub(super) fn of<'a>(&'a self, root: &'a str) -> Vec<&'a str> {
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

    fn named(name: usize, root: usize) -> Named {
        Named {
            image: Image::parse(&format!("quay.io/a/b{name}:1")).unwrap(),
            descriptor: Descriptor {
                media_type: INDEX.to_owned(),
                digest: digest(root),
                size: 1,
            },
        }
    }

    /// Reads these names where each root below `roots` lists the manifests from 1,000,000 on; and how many manifests were read.
    fn read(named: &[Named], roots: usize, children: usize) -> (Result<Trees, LayoutError>, usize) {
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
        let one: Vec<Named> = (0..200).map(|name| named(name, 0)).collect();
        let (trees, reads) = read(&one, 1, 2_000);
        assert_eq!(reads, 2_001);
        let root = digest(0);
        let trees = trees.unwrap();
        let tree = trees.of(&root);
        assert_eq!((tree.len(), tree.last()), (2_001, Some(&root.as_str())));
        // Different roots that share what they list.
        let many: Vec<Named> = (0..200).map(|name| named(name, name)).collect();
        let (trees, reads) = read(&many, 200, 2_000);
        assert!(trees.is_ok());
        assert_eq!(reads, 2_200);
    }

    #[test]
    fn more_than_can_be_pushed_is_refused_before_all_of_it_is_walked() {
        let (wide, reads) = read(&[named(0, 0)], 1, MAX_MANIFESTS);
        assert!(matches!(wide, Err(LayoutError::TooMany { .. })), "{wide:?}");
        assert_eq!(reads, 1);
        for distinct in [false, true] {
            let many = (0..2_000).map(|name| named(name, if distinct { name } else { 0 }));
            let many: Vec<Named> = many.collect();
            let (trees, reads) = read(&many, 2_000, 999);
            assert!(
                matches!(trees, Err(LayoutError::TooManyNamed { .. })),
                "{trees:?}"
            );
            assert!(reads <= 999 + 501, "{reads}");
        }
    }
}
