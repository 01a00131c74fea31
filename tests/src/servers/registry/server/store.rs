//! What a registry holds.

use std::collections::BTreeMap;

use hyper::body::Bytes;
use serde_json::{Value, json};

use super::answer::{Answer, Code, Refusal};
use super::names::{Digest, Reference};

/// Largest manifest, as the specification proposes.
const MAX_MANIFEST: usize = 4 << 20;
/// Tags of a page where the client does not say.
const PAGE: usize = 1000;
const OCTETS: &str = "application/octet-stream";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Manifests of images and artifacts.
const IMAGES: [&str; 2] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];
/// Manifests that name other manifests.
const INDEXES: [&str; 2] = [
    INDEX,
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// All repositories.
#[derive(Default)]
pub(super) struct Store {
    repositories: BTreeMap<String, Repository>,
    uploads: u64,
}

#[derive(Default)]
struct Repository {
    blobs: BTreeMap<Digest, Bytes>,
    manifests: BTreeMap<Digest, Manifest>,
    tags: BTreeMap<String, Digest>,
    /// Uploads that are not finished.
    uploads: BTreeMap<String, Vec<u8>>,
}

struct Manifest {
    media_type: String,
    bytes: Bytes,
    content: Value,
}

impl Store {
    fn repository(&self, name: &str) -> Result<&Repository, Refusal> {
        let found = self.repositories.get(name);
        // An upload that was begun makes no repository.
        let found = found.filter(|one| !one.blobs.is_empty());
        found.ok_or_else(|| Refusal::new(Code::NameUnknown, name))
    }

    fn upload_of(&mut self, name: &str, id: &str) -> Result<&mut Vec<u8>, Refusal> {
        let repository = self.repositories.get_mut(name);
        let found = repository.and_then(|repository| repository.uploads.get_mut(id));
        found.ok_or_else(|| Refusal::new(Code::BlobUploadUnknown, id))
    }

    /// Takes a blob from another repository, if that has it.
    pub(super) fn mount(&mut self, name: &str, digest: &Digest, from: &str) -> Option<Answer> {
        let bytes = self.repositories.get(from)?.blobs.get(digest)?.clone();
        Some(self.keep(name, digest, bytes))
    }

    fn keep(&mut self, name: &str, digest: &Digest, bytes: Bytes) -> Answer {
        let repository = self.repositories.entry(name.to_owned()).or_default();
        repository.blobs.insert(digest.clone(), bytes);
        Answer::status(201)
            .with("Location", format!("/v2/{name}/blobs/{}", digest.as_str()))
            .with("Docker-Content-Digest", digest.as_str())
    }

    /// Begins an upload; its id.
    pub(super) fn begin(&mut self, name: &str) -> String {
        self.uploads += 1;
        let id = self.uploads.to_string();
        let repository = self.repositories.entry(name.to_owned()).or_default();
        repository.uploads.insert(id.clone(), Vec::new());
        id
    }

    /// Adds bytes to an upload; a chunk that says its range has to begin where the last one ended.
    pub(super) fn append(
        &mut self,
        name: &str,
        id: &str,
        range: Option<&str>,
        bytes: &[u8],
    ) -> Result<(), Refusal> {
        let upload = self.upload_of(name, id)?;
        if let Some(range) = range {
            let expected = match (upload.len(), bytes.len()) {
                (_, 0) => String::new(),
                (start, length) => format!("{start}-{}", start + length - 1),
            };
            if range != expected {
                let message = format!("range {range}, but {expected} is next");
                let refusal = Refusal::new(Code::RangeInvalid, message);
                return Err(refusal
                    .with("Location", location(name, id))
                    .with("Range", so_far(upload)));
            }
        }
        upload.extend_from_slice(bytes);
        Ok(())
    }

    /// How far an upload is.
    pub(super) fn upload(&mut self, name: &str, id: &str) -> Result<Answer, Refusal> {
        Ok(self.accepted(name, id)?.with_status(204))
    }

    /// That an upload goes on.
    pub(super) fn accepted(&mut self, name: &str, id: &str) -> Result<Answer, Refusal> {
        let range = so_far(self.upload_of(name, id)?);
        Ok(Answer::status(202)
            .with("Location", location(name, id))
            .with("Docker-Upload-UUID", id)
            .with("Range", range))
    }

    /// Makes a blob of an upload. One of other bytes than its digest says is refused, and the upload is over.
    pub(super) fn finish(
        &mut self,
        name: &str,
        id: &str,
        digest: &Digest,
    ) -> Result<Answer, Refusal> {
        let bytes = std::mem::take(self.upload_of(name, id)?);
        self.cancel(name, id)?;
        if !digest.verifies(&bytes) {
            let message = format!("the bytes do not have the digest {}", digest.as_str());
            return Err(Refusal::new(Code::DigestInvalid, message));
        }
        Ok(self.keep(name, digest, bytes.into()))
    }

    /// Ends an upload.
    pub(super) fn cancel(&mut self, name: &str, id: &str) -> Result<Answer, Refusal> {
        self.upload_of(name, id)?;
        if let Some(repository) = self.repositories.get_mut(name) {
            repository.uploads.remove(id);
        }
        Ok(Answer::status(204))
    }

    /// A blob, or a range of its bytes.
    pub(super) fn blob(
        &self,
        name: &str,
        digest: &Digest,
        range: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let bytes = self.repository(name)?.blobs.get(digest);
        let Some(bytes) = bytes else {
            return Err(Refusal::new(Code::BlobUnknown, digest.as_str()));
        };
        let all = bytes.len();
        let answer = match range.and_then(|range| range.strip_prefix("bytes=")) {
            None => Answer::bytes(OCTETS, bytes.clone()),
            Some(range) => {
                let Some((start, end)) = bounds(range, all) else {
                    let refusal = Refusal::new(Code::RangeInvalid, "no such range");
                    return Err(refusal.with("Content-Range", format!("bytes */{all}")));
                };
                let part = Answer::bytes(OCTETS, bytes.slice(start..end)).with_status(206);
                part.with("Content-Range", format!("bytes {start}-{}/{all}", end - 1))
            }
        };
        Ok(answer
            .with("Docker-Content-Digest", digest.as_str())
            .with("Accept-Ranges", "bytes"))
    }

    /// A manifest, for a client that takes its type.
    pub(super) fn manifest(
        &self,
        name: &str,
        reference: &Reference<'_>,
        accept: &[&str],
    ) -> Result<Answer, Refusal> {
        let unknown = |message: &str| Refusal::new(Code::ManifestUnknown, message);
        let repository = self.repository(name)?;
        let digest = match reference {
            Reference::Digest(digest) => digest,
            Reference::Tag(tag) => {
                let found = repository.tags.get(*tag);
                found.ok_or_else(|| unknown(tag))?
            }
        };
        let manifest = repository.manifests.get(digest);
        let manifest = manifest.ok_or_else(|| unknown(digest.as_str()))?;
        let takes = |accept: &&str| {
            let accept = accept.split(';').next().unwrap_or_default().trim();
            [&manifest.media_type, "*/*", "application/*"].contains(&accept)
        };
        if !accept.is_empty() && !accept.iter().any(takes) {
            let message = format!("it has the type {}", manifest.media_type);
            return Err(unknown(&message));
        }
        Ok(Answer::bytes(&manifest.media_type, manifest.bytes.clone())
            .with("Docker-Content-Digest", digest.as_str()))
    }

    /// Takes a manifest that is what it says it is, and names nothing that is not in the repository.
    pub(super) fn put_manifest(
        &mut self,
        name: &str,
        reference: &Reference<'_>,
        media_type: &str,
        bytes: Bytes,
        has_referrers: bool,
    ) -> Result<Answer, Refusal> {
        if bytes.len() > MAX_MANIFEST {
            return Err(Refusal::new(Code::ManifestInvalid, "larger than 4 MiB"));
        }
        let content: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let repository = self.repositories.entry(name.to_owned()).or_default();
        repository.check(media_type, &content)?;
        let digest = match reference {
            Reference::Tag(_) => Digest::of(&bytes),
            Reference::Digest(digest) if digest.verifies(&bytes) => digest.clone(),
            Reference::Digest(digest) => {
                return Err(Refusal::new(Code::DigestInvalid, digest.as_str()));
            }
        };
        let location = format!("/v2/{name}/manifests/{}", digest.as_str());
        let mut answer = Answer::status(201)
            .with("Location", location)
            .with("Docker-Content-Digest", digest.as_str());
        if has_referrers && let Some(subject) = content["subject"]["digest"].as_str() {
            answer = answer.with("OCI-Subject", subject);
        }
        if let Reference::Tag(tag) = reference {
            repository.tags.insert((*tag).to_owned(), digest.clone());
        }
        let media_type = media_type.to_owned();
        let manifest = Manifest {
            media_type,
            bytes,
            content,
        };
        repository.manifests.insert(digest, manifest);
        Ok(answer)
    }

    /// A page of tags in their order, and where the next one is.
    pub(super) fn tags(
        &self,
        name: &str,
        query: &BTreeMap<String, String>,
    ) -> Result<Answer, Refusal> {
        let size = match query.get("n").map(|n| n.parse::<usize>()) {
            None => PAGE,
            Some(Ok(n)) if n <= PAGE => n,
            Some(_) => {
                let message = format!("n is at most {PAGE}");
                return Err(Refusal::new(Code::PaginationNumberInvalid, message));
            }
        };
        let last = query.get("last").map_or("", String::as_str);
        let repository = self.repository(name)?;
        let mut rest = repository.tags.keys().filter(|tag| tag.as_str() > last);
        let page: Vec<&String> = rest.by_ref().take(size).collect();
        let answer = Answer::json(&json!({"name": name, "tags": page}));
        Ok(match (page.last(), rest.next()) {
            (Some(last), Some(_)) => {
                let next = format!("</v2/{name}/tags/list?last={last}&n={size}>; rel=\"next\"");
                answer.with("Link", next)
            }
            _ => answer,
        })
    }

    /// The manifests whose subject has this digest, as an index; one with no such manifests is empty.
    pub(super) fn referrers(
        &self,
        name: &str,
        subject: &Digest,
        of_type: Option<&String>,
    ) -> Result<Answer, Refusal> {
        let manifests = self.repositories.get(name).into_iter();
        let manifests = manifests.flat_map(|repository| &repository.manifests);
        let named = manifests.filter(|(_, manifest)| {
            let is_subject = manifest.content["subject"]["digest"] == subject.as_str();
            is_subject && of_type.is_none_or(|of_type| manifest.artifact_type() == of_type.as_str())
        });
        let descriptors = named.map(|(digest, manifest)| {
            let mut descriptor = json!({
                "mediaType": manifest.media_type,
                "digest": digest.as_str(),
                "size": manifest.bytes.len(),
                "artifactType": manifest.artifact_type(),
            });
            if !manifest.content["annotations"].is_null() {
                descriptor["annotations"] = manifest.content["annotations"].clone();
            }
            descriptor
        });
        let descriptors: Vec<Value> = descriptors.collect();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors});
        let answer = Answer::bytes(INDEX, Bytes::from(index.to_string()));
        Ok(match of_type {
            Some(_) => answer.with("OCI-Filters-Applied", "artifactType"),
            None => answer,
        })
    }
}

