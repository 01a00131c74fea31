use common::manifest::kinds::KindTable;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use super::super::LookupQuestion;
use super::*;

/// Status line and body of the response to a request. All objects exist but those called `x`, and `hidden` cannot be read.
async fn ask(
    endpoint: &Endpoint<'_>,
    asked: &mut mpsc::Receiver<LookupQuestion>,
    line: &str,
) -> (String, String) {
    let address = endpoint.loopback.address();
    let line = line.replace("TOKEN", endpoint.token());
    let client = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    let answers = async {
        while let Some(LookupQuestion { query, answer }) = asked.recv().await {
            let object = json!({"kind": query.gvk.kind, "metadata": {"name": query.name}});
            let _ = answer.send(match query.name.as_deref() {
                Some("x") => Ok(Vec::new()),
                Some("hidden") => Err("it cannot be read".to_owned()),
                _ => Ok(vec![object]),
            });
        }
    };
    let text = tokio::select! {
        text = endpoint.serve_while(client) => text,
        () = answers => String::new(),
    };
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.lines().next().unwrap();
    (status.replace("HTTP/1.1 ", ""), body.to_owned())
}

fn capabilities() -> Capabilities {
    Capabilities {
        kube_version: KubeVersion {
            version: "v1.36.3".to_owned(),
            major: "1".to_owned(),
            minor: "36".to_owned(),
        },
        api_versions: ["v1", "v1/Secret", "apps/v1"].map(str::to_owned).into(),
    }
}

#[tokio::test]
async fn only_reads_of_known_kinds_with_the_token_are_answered() {
    let (kinds, capabilities) = (KindTable::default(), capabilities());
    let (lookup, mut asked) = Lookup::new(&kinds);
    let endpoint = Endpoint::open(&capabilities, &lookup, false).await.unwrap();
    assert_eq!(endpoint.token().len(), 64);
    for (line, status, part) in [
        ("GET /api/v1/namespaces/a/secret/db", "401 Unauthorized", ""),
        ("GET /version", "401 Unauthorized", ""),
        ("GET /TOKENx/version", "401 Unauthorized", ""),
        ("GET /TOKEN/version", "200 OK", "v1.36.3"),
        ("GET /TOKEN/apis", "200 OK", "apps/v1"),
        ("GET /TOKEN/api/v1", "200 OK", "Secret"),
        (
            "GET /TOKEN/api/v1/namespaces/a/secret/db",
            "200 OK",
            "\"db\"",
        ),
        (
            "GET /TOKEN/api/v1/namespaces/a/secret",
            "200 OK",
            "SecretList",
        ),
        (
            "GET /TOKEN/api/v1/namespaces/a/secret/x",
            "404 Not Found",
            "",
        ),
        (
            "GET /TOKEN/api/v1/namespaces/a/secret/hidden",
            "403 Forbidden",
            "cannot be read",
        ),
        ("GET /TOKEN/api/v1/namespaces/a/pod/db", "404 Not Found", ""),
        (
            "GET /TOKEN/api/v1/namespaces/a/secret/db/log",
            "404 Not Found",
            "",
        ),
        ("GET /TOKEN/openapi/v3", "404 Not Found", ""),
        (
            "GET /TOKEN/api/v1/secret?watch=true",
            "405 Method Not Allowed",
            "",
        ),
        (
            "DELETE /TOKEN/api/v1/namespaces/a/secret/db",
            "405 Method Not Allowed",
            "",
        ),
        (
            "POST /TOKEN/api/v1/namespaces/a/secret",
            "405 Method Not Allowed",
            "",
        ),
    ] {
        let (code, body) = ask(&endpoint, &mut asked, line).await;
        assert_eq!(code, status, "{line}: {body}");
        assert!(body.contains(part), "{line}: {body}");
    }
}

/// `.Capabilities` contains only served types. Types that a chart defines are mapped all the same.
#[tokio::test]
async fn kinds_that_will_be_defined_are_in_the_second_listing() {
    let (kinds, capabilities) = (KindTable::default(), capabilities());
    let (lookup, mut asked) = Lookup::new(&kinds);
    let endpoint = Endpoint::open(&capabilities, &lookup, false).await.unwrap();
    let own = BTreeSet::from([Gvk::new("own.io/v1", "Own")]);
    assert!(endpoint.begin_rendering(own.clone()));
    let (resources, secret) = (
        "GET /TOKEN/apis/own.io/v1",
        "GET /TOKEN/api/v1/namespaces/a/secret/db",
    );
    assert!(
        !ask(&endpoint, &mut asked, "GET /TOKEN/apis")
            .await
            .1
            .contains("own.io")
    );
    assert!(
        !ask(&endpoint, &mut asked, resources)
            .await
            .1
            .contains("Own")
    );
    assert_eq!(ask(&endpoint, &mut asked, secret).await.0, "200 OK");
    assert!(
        ask(&endpoint, &mut asked, "GET /TOKEN/apis")
            .await
            .1
            .contains("own.io")
    );
    assert!(
        ask(&endpoint, &mut asked, resources)
            .await
            .1
            .contains("Own")
    );
    assert_eq!(ask(&endpoint, &mut asked, secret).await.0, "404 Not Found");
    assert!(!endpoint.begin_rendering(own));
}
