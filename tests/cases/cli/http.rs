//! Indexes and manifests over HTTP: what is tried again, what is followed, what is refused.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Result, ensure};

use super::User;

/// Answers the requests for a path with these answers, one after another, the last one for ever.
struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(answers: Vec<(&'static str, Vec<String>)>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&requests);
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &answers, &seen);
            }
        });
        Ok(Self { address, requests })
    }

    fn requests(&self) -> Vec<String> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

fn answer(
    mut stream: TcpStream,
    answers: &[(&'static str, Vec<String>)],
    seen: &Mutex<Vec<String>>,
) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let before = seen.iter().filter(|other| **other == path).count();
    let known = answers.iter().find(|(known, _)| *known == path);
    let text = known.and_then(|(_, answers)| answers.get(before).or(answers.last()));
    let text = text.cloned().unwrap_or_else(|| status("404 Not Found"));
    seen.push(path);
    stream.write_all(text.as_bytes())?;
    Ok(())
}

fn ok(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn status(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
}

fn moved(location: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
    )
}

const INDEX: &str =
    "kind: Addons\nspec:\n  addons:\n  - {name: web, version: 1.0.0, manifest: sub/web.yaml}\n";
const MANIFEST: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n";

#[test]
fn an_index_and_its_manifest_beside_it() -> Result<()> {
    let server = Server::start(vec![
        // An overloaded server is asked again.
        (
            "/a/index.yaml",
            vec![status("503 Service Unavailable"), moved("/b/index.yaml")],
        ),
        ("/b/index.yaml", vec![ok(INDEX)]),
        ("/a/sub/web.yaml", vec![ok(MANIFEST)]),
    ])?;
    let line = format!(
        "kubectl-addons show web --channel {}/a/index.yaml --k8s 1.36",
        server.address
    );
    let user = User::new()?;
    let (code, stdout, stderr) = user.run(&line)?;
    ensure!(
        code == 0 && stderr.is_empty() && stdout.contains("1: ConfigMap"),
        "{code}\n{stdout}{stderr}"
    );
    let expected = [
        "/a/index.yaml",
        "/a/index.yaml",
        "/b/index.yaml",
        "/a/sub/web.yaml",
    ];
    ensure!(server.requests() == expected, "{:?}", server.requests());
    let offline = user.run(&format!("{line} --offline"))?;
    ensure!(offline == (0, stdout, stderr), "{offline:?}");
    ensure!(server.requests() == expected, "{:?}", server.requests());
    Ok(())
}

#[test]
fn what_is_refused() -> Result<()> {
    let large = 17 << 20;
    let server = Server::start(vec![
        ("/loop", vec![moved("/loop")]),
        ("/elsewhere", vec![moved("file:///etc/passwd")]),
        (
            "/large",
            vec![format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {large}\r\n\r\n"
            )],
        ),
        ("/broken", vec![status("500 Internal Server Error")]),
    ])?;
    let user = User::new()?;
    for (path, words, requests) in [
        ("/missing", "the server answers 404 Not Found", 1),
        ("/loop", "too many redirects", 6),
        (
            "/elsewhere",
            "the redirect to file:///etc/passwd is not followed: it leads to another scheme",
            1,
        ),
        ("/large", "is larger than 16 MiB", 1),
        ("/broken", "the server answers 500 Internal Server Error", 4),
    ] {
        let line = format!(
            "kubectl-addons search --channel {}{path} --k8s 1.36",
            server.address
        );
        let (code, stdout, stderr) = user.run(&line)?;
        ensure!(code == 1 && stdout.is_empty(), "{path}: {code} {stdout}");
        ensure!(
            stderr.contains(words) && stderr.contains(path),
            "{path}: {stderr}"
        );
        ensure!(stderr.lines().count() == 1, "{path}: {stderr}");
        let seen = server
            .requests()
            .iter()
            .filter(|request| *request == path)
            .count();
        ensure!(seen == requests, "{path}: {seen} requests");
    }
    Ok(())
}

/// A web server is not an empty cluster.
#[test]
fn a_web_server_is_no_api_server() -> Result<()> {
    let server = Server::start(Vec::new())?;
    let page = Server::start(vec![(
        "/version",
        vec!["HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<!DOCTYPE html>".to_owned()],
    )])?;
    let user = User::new()?;
    for (command, address, answer) in [
        ("list", &server.address, "GET /apis says"),
        ("list", &page.address, "GET /apis says"),
        ("version", &server.address, "GET /version says: HTTP 404"),
        (
            "version",
            &page.address,
            "GET /version says: something else",
        ),
    ] {
        let line = format!("kubectl-addons {command} --server {address}");
        let (code, shown, said) = user.run(&line)?;
        let expected = format!("does not answer as a Kubernetes API server does; {answer}");
        ensure!(
            code == 1 && said.contains(&expected) && said.contains("correct --server"),
            "{line}: {shown}{said}"
        );
    }
    Ok(())
}
