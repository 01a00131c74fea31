use std::sync::{Arc, Mutex};

use addons_sources::Reach;
use addons_sources::cache::SourceCache;
use addons_sources::layout::LayoutArchive;
use addons_sources::scratch::Scratch;
use common::manifest::digest::sha256;
use common::oci::manifest::{IMAGE, INDEX};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// The requested paths.
type Asked = Arc<Mutex<Vec<String>>>;

/// Where the only repository of the registry begins.
const PREFIX: &str = "/v2/team/web/";

/// A registry with this content below [`PREFIX`], and the paths that it is asked for. Everything else is missing.
async fn registry(content: BTreeMap<String, Vec<u8>>) -> (String, Asked) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream, &content, &log).await;
        }
    });
    (host, asked)
}

async fn answer(mut stream: TcpStream, content: &BTreeMap<String, Vec<u8>>, asked: &Asked) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let path = path.strip_prefix(PREFIX).unwrap_or(path).to_owned();
    let found = content.get(&path);
    let status = found.map_or("404 Not Found", |_| "200 OK");
    let bytes = found.map(Vec::as_slice).unwrap_or_default();
    asked.lock().unwrap().push(path);
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        bytes.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
}

/// Copies `team/web:1` of a registry. Returns the name without the registry, and the digest that the archive lists.
async fn copied(host: &str) -> Result<Vec<(String, String)>, AirgapError> {
    copied_as(host, &[]).await
}

/// Does the same if these digests were verified.
async fn copied_as(host: &str, verified: &[&str]) -> Result<Vec<(String, String)>, AirgapError> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let folder = Scratch::new("airgap-copy-").unwrap();
    let file = folder.path().join("site.tar");
    let mut partial = PartialArchive::open(&file).unwrap();
    let image = Image::parse(&format!("{host}/team/web:1")).unwrap();
    let wanted = ImageToCopy {
        from: image.clone(),
        image,
        plain_http: true,
        credentials: None,
        reach: Reach::cluster(),
        verified: verified.iter().map(|one| (*one).to_owned()).collect(),
    };
    let cache = SourceCache::default();
    let access = SourceAccess {
        cache: &cache,
        offline: false,
        hash: None,
        reach: &Reach::cluster(),
        credentials: None,
        kustomize: None,
    };
    let named = copy_image(&mut partial, &wanted, access, &|_| {}).await?;
    partial.finish(&named).unwrap();
    let archive = LayoutArchive::open(&file).unwrap();
    assert_eq!(archive.named(), named);
    let named = named.into_iter().map(|one| {
        let name = one.image.to_string();
        (name.replace(host, ""), one.descriptor.digest)
    });
    Ok(named.collect())
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

fn described(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}

/// An image whose layer contains this text.
fn image(text: &str) -> Vec<u8> {
    let layer = described("application/vnd.oci.image.layer.v1.tar", text.as_bytes());
    let config = described("application/vnd.oci.image.config.v1+json", b"{}");
    let image = json!({"schemaVersion": 2, "config": config, "layers": [layer]});
    image.to_string().into_bytes()
}

fn index(children: &[Value]) -> Vec<u8> {
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": children});
    index.to_string().into_bytes()
}

/// Nothing that an index lists is fetched or kept before it is known that an image can have so much.
#[tokio::test]
async fn an_index_that_lists_too_much_is_refused_before_any_of_it_is_fetched() {
    let child = image("web");
    let root = index(&vec![described(IMAGE, &child); MAX_MANIFESTS + 1]);
    let content = BTreeMap::from([
        ("manifests/1".to_owned(), root),
        (format!("manifests/{}", digest(&child)), child),
    ]);
    let (host, asked) = registry(content).await;
    let error = copied(&host).await.unwrap_err();
    assert!(matches!(error, AirgapError::TooMany { .. }), "{error}");
    assert_eq!(*asked.lock().unwrap(), ["manifests/1"]);
}

