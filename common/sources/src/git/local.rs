//! A repository on this machine, read in place.

use std::path::Path;

use gix::ObjectId;

use super::Problem;
use super::wanted::Wanted;

/// Its objects, and the commit that is wanted.
///
/// # Errors
/// No repository, no such ref.
pub fn open(path: &Path, wanted: &Wanted) -> Result<(gix::odb::Handle, ObjectId), Problem> {
    let wrong = |source| Problem::Open { source };
    let repository = gix::open_opts(path, gix::open::Options::isolated()).map_err(wrong)?;
    let objects = super::objects(repository.objects.store_ref().path())
        .map_err(|source| wrong(gix::Error::from_error(source)))?;
    if let Wanted::Commit(id) = wanted {
        return Ok((objects, *id));
    }
    let found = repository
        .try_find_reference(&wanted.full_name())
        .map_err(wrong)?;
    let commit = found.and_then(|mut found| found.peel_to_id().ok());
    match commit {
        Some(commit) => Ok((objects, commit.detach())),
        None => {
            let names = names(&repository, wanted);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(wanted.missing(&names))
        }
    }
}

/// The names of the wanted kind.
fn names(repository: &gix::Repository, wanted: &Wanted) -> Vec<String> {
    let names = wanted.parts().and_then(|(_, prefix, _)| {
        let all = repository.references().ok()?;
        let all = all.prefixed(prefix).into_iter().flatten().flatten();
        let names = all.filter_map(|found| {
            let full = found.name().as_bstr().to_string();
            full.strip_prefix(prefix).map(str::to_owned)
        });
        Some(names.collect())
    });
    names.unwrap_or_default()
}
