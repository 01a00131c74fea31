//! What the headers of a registry's answers say.

use reqwest::header::{HeaderMap, LINK};

use super::sha256;

/// The digest that the registry says its answer has.
pub fn digest(headers: &HeaderMap) -> Option<String> {
    let header = headers.get("Docker-Content-Digest")?;
    let digest = header.to_str().ok()?;
    sha256(digest, "").is_ok().then(|| digest.to_owned())
}

/// The query of the next page: `Link: </v2/PATH/tags/list?last=X&n=Y>; rel="next"`.
pub fn next_page(headers: &HeaderMap) -> Option<String> {
    let link = headers.get(LINK)?.to_str().ok()?;
    let (target, parameters) = link.strip_prefix('<')?.split_once('>')?;
    let query = target.split_once('?')?.1;
    parameters.contains("next").then(|| query.to_owned())
}