/// Lists of referrers count as well.
#[tokio::test]
async fn too_many_referrers_are_refused_before_any_of_them_is_fetched() {
    let root = image("web");
    let referrers = format!("referrers/{}", digest(&root));
    let listed = index(&vec![described(IMAGE, b"x"); MAX_MANIFESTS]);
    let content = BTreeMap::from([
        ("manifests/1".to_owned(), root),
        (referrers.clone(), listed),
        (format!("blobs/{}", digest(b"{}")), b"{}".to_vec()),
        (format!("blobs/{}", digest(b"web")), b"web".to_vec()),
    ]);
    let (host, asked) = registry(content).await;
    let error = copied(&host).await.unwrap_err();
    assert!(matches!(error, AirgapError::TooMany { .. }), "{error}");
    assert_eq!(asked.lock().unwrap().last(), Some(&referrers));
}

/// A manifest that is listed twice and also refers to the index is fetched once and keeps its name. So does a signature of cosign.
#[tokio::test]
async fn everything_that_belongs_to_an_image_is_copied_once() {
    let (child, signature) = (image("web"), image("signature"));
    let listed = described(IMAGE, &child);
    let root = index(&[listed.clone(), listed.clone()]);
    let (of_root, of_child) = (digest(&root), digest(&child));
    let tag = format!("{}.sig", of_root.replace(':', "-"));
    let by_digest = format!("manifests/{of_child}");
    let content = BTreeMap::from([
        ("manifests/1".to_owned(), root),
        (by_digest.clone(), child),
        (format!("manifests/{tag}"), signature.clone()),
        (format!("referrers/{of_root}"), index(&[listed])),
        (format!("blobs/{}", digest(b"{}")), b"{}".to_vec()),
        (format!("blobs/{}", digest(b"web")), b"web".to_vec()),
        (
            format!("blobs/{}", digest(b"signature")),
            b"signature".to_vec(),
        ),
    ]);
    let (host, asked) = registry(content).await;
    let expected = [
        ("/team/web:1".to_owned(), of_root),
        (format!("/team/web@{of_child}"), of_child),
        (format!("/team/web:{tag}"), digest(&signature)),
    ];
    assert_eq!(copied(&host).await.unwrap(), expected);
    let asked = asked.lock().unwrap();
    let fetched = asked.iter().filter(|path| **path == by_digest).count();
    assert_eq!(fetched, 1, "{asked:?}");
}

/// An index with a wrong size for an entry would make an archive that no site accepts.
#[tokio::test]
async fn a_size_that_is_wrong_is_an_error() {
    let child = image("web");
    let mut listed = described(IMAGE, &child);
    let right = listed.clone();
    listed["size"] = json!(1);
    for children in [vec![listed.clone()], vec![right, listed]] {
        let content = BTreeMap::from([
            ("manifests/1".to_owned(), index(&children)),
            (format!("manifests/{}", digest(&child)), child.clone()),
            (format!("blobs/{}", digest(b"{}")), b"{}".to_vec()),
            (format!("blobs/{}", digest(b"web")), b"web".to_vec()),
        ]);
        let (host, _) = registry(content).await;
        let error = copied(&host).await.unwrap_err();
        assert!(
            matches!(error, AirgapError::Size { wanted: 1, .. }),
            "{error}"
        );
    }
}

/// The image for this platform was verified, whether its name refers to the image or to an index.
#[tokio::test]
async fn what_was_moved_since_it_was_verified_is_an_error() {
    let (child, other) = (image("web"), digest(b"other"));
    let of_child = digest(&child);
    let root = index(&[described(IMAGE, &child)]);
    let of_root = digest(&root);
    for named in [child.clone(), root] {
        let content = BTreeMap::from([
            ("manifests/1".to_owned(), named),
            (format!("manifests/{of_child}"), child.clone()),
            (format!("blobs/{}", digest(b"{}")), b"{}".to_vec()),
            (format!("blobs/{}", digest(b"web")), b"web".to_vec()),
        ]);
        let (host, asked) = registry(content).await;
        copied_as(&host, &[&*of_child, &*of_child]).await.unwrap();
        for verified in [&[&*other][..], &[&*of_root], &[&*of_child, &*other]] {
            asked.lock().unwrap().clear();
            let error = copied_as(&host, verified).await.unwrap_err();
            assert!(matches!(error, AirgapError::Moved { .. }), "{error}");
            assert_eq!(*asked.lock().unwrap(), ["manifests/1"]);
        }
    }
}
