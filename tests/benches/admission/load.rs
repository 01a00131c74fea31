//! Our own client: connections that are kept open, on each of which the next review follows as soon as the last was answered.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use url::Url;

/// What came of one or more rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// How long each answer took.
    pub(crate) times: Vec<Duration>,
    /// How long the rounds were.
    pub(crate) elapsed: Duration,
    /// Answers other than 200.
    pub(crate) refused: usize,
}

impl Answers {
    pub(crate) fn add(&mut self, round: Self) {
        self.times.extend(round.times);
        self.elapsed += round.elapsed;
        self.refused += round.refused;
    }

    /// Answers with 200 in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    /// The time within which such a share of the answers came.
    pub(crate) fn within(&self, share: f64) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        let at = (sorted.len() as f64 * share) as usize;
        let last = sorted.len().saturating_sub(1);
        sorted.get(at.min(last)).copied().unwrap_or_default()
    }
}

/// Sends `body` to `url` for so long, over so many connections. Each is open, and was used once, before the time begins.
pub(crate) async fn round(
    url: &Url,
    body: &[u8],
    connections: usize,
    length: Duration,
) -> Result<Answers> {
    let body = Bytes::copy_from_slice(body);
    let mut opened = Vec::new();
    for _ in 0..connections {
        let mut connection = open(url).await?;
        send(&mut connection, url, &body).await?;
        opened.push(connection);
    }
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for mut connection in opened {
        let (url, body) = (url.clone(), body.clone());
        tasks.spawn(async move {
            let mut answers = Answers::default();
            while begun.elapsed() < length {
                let sent = Instant::now();
                if connection.is_closed() {
                    connection = open(&url).await?;
                }
                match send(&mut connection, &url, &body).await? {
                    true => answers.times.push(sent.elapsed()),
                    false => answers.refused += 1,
                }
            }
            anyhow::Ok(answers)
        });
    }
    let mut all = Answers::default();
    while let Some(answers) = tasks.join_next().await {
        all.add(answers??);
    }
    all.elapsed = begun.elapsed();
    Ok(all)
}

/// Whether the answer is 200.
async fn send(connection: &mut SendRequest<Full<Bytes>>, url: &Url, body: &Bytes) -> Result<bool> {
    let request = http::Request::post(url.path())
        .header("Host", url.authority())
        .header("Content-Type", "application/json")
        .body(Full::new(body.clone()))?;
    connection.ready().await?;
    let answer = connection.send_request(request).await?;
    let status = answer.status();
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    Ok(status == 200)
}

async fn open(url: &Url) -> Result<SendRequest<Full<Bytes>>> {
    let host = url.host_str().context("the URL has no host")?;
    let port = url.port_or_known_default().context("the URL has no port")?;
    let socket = TcpStream::connect((host, port))
        .await
        .with_context(|| format!("cannot connect to {url}"))?;
    socket.set_nodelay(true)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned())?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, socket)
        .await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

/// Whoever answers is measured.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
