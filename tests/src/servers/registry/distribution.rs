//! The registry of distribution, the most used one: a program that is built for it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use super::{Door, tokens};
use crate::control_plane::binaries;
use crate::control_plane::pki::Pair;
use crate::guard::{self, Folder, Guarded};

/// The user and the password of the tests: `htpasswd -nbB -C 4`.
const HTPASSWD: &str = "user:$2a$04$7noj6n1XmUb5NuhtFHyAyuxzoK4q5oBfF/gkPn7OBBIPonVe7unwa\n";

/// A running program; dropped, it is gone.
pub(super) struct Server {
    _process: Guarded,
    _folder: Folder,
    host: String,
}

impl Server {
    /// Starts one; with a pair it speaks TLS.
    pub(super) async fn start(door: &Door<'_>, tls: Option<&Pair>) -> Result<Self> {
        let program = tokio::task::spawn_blocking(binaries::registry).await??;
        let folder = Folder::new("addons-registry-")?;
        let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let mut config = json!({
            "version": 0.1,
            "log": {"level": "info", "accesslog": {"disabled": true}},
            "storage": {"filesystem": {"rootdirectory": file("storage")}},
            "http": {"addr": "127.0.0.1:0", "secret": "of uploads"},
            "health": {"storagedriver": {"enabled": false}},
        });
        match door {
            Door::Open => {}
            Door::Password | Door::Tls => {
                fs::write(file("htpasswd"), HTPASSWD)?;
                config["auth"] = json!({"htpasswd": {"realm": "tests", "path": file("htpasswd")}});
            }
            Door::Tokens(tokens) => {
                fs::write(file("jwks.json"), tokens.keys())?;
                config["auth"] = json!({"token": {
                    "realm": tokens.realm(), "service": tokens::SERVICE, "issuer": tokens::ISSUER,
                    "jwks": file("jwks.json"),
                }});
            }
        }
        if let Some(pair) = tls {
            pair.write(folder.path(), "tls")?;
            config["http"]["tls"] = json!({"certificate": file("tls.crt"), "key": file("tls.key")});
        }
        // JSON is YAML.
        fs::write(file("config.yaml"), config.to_string())?;
        let mut command = guard::command(&program);
        command
            .args(["serve", &file("config.yaml")])
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = guard::spawn(&mut command, b"")?;
        let stderr = process.stderr().context("no stderr")?;
        let host = tokio::task::spawn_blocking(move || address(stderr)).await??;
        Ok(Self {
            _process: process,
            _folder: folder,
            host,
        })
    }

    /// `127.0.0.1:PORT`.
    pub(super) fn host(&self) -> String {
        self.host.clone()
    }
}

/// Where it listens, from its log, which is then read to its end.
fn address(log: std::process::ChildStderr) -> Result<String> {
    let mut lines = BufReader::new(log).lines();
    let mut said = Vec::new();
    for line in lines.by_ref() {
        let line = line?;
        if let Some((_, rest)) = line.split_once("listening on ") {
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'));
            let address = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
            let address = address.to_owned();
            std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
            return Ok(address);
        }
        said.push(line);
    }
    bail!("the registry ended:\n{}", said.join("\n"))
}
