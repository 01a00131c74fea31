//! Merges the layers of an image and extracts the package at a path.

use std::collections::BTreeMap;

use addons_render::package::{
    MAX_BYTES, MAX_FILES, Package, PackageError, PackagedFile, check_length, normal_path,
};

use super::layer::{ImageLayer, ImageNode, join_path};
use crate::names::{is_within, list_names};

/// The maximum number of names that an error lists.
const MAX_NAMES: usize = 10;
/// The maximum number of links on the way to one file.
const MAX_LINKS: usize = 16;
/// The maximum number of entries to visit for one package, because links to folders can multiply them.
const MAX_STEPS: usize = 20 * MAX_FILES;
/// The number of bytes of a followed path that count as one more step, because every folder in it is looked
/// up.
const STEP: usize = 32;

/// The entries of all applied layers by path. Paths have no leading or trailing `/`, and the root is not an
/// entry.
#[derive(Debug, Default)]
pub struct ImageTree {
    nodes: BTreeMap<String, ImageNode>,
}

/// Why an image has no package at a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The path does not exist.
    #[error("there is no /{path} in the image; /{folder} holds {names}")]
    Missing {
        /// The requested path.
        path: String,
        /// The nearest existing folder.
        folder: String,
        /// The names in that folder.
        names: String,
    },
    /// The path is a link or leads through one.
    #[error("/{link} is a link to {target}; give the path that it leads to")]
    IsLink {
        /// The link.
        link: String,
        /// The target as written.
        target: String,
    },
    /// A link leads out of the requested path.
    #[error(
        "/{link} is a link to {target}, which leads out of the wanted path; name a folder that holds both"
    )]
    Outside {
        /// The link.
        link: String,
        /// The target as written.
        target: String,
    },
    /// The target of a link does not exist.
    #[error("/{link} is a link to {target}, which is not in the image")]
    Dangling {
        /// The link.
        link: String,
        /// The target as written.
        target: String,
    },
    /// A link leads back to itself or to a folder that contains it.
    #[error("/{link} is a link that leads back to itself")]
    Loop {
        /// The link.
        link: String,
    },
    /// There are too many or too long links.
    #[error("the links below /{path} take too many steps to follow; name a smaller folder in path")]
    Steps {
        /// The requested path.
        path: String,
    },
    /// An entry is below something that is not a folder.
    #[error("/{path} is below /{parent}, which is not a folder in the image")]
    Parent {
        /// The entry.
        path: String,
        /// The path that is not a folder.
        parent: String,
    },
    /// The files cannot be a package.
    #[error("/{path}: {error}")]
    Package {
        /// The requested path.
        path: String,
        /// Why.
        error: PackageError,
    },
}

/// The files that were collected for a package.
struct CollectedFiles {
    files: Vec<PackagedFile>,
    bytes: usize,
    steps: usize,
}

impl ImageTree {
    /// Applies a layer. What it hides is removed first, because whiteouts never refer to entries of the same
    /// layer.
    ///
    /// # Errors
    /// [`TreeError::Parent`], or a hard link leads out of the requested path or nowhere.
    pub fn apply(&mut self, layer: ImageLayer, wanted: &str) -> Result<(), TreeError> {
        for hidden in &layer.hidden {
            self.nodes.remove(hidden);
            self.remove_below(hidden);
        }
        for folder in &layer.opaque {
            self.remove_below(folder);
        }
        for (path, node) in layer.entries {
            let node = match node {
                ImageNode::HardLink(target) => self.hard_link(&path, &target, wanted)?,
                node => node,
            };
            self.insert(path, node)?;
        }
        Ok(())
    }