impl Repository {
    /// That a manifest has the form of its type, and names only what is here.
    fn check(&self, media_type: &str, content: &Value) -> Result<(), Refusal> {
        let invalid = |message: &str| Refusal::new(Code::ManifestInvalid, message);
        let own = &content["mediaType"];
        if content["schemaVersion"] != 2 || !(own.is_null() || *own == media_type) {
            return Err(invalid(
                "neither its version nor its type may be another one",
            ));
        }
        let list = |field: &str| {
            let list = content[field].as_array();
            list.ok_or_else(|| invalid(&format!("{field} is missing")))
        };
        let (blobs, manifests) = if IMAGES.contains(&media_type) {
            let mut blobs = vec![&content["config"]];
            blobs.extend(list("layers")?);
            (blobs, Vec::new())
        } else if INDEXES.contains(&media_type) {
            (Vec::new(), list("manifests")?.iter().collect())
        } else {
            return Err(invalid("an unknown type"));
        };
        let subject = Some(&content["subject"]).filter(|subject| !subject.is_null());
        for descriptor in blobs.iter().chain(&manifests).chain(&subject) {
            if !(descriptor["mediaType"].is_string() && descriptor["size"].is_u64()) {
                return Err(invalid("a descriptor without type or size"));
            }
        }
        // A subject may come later.
        let digest =
            |descriptor: &Value| Digest::parse(descriptor["digest"].as_str().unwrap_or_default());
        subject.map(digest).transpose()?;
        let missing = |digest: &Digest| {
            let message = format!("{} is not in this repository", digest.as_str());
            Refusal::new(Code::ManifestBlobUnknown, message)
        };
        for blob in blobs {
            let digest = digest(blob)?;
            if !self.blobs.contains_key(&digest) {
                return Err(missing(&digest));
            }
        }
        for manifest in manifests {
            let digest = digest(manifest)?;
            if !self.manifests.contains_key(&digest) {
                return Err(missing(&digest));
            }
        }
        Ok(())
    }
}

