//! The set that the command line names: a file, and the flags about its members.

use std::path::Path;

use addons_operation::{DeclaredSet, set};
use addons_plan::prune::limit::PruneLimit;
use anyhow::{Context as _, Result, bail};
use common::api::installation::{AddonInstallation, AddonRef};

use crate::cli::operation::SourceArgs;
use crate::cli::set::{MemberArgs, SetArgs};
use crate::cli::values::ValueEditArgs;
use crate::exit::UsageError;
use crate::input;
use crate::session::Session;
use crate::set_place::SetPlace;

/// The most bytes of a set.
const LARGEST: usize = 8 * 1024 * 1024;

/// A set that was read from a file.
#[derive(Debug)]
pub struct TypedSet {
    installations: Vec<AddonInstallation>,
    members: MemberArgs,
    path: String,
}

impl TypedSet {
    /// Reads a set.
    ///
    /// # Errors
    /// The file cannot be read, or is not a set.
    pub fn read(session: &Session, path: &Path, members: &MemberArgs) -> Result<Self> {
        let name = path.display().to_string();
        let bytes = input::read_bounded(path, LARGEST).with_context(|| format!("set {name}"))?;
        if bytes.len() > LARGEST {
            bail!("set {name}: more than {LARGEST} bytes; split it");
        }
        let namespace = session.ctx().settings().records_namespace();
        let mut installations = set::read_set(&bytes, &name, namespace)?;
        for installation in &mut installations {
            resolve_beside(path, &mut installation.spec.addon_ref);
        }
        Ok(Self {
            installations,
            members: members.clone(),
            path: name,
        })
    }

    /// Returns where the set was read.
    pub fn place(&self) -> SetPlace {
        SetPlace {
            path: self.path.clone(),
            members: self.members.clone(),
        }
    }

    /// Converts the set for the planner. `allowed` limits how many of its members `--prune` may uninstall.
    pub fn into_declared(self, allowed: PruneLimit) -> DeclaredSet {
        DeclaredSet {
            installations: self.installations,
            name: self.members.set_name,
            prune: self.members.prune.then_some(allowed),
        }
    }
}

/// Resolves a relative path in a set beside its file, independent of the working directory. For a set from stdin, it is relative to the
/// working directory.
fn resolve_beside(set: &Path, reference: &mut AddonRef) {
    let index = reference.index.as_mut();
    if let (Some(index), Some(folder)) = (index.filter(|it| !it.contains("://")), set.parent()) {
        *index = folder.join(&*index).display().to_string();
    }
}

/// Reads the set of a command that also takes names, values and sources. There `-f` reads values, but a file with AddonInstallations is
/// always a set.
///
/// The file cannot be read or is not a set, a flag requires a set, or a flag cannot be combined with one.
pub fn read_typed(
    session: &Session,
    typed: &SetArgs,
    (values, source): (&ValueEditArgs, &SourceArgs),
    addons: &[String],
) -> Result<Option<TypedSet>> {
    let path = match (&typed.filename, values.files.as_slice()) {
        (Some(path), _) => path,
        (None, [path]) if addons.is_empty() && is_set(path) => path,
        (None, _) if typed.members.set_name.is_some() => {
            return Err(UsageError(
                "--set-name can only be used with a set: add -f SET".to_owned(),
            )
            .into());
        }
        (None, _) => return Ok(None),
    };
    let texts = [
        &values.set,
        &values.set_string,
        &values.set_json,
        &values.set_file,
    ];
    let more = texts.iter().any(|texts| !texts.is_empty())
        || !values.values_from.is_empty()
        || values.registry.is_some()
        || values.skip_crds.is_some()
        || !values.patch.is_empty();
    if more || source.channel.is_some() || source.catalogue.is_some() {
        let usage = "a set says where its add-ons come from and which values they have: write these into the file";
        return Err(UsageError(usage.to_owned()).into());
    }
    Ok(Some(TypedSet::read(session, path, &typed.members)?))
}

/// Whether a file begins with an installation. A file that cannot be read is reported when it is read later.
fn is_set(path: &Path) -> bool {
    input::read_bounded(path, LARGEST).is_ok_and(|bytes| set::is_set(&bytes))
}