    /// Extracts the file or folder at a path.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn package(&self, wanted: &str) -> Result<Package, TreeError> {
        for (end, _) in wanted.match_indices('/').chain([(wanted.len(), "")]) {
            let way = wanted.get(..end).unwrap_or(wanted);
            if let Some(ImageNode::Link(target)) = self.nodes.get(way) {
                return Err(TreeError::IsLink {
                    link: way.to_owned(),
                    target: target.clone(),
                });
            }
        }
        let wrong = |error| TreeError::Package {
            path: wanted.to_owned(),
            error,
        };
        if let Some(ImageNode::File(bytes)) = self.nodes.get(wanted) {
            let name = wanted.rsplit('/').next().unwrap_or(wanted);
            return Ok(Package::from_file(name, bytes.to_vec()));
        }
        let is_there = wanted.is_empty() || self.nodes.contains_key(wanted);
        if !is_there && self.below(wanted).next().is_none() {
            return Err(self.missing(wanted));
        }
        let mut collected = CollectedFiles {
            files: Vec::new(),
            bytes: 0,
            steps: 0,
        };
        self.collect(wanted, wanted, "", 0, &mut collected)?;
        Package::from_folder(collected.files).map_err(wrong)
    }

    fn insert(&mut self, path: String, node: ImageNode) -> Result<(), TreeError> {
        for (end, _) in path.match_indices('/') {
            let parent = path.get(..end).unwrap_or_default();
            match self.nodes.get(parent) {
                None | Some(ImageNode::Folder) => {}
                Some(_) => {
                    let parent = parent.to_owned();
                    return Err(TreeError::Parent { path, parent });
                }
            }
        }
        if node != ImageNode::Folder {
            self.remove_below(&path);
        }
        self.nodes.insert(path, node);
        Ok(())
    }

    /// Returns the entry to which a hard link points. The target is a path of the image.
    fn hard_link(&self, link: &str, target: &str, wanted: &str) -> Result<ImageNode, TreeError> {
        let found = normal_path(target).and_then(|target| {
            let node = self.nodes.get(&target).cloned();
            is_within(&target, wanted).then_some(node)
        });
        let (link, target) = (link.to_owned(), target.to_owned());
        match found {
            Some(Some(node)) if node != ImageNode::Folder => Ok(node),
            Some(_) => Err(TreeError::Dangling { link, target }),
            None => Err(TreeError::Outside { link, target }),
        }
    }

    /// Iterates over the entries below a folder, with their relative and full paths.
    fn below(&self, folder: &str) -> impl Iterator<Item = (&str, &String, &ImageNode)> {
        let prefix = join_path(folder, "");
        self.nodes
            .range(prefix.clone()..)
            .map_while(move |(path, node)| Some((path.strip_prefix(&prefix)?, path, node)))
    }

    fn remove_below(&mut self, folder: &str) {
        let below: Vec<String> = self
            .below(folder)
            .map(|(_, path, _)| path.clone())
            .collect();
        for path in below {
            self.nodes.remove(&path);
        }
    }

    /// Collects the files below `folder` as files below `shown` in the package and follows links.
    fn collect(
        &self,
        wanted: &str,
        folder: &str,
        shown: &str,
        links: usize,
        collected: &mut CollectedFiles,
    ) -> Result<(), TreeError> {
        for (relative, path, node) in self.below(folder) {
            collected.steps += 1;
            let name = join_path(shown, relative);
            match node {
                ImageNode::File(bytes) => collected.push(wanted, name, bytes)?,
                ImageNode::Link(target) => {
                    let looped = || TreeError::Loop { link: path.clone() };
                    if links >= MAX_LINKS {
                        return Err(looped());
                    }
                    if collected.steps > MAX_STEPS {
                        let path = wanted.to_owned();
                        return Err(TreeError::Steps { path });
                    }
                    let found = self.follow(path, target, wanted, &mut collected.steps)?;
                    match self.nodes.get(&found) {
                        Some(ImageNode::File(bytes)) => collected.push(wanted, name, bytes)?,
                        _ if is_within(path, &found) => return Err(looped()),
                        _ => self.collect(wanted, &found, &name, links + 1, collected)?,
                    }
                }
                ImageNode::Folder | ImageNode::HardLink(_) | ImageNode::Other => {}
            }
        }
        Ok(())
    }

    /// Returns the final target of a link, an entry at or below `wanted` that is not a link.
    fn follow(
        &self,
        link: &str,
        target: &str,
        wanted: &str,
        steps: &mut usize,
    ) -> Result<String, TreeError> {
        let (mut at, mut next) = (link.to_owned(), target.to_owned());
        for _ in 0..MAX_LINKS {
            let folder = at.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = if next.starts_with('/') {
                normal_path(&next)
            } else {
                normal_path(&join_path(folder, &next))
            };
            let outside = || TreeError::Outside {
                link: link.to_owned(),
                target: target.to_owned(),
            };
            let path = path.ok_or_else(outside)?;
            *steps += path.len() / STEP;
            if !is_within(&path, wanted) {
                return Err(outside());
            }
            // Find the first link on the path, and replace it by its target.
            let ends = path.match_indices('/').map(|(end, _)| end);
            let on_the_way = ends.chain([path.len()]).find_map(|end| {
                let (way, rest) = path.split_at_checked(end)?;
                match self.nodes.get(way) {
                    Some(ImageNode::Link(target)) => {
                        Some((way.to_owned(), format!("{target}{rest}")))
                    }
                    _ => None,
                }
            });
            match on_the_way {
                Some(link) => (at, next) = link,
                None => {
                    let is_there = self.nodes.contains_key(&path)
                        || path.is_empty()
                        || self.below(&path).next().is_some();
                    let (link, target) = (link.to_owned(), target.to_owned());
                    return is_there
                        .then_some(path)
                        .ok_or(TreeError::Dangling { link, target });
                }
            }
        }
        let link = link.to_owned();
        Err(TreeError::Loop { link })
    }

    fn missing(&self, wanted: &str) -> TreeError {
        let mut folder = wanted;
        while !folder.is_empty() && self.below(folder).next().is_none() {
            folder = folder.rsplit_once('/').map_or("", |(parent, _)| parent);
        }
        let names = self.below(folder);
        let mut names: Vec<&str> = names
            .filter_map(|(relative, ..)| relative.split('/').next())
            .collect();
        names.dedup();
        TreeError::Missing {
            path: wanted.to_owned(),
            folder: folder.to_owned(),
            names: list_names(names.iter(), MAX_NAMES, "nothing"),
        }
    }
}

impl CollectedFiles {
    fn push(&mut self, wanted: &str, path: String, bytes: &[u8]) -> Result<(), TreeError> {
        let wrong = |error| TreeError::Package {
            path: wanted.to_owned(),
            error,
        };
        // Check before copying, because many links can lead to one large file or to one with a long name.
        check_length(&path).map_err(wrong)?;
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_BYTES {
            return Err(wrong(PackageError::TooLarge));
        }
        if self.files.len() >= MAX_FILES {
            return Err(wrong(PackageError::TooMany));
        }
        let bytes = bytes.to_vec();
        self.files.push(PackagedFile { path, bytes });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
