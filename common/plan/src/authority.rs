//! The names of the certificate authority that an entry asks for (`needsPKI`).

/// The namespace of the certificate authorities, for entries of any namespace.
pub const NAMESPACE: &str = "kube-system";

/// Returns the name of the Secret with the certificate authority of an add-on. Its Issuer has the name of the add-on.
#[must_use]
pub fn secret_name(addon: &str) -> String {
    format!("{addon}-ca")
}
