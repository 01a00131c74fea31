//! A chart repository as most are served: files in a folder, packed and listed by the real helm ([`shelf`]), over HTTP or TLS,
//! with or without a password. It counts what it is asked, and breaks what it is told to.

pub mod shelf;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::{Digest as _, Sha256};

use crate::control_plane::pki::Pair;

/// Nobody is slower on loopback.
const PATIENCE: Duration = Duration::from_secs(20);

/// How it is served.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// User and password that every request needs.
    pub basic: Option<(&'static str, String)>,
    /// TLS with this certificate.
    pub tls: Option<Pair>,
}

/// What goes wrong with a path.
#[derive(Clone, Debug)]
pub enum Fault {
    /// `302 Found` to there.
    Redirect(String),
    /// Half of it, and then nothing.
    Truncate,
    /// Something else in its place.
    Other(Vec<u8>),
    /// Bytes without an end.
    Endless,
    /// Another status.
    Status(&'static str),
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its path.
    pub path: String,
    /// Whether it carried a password.
    pub authorized: bool,
    /// What it was answered.
    pub status: String,
}

/// A running repository; it ends with the process.
pub struct Charts {
    url: String,
    state: Arc<State>,
}

struct State {
    folder: PathBuf,
    basic: Option<String>,
    tls: Option<Arc<ServerConfig>>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    faults: BTreeMap<String, Fault>,
    seen: Vec<Seen>,
}

impl Charts {
    /// Serves the files of a folder on a free port.
    ///
    /// # Errors
    /// No free port, or a certificate that is none.
    pub fn serve(folder: impl Into<PathBuf>, options: &Options) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port for charts")?;
        let scheme = if options.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        let basic = options.basic.as_ref().map(|(user, password)| {
            let text = format!("{user}:{password}");
            format!(
                "Basic {}",
                base64::engine::general_purpose::STANDARD.encode(text)
            )
        });
        let state = Arc::new(State {
            folder: folder.into(),
            basic,
            tls: options.tls.as_ref().map(tls).transpose()?,
            inner: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || state.connection(stream));
            }
        });
        Ok(Self { url, state })
    }

    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `127.0.0.1:PORT`
    #[must_use]
    pub fn host(&self) -> &str {
        self.url.split("//").nth(1).unwrap_or_default()
    }

    /// Breaks a path from now on.
    pub fn fault(&self, path: &str, fault: Fault) {
        self.state.lock().faults.insert(path.to_owned(), fault);
    }

    /// The requests since the last time that somebody asked for them.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state.lock().seen)
    }
}

fn tls(pair: &Pair) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let certificates = CertificateDer::pem_slice_iter(pair.certificate.as_bytes());
    let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    Ok(Arc::new(config))
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self, stream: TcpStream) {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let Ok(raw) = stream.try_clone() else { return };
        // A client that goes away is no concern of ours.
        let _ = match &self.tls {
            None => self.answer(stream),
            Some(config) => match ServerConnection::new(Arc::clone(config)) {
                Ok(connection) => self.answer(StreamOwned::new(connection, stream)),
                Err(error) => Err(io::Error::other(error)),
            },
        };
        let _ = raw.shutdown(Shutdown::Both);
    }

    /// One request a connection.
    fn answer(&self, stream: impl Read + Write) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut first = String::new();
        stream.read_line(&mut first)?;
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut authorization, mut known) = (None, None);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
                break;
            }
            let (name, value) = line.trim_end().split_once(": ").unwrap_or_default();
            match name.to_ascii_lowercase().as_str() {
                "authorization" => authorization = Some(value.to_owned()),
                "if-none-match" => known = Some(value.to_owned()),
                _ => {}
            }
        }
        let may = self.basic.is_none() || authorization == self.basic;
        let fault = self.lock().faults.get(&path).cloned();
        let (status, headers, body) = match &fault {
            _ if !may => (
                "401 Unauthorized",
                "WWW-Authenticate: Basic realm=\"charts\"\r\n".to_owned(),
                Vec::new(),
            ),
            Some(Fault::Redirect(to)) => ("302 Found", format!("Location: {to}\r\n"), Vec::new()),
            Some(Fault::Status(status)) => (*status, String::new(), Vec::new()),
            Some(Fault::Other(bytes)) => ("200 OK", String::new(), bytes.clone()),
            Some(Fault::Truncate | Fault::Endless) | None => self.file(&path, known.as_deref()),
        };
        self.lock().seen.push(Seen {
            path,
            authorized: authorization.is_some(),
            status: status.to_owned(),
        });
        let stream = stream.get_mut();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nConnection: close\r\n{headers}"
        )?;
        if matches!(fault, Some(Fault::Endless)) && may {
            write!(stream, "\r\n")?;
            let zeros = vec![b'\n'; 1 << 20];
            loop {
                stream.write_all(&zeros)?;
            }
        }
        write!(stream, "Content-Length: {}\r\n\r\n", body.len())?;
        let sent = match fault {
            Some(Fault::Truncate) if may => body.len() / 2,
            _ => body.len(),
        };
        stream.write_all(body.get(..sent).unwrap_or_default())?;
        stream.flush()
    }

    fn file(&self, path: &str, known: Option<&str>) -> (&'static str, String, Vec<u8>) {
        let path = path.split('?').next().unwrap_or_default();
        let Ok(bytes) = fs::read(self.folder.join(path.trim_start_matches('/'))) else {
            return ("404 Not Found", String::new(), Vec::new());
        };
        let hex: String = Sha256::digest(&bytes)
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let etag = format!("\"{hex}\"");
        let header = format!("ETag: {etag}\r\n");
        if known == Some(&etag) {
            return ("304 Not Modified", header, Vec::new());
        }
        ("200 OK", header, bytes)
    }
}
