//! Flags of `verify`. Field docs are the help texts.
#![expect(missing_docs, reason = "a flattened group has no help text of its own")]

use std::path::PathBuf;

use clap::Args;

use super::Listing;
use super::name::Candidates;
use super::operation::{SiteArgs, SourceArgs};
use super::reading::FitArgs;

/// Flags of `verify`.
#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Add-ons from catalogues, or oci:// references in a registry
    #[arg(required = true, value_name = "NAME[@VERSION]|oci://REF", value_parser = super::name::addon, add = Candidates::Addons)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub signer: SignerArgs,
    /// Access the registry of oci://REF over HTTP without TLS
    #[arg(long)]
    pub plain_http: bool,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub site: SiteArgs,
    #[command(flatten)]
    pub fit: FitArgs,
    #[command(flatten)]
    pub output: Listing,
}

/// Whose signatures count; default: what the catalogue says.
#[derive(Args, Debug)]
pub struct SignerArgs {
    /// Public key of the signer in PEM format, such as cosign.pub; default: spec.signature of the catalogue
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, conflicts_with_all = ["certificate_identity", "keyring"])]
    pub key: Option<PathBuf>,
    /// Identity in the certificate of the signer: an e-mail address, or the URL of a workflow
    #[arg(long, value_name = "NAME", requires_all = ["certificate_oidc_issuer", "trusted_root"], conflicts_with = "keyring")]
    pub certificate_identity: Option<String>,
    /// OIDC issuer in that certificate
    #[arg(long, value_name = "URL", requires = "certificate_identity")]
    pub certificate_oidc_issuer: Option<String>,
    /// Trusted root of the Sigstore instance that issued the certificate (trusted_root.json)
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "certificate_identity")]
    pub trusted_root: Option<PathBuf>,
    /// Public keys for the provenance files of charts, in the format of gpg --export; helm verifies the files
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub keyring: Option<PathBuf>,
}
