//! A server of S3 over a folder: s3s-fs. It checks signatures; it knows no conditions
//! (`If-None-Match`), which [`super::http`] can play.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, anyhow};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;

use super::running::Running;
use crate::guard::Folder;

/// Who may read.
pub const KEY: (&str, &str) = ("AKIDEXAMPLE", "wJalrXUtnFEMI-secret");

/// A running server; dropped, it is gone.
pub struct Server {
    running: Running,
    folder: Folder,
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1; `signed` says whether it wants signatures of [`KEY`].
    ///
    /// # Errors
    /// Where no port is free.
    pub fn start(signed: bool) -> Result<Self> {
        let folder = Folder::new("kubectl-addons-s3-")?;
        let files = FileSystem::new(folder.path()).map_err(|error| anyhow!("s3s-fs: {error:?}"))?;
        let mut builder = S3ServiceBuilder::new(files);
        if signed {
            builder.set_auth(SimpleAuth::from_single(KEY.0, KEY.1));
        }
        let service = builder.build();
        let requests: Arc<AtomicUsize> = Arc::default();
        let counter = Arc::clone(&requests);
        let running = Running::start("s3", move |stream| {
            let (service, counter) = (service.clone(), Arc::clone(&counter));
            async move {
                let counted = service_fn(|request: Request<Incoming>| {
                    counter.fetch_add(1, Ordering::SeqCst);
                    service.call(request.map(s3s::Body::from))
                });
                // An error is a connection that the client cut.
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), counted)
                    .await;
            }
        })?;
        Ok(Self {
            running,
            folder,
            requests,
        })
    }

    /// Puts an object.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put(&self, bucket: &str, key: &str, bytes: &[u8]) -> Result<()> {
        let path: &Path = self.folder.path();
        let path = path.join(bucket).join(key);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(std::fs::write(path, bytes)?)
    }

    /// Where it is.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.running.address)
    }

    /// How many requests came.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}
