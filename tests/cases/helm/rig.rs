//! Charts in memory, helm, and programs that are none.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use addons_helm::template::{TIMEOUT, TemplateRequest, template};
use addons_helm::{Helm, HelmError};
use addons_render::package::{Package, PackagedFile};
use addons_tests::control_plane::binaries;
use addons_tests::guard::Folder;
use addons_tests::servers::charts::shelf::Shelf;
use anyhow::Result;
use common::values::mask::SecretMask;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

static EMPTY: Value = Value::Null;

pub(crate) struct Rig {
    pub(crate) helm: Helm,
    folder: Folder,
    scripts: AtomicUsize,
}

impl Rig {
    pub(crate) async fn new() -> Result<Self> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Ok(Self {
            helm: Helm::find(Some(&binaries::helm()?), None).await?,
            folder: Folder::new("kubectl-addons-rendering-")?,
            scripts: AtomicUsize::new(0),
        })
    }

    pub(crate) async fn template<'a>(
        &self,
        package: &Package,
        change: impl FnOnce(&mut TemplateRequest<'a>),
    ) -> Result<String, HelmError> {
        let mut request = request(&EMPTY);
        change(&mut request);
        template(&self.helm, package, &request).await
    }

    /// The chart as helm packs it.
    pub(crate) fn archive(&self, name: &str, files: &[(&str, &str)]) -> Result<Package> {
        let bytes = fs::read(Shelf::new()?.chart(name, "1.0.0", files)?)?;
        Ok(Package::from_file(format!("{name}-1.0.0.tgz"), bytes))
    }

    /// The chart as an archive, also where helm would not pack it.
    pub(crate) fn archive_of(&self, name: &str, files: &[(&str, &str)]) -> Result<Package> {
        let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for file in folder(name, files).files() {
            let mut header = tar::Header::new_gnu();
            header.set_size(file.bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(
                &mut header,
                format!("{name}/{}", file.path),
                file.bytes.as_slice(),
            )?;
        }
        Ok(Package::from_file(
            format!("{name}-1.0.0.tgz"),
            tar.into_inner()?.finish()?,
        ))
    }

    /// A program in the place of helm.
    pub(crate) fn script(&self, text: &str) -> Result<Helm> {
        let number = self.scripts.fetch_add(1, Ordering::Relaxed);
        let program = self.folder.path().join(format!("helm-{number}"));
        fs::write(&program, format!("#!/bin/sh\n{text}\n"))?;
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
        Ok(Helm {
            program,
            version: "v4.3.1".to_owned(),
            memory: None,
        })
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.folder.path()
    }
}

/// What hides nothing.
pub(crate) static NOTHING: LazyLock<SecretMask> = LazyLock::new(SecretMask::default);

pub(crate) fn request(values: &Value) -> TemplateRequest<'_> {
    TemplateRequest {
        release_name: "rel",
        namespace: "space",
        values,
        whole_numbers: &[],
        mask: &NOTHING,
        kube_version: "v1.36.3",
        api_versions: &[],
        is_upgrade: false,
        include_crds: true,
        timeout: TIMEOUT,
        lookup: None,
    }
}

/// The chart NAME 1.0.0 as a folder.
#[expect(
    clippy::expect_used,
    reason = "a test without what it is made of has failed"
)]
pub(crate) fn folder(name: &str, files: &[(&str, &str)]) -> Package {
    let about = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    let has_about = files.iter().any(|(path, _)| *path == "Chart.yaml");
    let own = [("Chart.yaml", about.as_str())];
    let own = own.iter().filter(|_| !has_about);
    let files = own.chain(files).map(|(path, text)| PackagedFile {
        path: (*path).to_owned(),
        bytes: text.as_bytes().to_vec(),
    });
    Package::from_folder(files.collect()).expect("files of a chart")
}
