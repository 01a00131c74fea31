//! The bare server in a process of its own: the libraries and settings of the webhook, and nothing but the body sent back.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{self, Bytes, PayloadConfig};
use actix_web::{App, HttpResponse, HttpServer, rt};
use addons_tests::control_plane::pki::Authority;
use addons_tests::guard::{self, Folder, Guarded};
use anyhow::{Context as _, Result, bail};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

/// The argument that makes the benchmark the server: `echo ADDRESS FOLDER`.
pub(crate) const NAME: &str = "echo";
/// As the webhook.
const MAX_BODY: usize = 7 << 20;
const KEEP_ALIVE: Duration = Duration::from_secs(180);
/// How long the start may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// A running server.
pub(crate) struct Echo {
    pub(crate) process: Guarded,
    pub(crate) address: String,
    _folder: Folder,
}

impl Echo {
    pub(crate) async fn start() -> Result<Self> {
        let folder = Folder::new("kubectl-addons-echo-")?;
        let pair = Authority::new("echo")?.serving("echo", &["127.0.0.1"])?;
        pair.write(folder.path(), "tls")?;
        let free = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        let address = free.local_addr()?.to_string();
        drop(free);
        let mut command = guard::command(&std::env::current_exe()?);
        command.args([NAME, &address]).arg(folder.path());
        let process = guard::spawn(&mut command, b"").context("cannot start the echo")?;
        let deadline = Instant::now() + DEADLINE;
        while TcpStream::connect(&address).await.is_err() {
            if Instant::now() > deadline {
                bail!("the echo does not listen on {address}");
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(Self {
            process,
            address,
            _folder: folder,
        })
    }
}

/// Serves until it is killed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [address, folder] = arguments else {
        bail!("usage: {NAME} ADDRESS FOLDER");
    };
    let tls = tls(Path::new(folder))?;
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let server = HttpServer::new(|| {
        App::new()
            .app_data(PayloadConfig::new(MAX_BODY))
            .default_service(web::post().to(echo))
    })
    .workers(workers)
    .tcp_nodelay(true)
    .keep_alive(KEEP_ALIVE)
    .bind_rustls_0_23(address, tls)?;
    rt::System::new().block_on(server.run())?;
    Ok(())
}

async fn echo(body: Bytes) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(body)
}

fn tls(folder: &Path) -> Result<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(&fs::read(folder.join("tls.crt"))?)?;
    let key = PrivateKeyDer::from_pem_slice(&fs::read(folder.join("tls.key"))?)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok(config)
}
