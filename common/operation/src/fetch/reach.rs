//! What the source of an entry may open on this machine (semantics 16.3).

use addons_sources::Reach;
use common::catalogue::Origin;
use common::catalogue::author::Author;

use crate::context::Context;
use crate::resolve::resolved::Resolved;

/// Returns what the source of an entry may open (semantics 16.3). The entry of a revision has no author: it may open what a record beside
/// the revision may (semantics 16.4).
pub(super) fn reach(ctx: &Context, resolved: &Resolved) -> Reach {
    let entry = &resolved.entry;
    match &*entry.origin {
        Origin::Catalogue { .. } | Origin::Directory { .. } => Reach::cluster(),
        Origin::Index { location } | Origin::Installation { location } => {
            let author = match &entry.author {
                Author::Unknown => &ctx.author_in(&resolved.name.namespace),
                author => author,
            };
            Reach::for_index(author, location, &ctx.settings().opened)
        }
    }
}
