//! Records that only a person can follow with a command: their index is a file on another machine, a kustomization, or in an object store
//! that only an account of that person opens (semantics 20.2).

use std::io::ErrorKind;

use addons_sources::location::{CatalogueError, SingleAddonError};
use addons_sources::url::UrlError;
use common::api::names::SECRET_TYPE_OBJECT_STORE;

use crate::error::OperationError;

/// Whether an installation could not be resolved only because its index cannot be read here, but can be read elsewhere.
#[must_use]
pub fn is_managed_elsewhere(error: &OperationError) -> bool {
    let OperationError::NoIndex { error, .. } = error.root() else {
        return false;
    };
    if let OperationError::Index(CatalogueError::SingleAddon {
        source: SingleAddonError::Kustomization,
        ..
    }) = error.root()
    {
        return true;
    }
    let (OperationError::Index(CatalogueError::Url(error)) | OperationError::Url(error)) =
        error.root()
    else {
        return false;
    };
    match error {
        UrlError::File { source, .. } => {
            matches!(
                source.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied
            )
        }
        // The file is not open to the record.
        UrlError::Local { .. } => true,
        UrlError::Denied {
            identity: None,
            wanted,
            ..
        } => *wanted == SECRET_TYPE_OBJECT_STORE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use common::api::names::InstallationName;

    use super::*;

    #[test]
    fn only_what_a_person_can_read_is_elsewhere() {
        let location = || "file:///srv/index.yaml".to_owned();
        let file = |kind: ErrorKind| UrlError::File {
            location: location(),
            source: kind.into(),
        };
        let denied = |identity: Option<&str>, wanted| UrlError::Denied {
            location: "s3://team/index.yaml".to_owned(),
            status: "403 Forbidden".to_owned(),
            identity: identity.map(str::to_owned),
            wanted,
        };
        let store = SECRET_TYPE_OBJECT_STORE;
        for (error, expected) in [
            (file(ErrorKind::NotFound), true),
            (file(ErrorKind::PermissionDenied), true),
            (file(ErrorKind::IsADirectory), false),
            (
                UrlError::Local {
                    location: location(),
                    place: None,
                },
                true,
            ),
            (denied(None, store), true),
            // They are configured, and wrong.
            (denied(Some("Secret shop/aws"), store), false),
            (denied(None, "kubernetes.io/basic-auth"), false),
            (
                UrlError::Offline {
                    location: location(),
                },
                false,
            ),
            (
                UrlError::Status {
                    location: location(),
                    status: "404 Not Found".to_owned(),
                },
                false,
            ),
        ] {
            let text = error.to_string();
            let error = Box::new(OperationError::Index(CatalogueError::Url(error)));
            let of_index = OperationError::NoIndex {
                installation: InstallationName {
                    namespace: "shop".to_owned(),
                    name: "web".to_owned(),
                },
                error,
            };
            assert_eq!(is_managed_elsewhere(&of_index), expected, "{text}");
        }
        let folder = CatalogueError::SingleAddon {
            location: location(),
            source: SingleAddonError::Kustomization,
        };
        let of_folder = OperationError::NoIndex {
            installation: InstallationName {
                namespace: "shop".to_owned(),
                name: "web".to_owned(),
            },
            error: Box::new(OperationError::Index(folder)),
        };
        assert!(is_managed_elsewhere(&of_folder));
        // The index of a command, and the manifest of an entry, are another matter.
        let typed = OperationError::Index(CatalogueError::Url(file(ErrorKind::NotFound)));
        assert!(!is_managed_elsewhere(&typed));
    }
}
