//! What the servers of the matrix serve.

use std::fs;
use std::path::PathBuf;

use addons_tests::servers::http::{Answer, Server};
use addons_tests::servers::registry::{PASSWORD, USER, digest};
use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A ConfigMap as a manifest.
pub fn map(name: &str, data: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
        .to_string()
}

/// A web server of the files in a folder, for [`USER`].
pub fn files(folder: PathBuf) -> Result<Server> {
    let wanted = format!("Basic {}", STANDARD.encode(format!("{USER}:{PASSWORD}")));
    Server::start(None, move |request| {
        if request.headers.get("authorization") != Some(&wanted) {
            return Answer::status(401);
        }
        let name = request.uri.trim_start_matches('/');
        match fs::read(folder.join(name)) {
            Ok(bytes) => {
                let etag = format!("\"{}\"", digest(&bytes));
                Answer::tagged(request, &etag, bytes)
            }
            Err(_) => Answer::status(404),
        }
    })
}
