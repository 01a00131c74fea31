//! The registry of the tests keeps to the OCI distribution specification: the small one, and with `FULL=1` that of distribution, so
//! that neither is shaped by the client which the other tests are about.

use addons_sources::registry::{RegistryClient, reference};
use addons_tests::servers::registry::tokens::Tokens;
use addons_tests::servers::registry::{Door, Layer, PASSWORD, Registry, USER, digest};
use addons_tests::tally::Tally;
use anyhow::{Context as _, Result, ensure};
use reqwest::header::{HeaderMap, LOCATION, RANGE};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::image::Reader;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const REPOSITORY: &str = "team/app";

/// What was answered.
struct Answer {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The code of the first error.
    fn code(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let code = body["errors"][0]["code"].as_str();
        code.unwrap_or_default().to_owned()
    }
}

/// A client that sends what it is told to, and follows nothing.
struct Raw {
    client: reqwest::Client,
    base: Url,
}

impl Raw {
    fn new(registry: &Registry) -> Result<Self> {
        Ok(Self {
            client: reqwest::Client::new(),
            base: Url::parse(&format!("{}/v2/{REPOSITORY}/", registry.url()))?,
        })
    }

    /// `path` is below the repository, absolute, or a URL.
    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer> {
        let mut request = self.client.request(method, self.base.join(path)?);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_vec()).send().await?;
        Ok(Answer {
            status: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body: answer.bytes().await?.to_vec(),
        })
    }

    async fn get(&self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, &[], b"").await
    }

    /// Begins an upload; where it goes on.
    async fn begin(&self) -> Result<String> {
        let begun = self.send(Method::POST, "blobs/uploads/", &[], b"").await?;
        ensure!(begun.status == 202, "{}", begun.status);
        Ok(begun.header(LOCATION.as_str()).to_owned())
    }

    /// The same place with the digest that ends the upload.
    fn end(&self, location: &str, digest: &str) -> Result<String> {
        let mut url = self.base.join(location)?;
        url.query_pairs_mut().append_pair("digest", digest);
        Ok(url.into())
    }
}

fn manifest(config: &str, more: &Value) -> Value {
    let mut manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": EMPTY, "digest": config, "size": 2},
        "layers": [],
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        manifest[key] = value.clone();
    }
    manifest
}

