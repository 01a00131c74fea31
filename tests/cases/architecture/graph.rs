//! The files of one crate and the imports between them, read from its sources. Test code is left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// The path of a module inside its crate; empty for the crate itself.
pub(super) type ModulePath = Vec<String>;

/// The modules of a crate that are files of their own, and what each imports from the others.
pub(super) struct FileGraph {
    /// The types that each file defines.
    pub(super) types: BTreeMap<ModulePath, Vec<String>>,
    imports: BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    files: BTreeMap<ModulePath, SourceFile>,
}

/// One source file.
#[derive(Default)]
struct SourceFile {
    types: Vec<String>,
    /// Names that a `use` brings into the module, with the full path of each.
    names: BTreeMap<String, ModulePath>,
    /// Modules of which a `pub use` passes on everything.
    globs: Vec<ModulePath>,
    /// Names of the items that the file defines.
    items: BTreeSet<String>,
    /// Paths that the code mentions, from the root of the crate.
    mentioned: BTreeSet<ModulePath>,
    /// Paths of other crates that the code mentions. They begin with the name of the crate.
    outside: BTreeSet<ModulePath>,
}

impl FileGraph {
    /// Reads the crate in `folder`, beginning with its `src/lib.rs`.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        read_module(&folder.join("src/lib.rs"), Vec::new(), &mut files)?;
        let mut imports: BTreeMap<ModulePath, BTreeSet<ModulePath>> = BTreeMap::new();
        for (module, file) in &files {
            let found = file.mentioned.iter();
            let found = found.filter_map(|path| definition(&files, path, 0));
            let others = found.filter(|other| other != module).collect();
            imports.insert(module.clone(), others);
        }
        let types = files.iter();
        let types = types.map(|(module, file)| (module.clone(), file.types.clone()));
        Ok(Self {
            types: types.collect(),
            imports,
            files,
        })
    }

    /// The files, and what each imports from the others of its crate.
    pub(super) fn imports(&self) -> impl Iterator<Item = (&ModulePath, &BTreeSet<ModulePath>)> {
        self.imports.iter()
    }

    /// The files, and the paths of other crates that each mentions.
    pub(super) fn mentions_outside(
        &self,
    ) -> impl Iterator<Item = (&ModulePath, &BTreeSet<ModulePath>)> {
        let files = self.files.iter();
        files.map(|(module, file)| (module, &file.outside))
    }

    /// The file that defines what a path from the root of the crate names.
    pub(super) fn definition(&self, path: &[String]) -> Option<ModulePath> {
        definition(&self.files, path, 0)
    }

    /// The sets of files that import each other in a circle, largest first.
    pub(super) fn knots(&self) -> Vec<Vec<String>> {
        let reached: BTreeMap<_, _> = self
            .imports
            .keys()
            .map(|module| (module, self.reachable(module)))
            .collect();
        let mut knots: BTreeSet<Vec<String>> = BTreeSet::new();
        for (module, others) in &reached {
            let knot: Vec<String> = others
                .iter()
                .filter(|other| {
                    reached
                        .get(*other)
                        .is_some_and(|back| back.contains(*module))
                })
                .map(|module| module.join("::"))
                .collect();
            if knot.len() > 1 {
                knots.insert(knot);
            }
        }
        let mut knots: Vec<_> = knots.into_iter().collect();
        knots.sort_by_key(|knot| std::cmp::Reverse(knot.len()));
        knots
    }

    /// The files that `module` imports, directly or through others.
    fn reachable(&self, module: &ModulePath) -> BTreeSet<ModulePath> {
        let mut found = BTreeSet::new();
        let mut open = vec![module];
        while let Some(module) = open.pop() {
            for other in self.imports.get(module).into_iter().flatten() {
                if found.insert(other.clone()) {
                    open.push(other);
                }
            }
        }
        found
    }
}

/// Every crate of the workspace that has a library, by its folder.
pub(super) fn crates() -> Result<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let common = root.join("common");
    let mut folders = vec![
        common.clone(),
        root.join("certs"),
        root.join("kubectl-addons"),
        root.join("webhook"),
    ];
    for entry in std::fs::read_dir(&common)? {
        folders.push(entry?.path());
    }
    folders.retain(|folder| folder.join("src/lib.rs").is_file());
    folders.sort();
    Ok(folders)
}

fn read_module(
    file: &Path,
    module: ModulePath,
    files: &mut BTreeMap<ModulePath, SourceFile>,
) -> Result<()> {
    let place = || file.display().to_string();
    let source = std::fs::read_to_string(file).with_context(place)?;
    let syntax = syn::parse_file(&source).with_context(place)?;
    let folder = match file.file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if stem != "lib" => file.with_file_name(stem),
        _ => file.with_file_name(""),
    };
    let mut reader = Reader {
        module: &module,
        children: Vec::new(),
        file: SourceFile::default(),
    };
    reader.visit_file(&syntax);
    let Reader {
        children,
        file: content,
        ..
    } = reader;
    files.insert(module.clone(), content);
    for child in children {
        let path = folder.join(format!("{child}.rs"));
        read_module(&path, [module.clone(), vec![child]].concat(), files)?;
    }
    Ok(())
}

