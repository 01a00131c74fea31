//! What the source of an entry may open on this machine.

use addons_sources::Reach;
use common::catalogue::Origin;
use common::catalogue::author::Author;

use crate::context::Context;
use crate::resolved::Resolved;

/// What the source of an entry may open (semantics 16). An entry that was read back with a revision has no author: it opens as much as
/// a record beside the revision does.
pub(super) fn reach(ctx: &Context, resolved: &Resolved) -> Reach {
    let entry = &resolved.entry;
    match &*entry.origin {
        Origin::Catalogue { .. } | Origin::Directory { .. } => Reach::cluster(),
        Origin::Index { location } => {
            let author = match &entry.author {
                Author::Unknown => &ctx.author_in(&resolved.name.namespace),
                author => author,
            };
            Reach::for_index(author, location, &ctx.settings().opened)
        }
    }
}