#[tokio::test]
async fn a_blob_is_taken_whole_or_in_chunks_and_verified() -> Result<()> {
    let mut tally = Tally::new("sources::registry::blobs");
    let registry = Registry::start(Door::Open).await?;
    let raw = Raw::new(&registry)?;
    let bytes = b"0123456789";
    let name = digest(bytes);
    let path = format!("blobs/{name}");
    let missing = raw.get(&path).await?;
    ensure!(missing.status == 404, "{}", missing.status);
    tally.ran();

    let wrong = raw.end(&raw.begin().await?, &digest(b"other"))?;
    let refused = raw.send(Method::PUT, &wrong, &[], bytes).await?;
    assert_eq!((refused.status, &*refused.code()), (400, "DIGEST_INVALID"));
    ensure!(raw.get(&path).await?.status == 404);
    tally.ran();

    let octets = ("Content-Type", "application/octet-stream");
    let at = raw.begin().await?;
    let first = [octets, ("Content-Range", "0-3")];
    let first = raw.send(Method::PATCH, &at, &first, &bytes[..4]).await?;
    assert_eq!((first.status, first.header("Range")), (202, "0-3"));
    let at = first.header("Location");
    let gap = [octets, ("Content-Range", "5-9")];
    let gap = raw.send(Method::PATCH, at, &gap, &bytes[5..]).await?;
    assert_eq!(gap.status, 416);
    let so_far = raw.get(at).await?;
    assert_eq!((so_far.status, so_far.header("Range")), (204, "0-3"));
    let last = [octets, ("Content-Range", "4-9")];
    let end = raw.end(so_far.header("Location"), &name)?;
    let end = raw.send(Method::PUT, &end, &last, &bytes[4..]).await?;
    assert_eq!(
        (end.status, end.header("Docker-Content-Digest")),
        (201, &*name)
    );
    tally.ran();

    let head = raw.send(Method::HEAD, &path, &[], b"").await?;
    assert_eq!((head.status, head.header("Content-Length")), (200, "10"));
    assert_eq!(raw.get(&path).await?.body, bytes);
    let part = [(RANGE.as_str(), "bytes=4-")];
    let part = raw.send(Method::GET, &path, &part, b"").await?;
    assert_eq!((part.status, &*part.body), (206, &bytes[4..]));
    assert_eq!(part.header("Content-Range"), "bytes 4-9/10");
    tally.ran();

    let mount = format!("/v2/team/other/blobs/uploads/?mount={name}&from={REPOSITORY}");
    let mounted = raw.send(Method::POST, &mount, &[], b"").await?;
    assert_eq!(mounted.status, 201);
    let beside = raw.get(&format!("/v2/team/other/{path}")).await?;
    assert_eq!(beside.body, bytes);
    let mount = mount.replace(&name, &digest(b"nowhere"));
    let begun = raw.send(Method::POST, &mount, &[], b"").await?;
    assert_eq!(
        begun.status, 202,
        "an upload, where there is nothing to take"
    );
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn a_manifest_is_what_it_says_and_names_what_is_there() -> Result<()> {
    let mut tally = Tally::new("sources::registry::manifests");
    let registry = Registry::start(Door::Open).await?;
    let raw = Raw::new(&registry)?;
    let config = registry.push_blob(REPOSITORY, b"{}").await?;
    let good = manifest(&config, &json!({})).to_string();
    let other = manifest(&digest(b"nowhere"), &json!({})).to_string();
    let index = manifest(
        &config,
        &json!({"mediaType": "application/vnd.oci.image.index.v1+json"}),
    );
    let index = index.to_string();
    let by_digest = format!("manifests/{}", digest(b"other"));
    for (path, text, code) in [
        ("manifests/1", "nonsense", "MANIFEST_INVALID"),
        ("manifests/1", &*index, "MANIFEST_INVALID"),
        ("manifests/1", &other, "MANIFEST_BLOB_UNKNOWN"),
        (&by_digest, &good, "DIGEST_INVALID"),
    ] {
        let typed = [("Content-Type", MANIFEST)];
        let refused = raw.send(Method::PUT, path, &typed, text.as_bytes()).await?;
        assert_eq!(refused.code(), code, "{path} {text}");
        ensure!((400..500).contains(&refused.status), "{}", refused.status);
        tally.ran();
    }
    let accept = [("Accept", MANIFEST)];
    let missing = raw.send(Method::GET, "manifests/1", &accept, b"").await?;
    assert_eq!(
        (missing.status, &*missing.code()),
        (404, "MANIFEST_UNKNOWN")
    );

    let typed = [("Content-Type", MANIFEST)];
    let pushed = raw.send(Method::PUT, "manifests/1", &typed, good.as_bytes());
    let pushed = pushed.await?;
    let name = digest(good.as_bytes());
    assert_eq!(
        (pushed.status, pushed.header("Docker-Content-Digest")),
        (201, &*name)
    );
    for path in ["manifests/1", &format!("manifests/{name}")] {
        let found = raw.send(Method::GET, path, &accept, b"").await?;
        assert_eq!((found.status, &*found.body), (200, good.as_bytes()));
        assert_eq!(found.header("Content-Type"), MANIFEST);
        let head = raw.send(Method::HEAD, path, &accept, b"").await?;
        assert_eq!(head.header("Docker-Content-Digest"), name);
        assert_eq!(head.header("Content-Length"), good.len().to_string());
        tally.ran();
    }
    let docker = "application/vnd.docker.distribution.manifest.v2+json";
    let accept = [("Accept", docker)];
    let unreadable = raw.send(Method::GET, "manifests/1", &accept, b"").await?;
    assert_eq!(
        unreadable.status, 404,
        "a type that the client does not take"
    );
    tally.ran();
    Ok(())
}

#[tokio::test]
async fn tags_come_in_pages_in_their_order() -> Result<()> {
    let mut tally = Tally::new("sources::registry::tags");
    let registry = Registry::start(Door::Open).await?;
    let raw = Raw::new(&registry)?;
    let missing = raw.get("tags/list").await?;
    assert_eq!((missing.status, &*missing.code()), (404, "NAME_UNKNOWN"));
    tally.ran();
    let config = registry.push_blob(REPOSITORY, b"{}").await?;
    for tag in ["b", "d", "a", "c", "e"] {
        let manifest = manifest(&config, &json!({}));
        registry.push_manifest(REPOSITORY, tag, &manifest).await?;
    }
    let mut pages = Vec::new();
    let mut next = "tags/list?n=2".to_owned();
    loop {
        let page = raw.get(&next).await?;
        let list: Value = serde_json::from_slice(&page.body)?;
        ensure!(list["name"] == REPOSITORY, "{list}");
        pages.push(list["tags"].clone());
        let Some((link, _)) = page.header("Link").split_once(">; rel=\"next\"") else {
            break;
        };
        next = link.trim_start_matches('<').to_owned();
        tally.ran();
    }
    assert_eq!(json!(pages), json!([["a", "b"], ["c", "d"], ["e"]]));
    Ok(())
}

#[tokio::test]
async fn whoever_has_no_password_is_refused() -> Result<()> {
    let mut tally = Tally::new("sources::registry::password");
    let registry = Registry::start(Door::Password).await?;
    let config = registry.push_blob(REPOSITORY, b"{}").await?;
    let url = format!("{}/v2/{REPOSITORY}/blobs/{config}", registry.url());
    let client = reqwest::Client::new();
    for (password, status) in [(None, 401), (Some("wrong"), 401), (Some(PASSWORD), 200)] {
        let mut request = client.get(&url);
        if let Some(password) = password {
            request = request.basic_auth(USER, Some(password));
        }
        let answer = request.send().await?;
        assert_eq!(answer.status().as_u16(), status, "{password:?}");
        let challenge = answer.headers().get("WWW-Authenticate");
        let challenge = challenge.map(|value| value.to_str().unwrap_or_default());
        let is_asked = challenge.is_some_and(|challenge| challenge.starts_with("Basic realm="));
        assert_eq!(is_asked, status == 401, "{challenge:?}");
        tally.ran();
    }
    Ok(())
}

#[tokio::test]
async fn a_token_allows_what_it_says_and_no_more() -> Result<()> {
    let mut tally = Tally::new("sources::registry::tokens");
    let tokens = Tokens::start("localhost").await?;
    let registry = Registry::start(Door::Tokens(&tokens)).await?;
    let raw = Raw::new(&registry)?;
    let config = registry.push_blob(REPOSITORY, b"{}").await?;
    let pull = tokens.issue(REPOSITORY, &["pull"])?;
    let (signed, _) = pull.rsplit_once('.').context("no signature")?;
    let elsewhere = tokens.issue("team/other", &["pull", "push"])?;
    let (_, signature) = elsewhere.rsplit_once('.').context("no signature")?;
    let forged = format!("{signed}.{signature}");
    let blob = format!("blobs/{config}");
    let uploads = "blobs/uploads/";
    for (token, method, path, status, error) in [
        (Some(&pull), Method::GET, &*blob, 200, ""),
        (None, Method::GET, &blob, 401, ""),
        (Some(&forged), Method::GET, &blob, 401, ""),
        (
            Some(&elsewhere),
            Method::GET,
            &blob,
            401,
            "insufficient_scope",
        ),
        (
            Some(&pull),
            Method::POST,
            uploads,
            401,
            "insufficient_scope",
        ),
    ] {
        let token = token.map(|token| format!("Bearer {token}"));
        let header = token.as_deref().map(|token| ("Authorization", token));
        let header: Vec<_> = header.into_iter().collect();
        let actions = if method == Method::GET {
            "pull"
        } else {
            "pull,push"
        };
        let answer = raw.send(method, path, &header, b"").await?;
        assert_eq!(answer.status, status, "{path} {error}");
        if status == 401 {
            let challenge = answer.header("WWW-Authenticate");
            let realm = format!("Bearer realm=\"{}\"", tokens.realm());
            let scope = format!("scope=\"repository:{REPOSITORY}:{actions}\"");
            ensure!(challenge.starts_with(&realm), "{challenge}");
            ensure!(challenge.contains(&scope), "{challenge}");
            ensure!(challenge.contains(error), "{error}: {challenge}");
        }
        tally.ran();
    }
    Ok(())
}

/// What refers to a manifest is listed by the registry itself, and our client asks for no tag.
#[tokio::test]
async fn the_referrers_api_lists_what_has_a_subject() -> Result<()> {
    let mut tally = Tally::new("sources::registry::referrers");
    let registry = Registry::with_referrers().await?;
    let raw = Raw::new(&registry)?;
    let layers: [Layer; 0] = [];
    let subject = registry.push(REPOSITORY, "1", EMPTY, &layers).await?;
    let none: Value =
        serde_json::from_slice(&raw.get(&format!("referrers/{subject}")).await?.body)?;
    ensure!(none["manifests"] == json!([]), "{none}");
    tally.ran();

    let config = registry.push_blob(REPOSITORY, b"{}").await?;
    let mut names = Vec::new();
    for kind in ["application/x.a", "application/x.b"] {
        let more = json!({
            "artifactType": kind,
            "subject": {"mediaType": MANIFEST, "digest": subject, "size": 1},
            "annotations": {"kind": kind},
        });
        let text = manifest(&config, &more).to_string();
        let name = digest(text.as_bytes());
        let typed = [("Content-Type", MANIFEST)];
        let path = format!("manifests/{name}");
        let pushed = raw.send(Method::PUT, &path, &typed, text.as_bytes());
        assert_eq!(pushed.await?.header("OCI-Subject"), subject);
        names.push(name);
    }
    let filtered = format!("referrers/{subject}?artifactType=application/x.b");
    let filtered = raw.get(&filtered).await?;
    assert_eq!(filtered.header("OCI-Filters-Applied"), "artifactType");
    let list: Value = serde_json::from_slice(&filtered.body)?;
    let listed = &list["manifests"][0];
    ensure!(listed["digest"] == *names[1], "{list}");
    ensure!(listed["annotations"]["kind"] == "application/x.b", "{list}");
    ensure!(list["manifests"][1].is_null(), "{list}");
    tally.ran();

    let reader = Reader::new()?;
    let name = reference(&format!("{}/{REPOSITORY}:1", registry.host))?;
    let mut client = RegistryClient::open(&name, true, &reader.access())?;
    ensure!(client.lists_referrers(&subject).await?);
    let found = client.referrers(&subject).await?.into_iter();
    let mut found: Vec<String> = found.map(|referrer| referrer.digest).collect();
    found.sort();
    names.sort();
    assert_eq!(found, names);
    tally.ran();
    Ok(())
}