/// The file that defines what `path` names, through names that other files pass on.
fn definition(
    files: &BTreeMap<ModulePath, SourceFile>,
    path: &[String],
    depth: usize,
) -> Option<ModulePath> {
    // No chain of re-exports is that long: the names of a circle lead nowhere.
    if depth > 10 {
        return None;
    }
    let length = (0..=path.len())
        .rev()
        .find(|length| files.contains_key(&path[..*length]))?;
    let (module, rest) = path.split_at(length);
    let file = &files[module];
    if let Some((name, rest)) = rest.split_first() {
        let passed_on = file.names.get(name).map(|target| [target, rest].concat());
        if let Some(target) = passed_on.filter(|target| target != path)
            && let Some(found) = definition(files, &target, depth + 1)
        {
            return Some(found);
        }
        let defines = |module: &&ModulePath| {
            files
                .get(*module)
                .is_some_and(|file| file.items.contains(name))
        };
        if !file.items.contains(name)
            && let Some(found) = file.globs.iter().find(defines)
        {
            return Some(found.clone());
        }
    }
    Some(module.to_vec())
}

/// Collects what one file defines and mentions.
struct Reader<'a> {
    module: &'a ModulePath,
    children: Vec<String>,
    file: SourceFile,
}

impl Reader<'_> {
    /// The path from the root of the crate; `None` if it leads out of the crate.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([self.module.as_slice(), rest].concat()),
            "super" => {
                let levels = path.iter().take_while(|name| *name == "super").count();
                let length = self.module.len().checked_sub(levels)?;
                Some([&self.module[..length], &path[levels..]].concat())
            }
            child if self.children.iter().any(|known| known == child) => {
                Some([self.module.as_slice(), path].concat())
            }
            _ => None,
        }
    }

    fn read_use(&mut self, prefix: &[String], tree: &UseTree, is_public: bool) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.read_use(&with(&path.ident), &path.tree, is_public),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.read_use(prefix, tree, is_public);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                let name = prefix.last().cloned().unwrap_or_default();
                self.bring(&name, prefix);
            }
            UseTree::Name(name) => self.bring(&name.ident.to_string(), &with(&name.ident)),
            UseTree::Rename(rename) if rename.ident == "self" => {
                self.bring(&rename.rename.to_string(), prefix);
            }
            UseTree::Rename(rename) => {
                self.bring(&rename.rename.to_string(), &with(&rename.ident));
            }
            UseTree::Glob(_) => {
                if let Some(path) = self.absolute(prefix) {
                    if is_public {
                        self.file.globs.push(path.clone());
                    }
                    self.file.mentioned.insert(path);
                } else {
                    self.leave(prefix);
                }
            }
        }
    }

    fn bring(&mut self, name: &str, path: &[String]) {
        if let Some(path) = self.absolute(path) {
            self.file.names.insert(name.to_owned(), path.clone());
            self.file.mentioned.insert(path);
        } else {
            self.leave(path);
        }
    }

    /// Notes a path that leads out of the crate.
    fn leave(&mut self, path: &[String]) {
        self.file.outside.insert(path.to_vec());
    }

    fn define(&mut self, name: &syn::Ident, is_type: bool) {
        self.file.items.insert(name.to_string());
        if is_type {
            self.file.types.push(name.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_file(&mut self, file: &'ast syn::File) {
        // Paths that begin with the name of a child are known only once all children are.
        for item in &file.items {
            if let Item::Mod(item) = item
                && item.content.is_none()
                && !is_for_tests(&item.attrs)
            {
                self.children.push(item.ident.to_string());
            }
        }
        visit::visit_file(self, file);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Const(item) => &item.attrs,
            Item::Enum(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Static(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Trait(item) => &item.attrs,
            Item::Type(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => &[],
        };
        if is_for_tests(attributes) {
            return;
        }
        match item {
            Item::Const(item) => self.define(&item.ident, false),
            Item::Enum(item) => self.define(&item.ident, true),
            Item::Fn(item) => self.define(&item.sig.ident, false),
            Item::Static(item) => self.define(&item.ident, false),
            Item::Struct(item) => self.define(&item.ident, true),
            Item::Trait(item) => self.define(&item.ident, true),
            Item::Type(item) => self.define(&item.ident, true),
            Item::Use(item) => {
                let is_public = !matches!(item.vis, syn::Visibility::Inherited);
                self.read_use(&[], &item.tree, is_public);
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        match self.absolute(&names) {
            Some(path) if names.len() > 1 => {
                self.file.mentioned.insert(path);
            }
            None if names.len() > 1 => self.leave(&names),
            _ => {}
        }
        visit::visit_path(self, path);
    }
}

/// Whether an item exists only in tests.
pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let tokens = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        };
        attribute.path().is_ident("cfg")
            && (tokens == "test" || tokens.contains("test-util") || tokens.starts_with("any (test"))
    })
}