impl Manifest {
    /// What it says it is, or the type of its configuration.
    fn artifact_type(&self) -> &str {
        let own = self.content["artifactType"].as_str();
        let config = self.content["config"]["mediaType"].as_str();
        own.or(config).unwrap_or_default()
    }
}

fn location(name: &str, id: &str) -> String {
    format!("/v2/{name}/blobs/uploads/{id}")
}

/// The range of bytes that an upload has.
fn so_far(upload: &[u8]) -> String {
    format!("0-{}", upload.len().max(1) - 1)
}

/// The bounds of `START-END`, `START-` or `-LENGTH`; the end is not part of them.
fn bounds(range: &str, all: usize) -> Option<(usize, usize)> {
    let (start, end) = range.split_once('-')?;
    let number = |text: &str| text.parse::<usize>().ok();
    let (start, end) = match (start, end) {
        ("", length) => (all.saturating_sub(number(length)?), all),
        (start, "") => (number(start)?, all),
        (start, end) => (number(start)?, number(end)?.checked_add(1)?.min(all)),
    };
    (start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_http() {
        for (range, expected) in [
            ("0-0", Some((0, 1))),
            ("2-", Some((2, 10))),
            ("2-100", Some((2, 10))),
            ("-3", Some((7, 10))),
            ("-30", Some((0, 10))),
            ("10-", None),
            ("3-2", None),
            ("a-b", None),
            ("1", None),
        ] {
            assert_eq!(bounds(range, 10), expected, "{range}");
        }
    }
}
