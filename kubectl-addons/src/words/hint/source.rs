//! Advice if a source cannot be read, or helm cannot be run.

use addons_helm::BinaryError;
use addons_operation::OperationError;
use addons_operation::error::CatalogueFileError;
use addons_operation::text::shell_word;
use addons_sources::SourceError;
use addons_sources::chart::RepositoryChartError;
use addons_sources::credentials::CredentialsError;
use addons_sources::dependency::DependencyError;
use addons_sources::git::GitProblem;
use addons_sources::image::ImageFetchError;
use addons_sources::location::CatalogueError;
use addons_sources::reach::OwnPlace;
use addons_sources::registry::RegistryAccessError;
use addons_sources::registry::chart::RegistryChartError;
use addons_sources::signature::signing::SigningKeyError;
use addons_sources::url::UrlError;
use common::api::names::ANNOTATION_ALLOWED_HOSTS;
use common::catalogue::merged;

use super::{fix_line, look_line};
use crate::contained::NotStorable;
use crate::words::typed;

/// Advice for an operation that could not read its sources or run helm.
pub(super) fn source_operation_hints(error: &OperationError) -> Vec<String> {
    match error {
        OperationError::Source(error)
        | OperationError::Dependency(DependencyError::Source { source: error, .. }) => {
            source_hints(error)
        }
        OperationError::CatalogueFile(error) => catalogue_file_hints(error),
        OperationError::Index(error) => catalogue_hints(error),
        OperationError::Url(error) => url_hints(error),
        OperationError::Credentials(error) => credentials_hints(error),
        OperationError::HelmBinary(error) => helm_hints(error),
        _ => Vec::new(),
    }
}

pub(super) fn source_hints(error: &SourceError) -> Vec<String> {
    match error {
        SourceError::Url(error) | SourceError::Chart(RepositoryChartError::Fetch(error)) => {
            url_hints(error)
        }
        SourceError::Git(error) => match &error.problem {
            GitProblem::Offline { .. } => online_hints(),
            GitProblem::Closed { place, .. } => own_access_hints(place.as_deref()),
            GitProblem::Credentials(error) => credentials_hints(error),
            GitProblem::NoProgram { program: "ssh" } => {
                fix_line("install OpenSSH's client, or use https:// as the remote")
            }
            GitProblem::NoProgram { .. } | GitProblem::TooOld { .. } => {
                let (major, minor) = addons_sources::git::OLDEST;
                fix_line(&format!("install git {major}.{minor} or later"))
            }
            _ => Vec::new(),
        },
        SourceError::Image(ImageFetchError::Registry(error))
        | SourceError::RegistryChart(RegistryChartError::Registry(error)) => {
            if error.is_without_tls() {
                return fix_line(
                    "set plainHTTP: true in the source, or serve the registry with TLS",
                );
            }
            registry_hints(error)
        }
        _ => Vec::new(),
    }
}

pub(super) fn catalogue_hints(error: &CatalogueError) -> Vec<String> {
    match error {
        CatalogueError::Url(error) => url_hints(error),
        _ => Vec::new(),
    }
}

/// Advice for a catalogue file that a cluster cannot store.
pub fn storable_hints(error: &NotStorable) -> Vec<String> {
    match error {
        NotStorable::OfServer { .. } => fix_line("name sources that are on a server as well"),
        NotStorable::Local { file, .. } | NotStorable::TooLarge { file, .. } => {
            let file = shell_word(file);
            vec![
                format!("fix:    kubectl addons catalogue publish oci://HOST/catalogue {file}"),
                format!("fix:    kubectl addons install NAME --channel {file}, without adding it"),
            ]
        }
    }
}

/// Advice for a file that is not a key to sign with.
pub(super) fn signing_key_hints(error: &SigningKeyError) -> Vec<String> {
    match error {
        SigningKeyError::Encrypted => fix_line(
            "leave out --sign-key, and sign what was pushed: cosign sign --key FILE HOST/NAME@sha256:DIGEST",
        ),
        SigningKeyError::Format => {
            fix_line("openssl pkcs8 -topk8 -nocrypt -in FILE, if it is a key in another format")
        }
        SigningKeyError::Kind { .. } => fix_line(
            "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out FILE, for a new key",
        ),
    }
}

pub(super) fn url_hints(error: &UrlError) -> Vec<String> {
    match error {
        UrlError::Offline { .. } => online_hints(),
        UrlError::Local { place, .. } => own_access_hints(place.as_deref()),
        // A typed location is accessible without a flag.
        UrlError::Denied {
            location,
            identity: None,
            ..
        } => match OwnPlace::parse(location) {
            Ok(Some(OwnPlace::Bucket(bucket))) if !typed::contains_text(&bucket) => {
                own_access_hints(Some(&bucket))
            }
            _ => Vec::new(),
        },
        UrlError::Secret { source, .. } => credentials_hints(source),
        UrlError::Image(error) => match &**error {
            ImageFetchError::Registry(error) => registry_hints(error),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

pub(super) fn registry_hints(error: &RegistryAccessError) -> Vec<String> {
    match error {
        RegistryAccessError::Offline { .. } => online_hints(),
        RegistryAccessError::Unauthorized { accept, .. } => fix_line(accept),
        RegistryAccessError::NotFound {
            repository: Some(repository),
            ..
        } => look_line(&format!("skopeo list-tags docker://{repository}")),
        // A registry that is given by name alone has no `plainHTTP` field.
        error if error.is_without_tls() => fix_line(
            "serve the registry with TLS; by its name alone, only a registry on this machine (localhost, 127.0.0.1) is accessed over HTTP",
        ),
        RegistryAccessError::Credentials(error) => credentials_hints(error),
        _ => Vec::new(),
    }
}

pub(super) fn credentials_hints(error: &CredentialsError) -> Vec<String> {
    match error {
        CredentialsError::Host {
            secret_name,
            namespace,
            host,
            ..
        } => vec![
            format!(
                "look:   kubectl get secret {secret_name} -n {namespace} -o jsonpath='{{.metadata.annotations}}'"
            ),
            format!(
                "accept: kubectl annotate secret {secret_name} -n {namespace} --overwrite {ANNOTATION_ALLOWED_HOSTS}={host}"
            ),
        ],
        _ => Vec::new(),
    }
}

pub(super) fn helm_hints(error: &BinaryError) -> Vec<String> {
    match error {
        BinaryError::Missing | BinaryError::TooOld { .. } => {
            let mut lines = look_line("https://helm.sh/docs/intro/install");
            lines.extend(fix_line("--helm-bin FILE, or KUBECTL_ADDONS_HELM=FILE"));
            lines
        }
        BinaryError::NoFile { .. } | BinaryError::NotHelm { .. } => {
            fix_line("--helm-bin FILE, or KUBECTL_ADDONS_HELM=FILE")
        }
    }
}

/// Advice for files, keys or accounts that the user can open to documents of others.
fn own_access_hints(place: Option<&str>) -> Vec<String> {
    let Some(place) = place else {
        return Vec::new();
    };
    let flag = format!("--own-access={place}");
    let accept =
        typed::with_flags(std::slice::from_ref(&flag)).unwrap_or_else(|| shell_word(&flag));
    vec![format!("accept: {accept}")]
}

fn online_hints() -> Vec<String> {
    fix_line("run this once without --offline")
}

/// Advice for a catalogue by reference whose file cannot be read. A copy follows its source, which is in another cluster.
pub fn unread_catalogue_hints(catalogue: &str) -> Vec<String> {
    match merged::source_of_reference(catalogue) {
        None => fix_line(&format!("kubectl addons catalogue sync {catalogue}")),
        Some(source) => fix_line(&format!(
            "in the cluster of catalogue {source}: kubectl addons catalogue sync {source}, then kubectl addons catalogue push"
        )),
    }
}

/// Advice for catalogues whose content cannot be read or stored.
fn catalogue_file_hints(error: &CatalogueFileError) -> Vec<String> {
    match error {
        CatalogueFileError::TooLarge { .. } => {
            let mut lines = fix_line(
                "name manifests on a server with source.url, source.git or source.docker instead of source.inline",
            );
            lines.extend(fix_line(
                "kubectl addons catalogue add https://HOST/FILE --by-reference",
            ));
            lines
        }
        CatalogueFileError::Unread { catalogue, .. } => unread_catalogue_hints(catalogue),
        CatalogueFileError::NoFrom { name } => fix_line(&format!(
            "kubectl addons catalogue add https://HOST/FILE --name {name}"
        )),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_for_other_hosts_is_looked_at_and_annotated() {
        let error = UrlError::Secret {
            location: "https://a.example/x.yaml".to_owned(),
            source: Box::new(CredentialsError::Host {
                secret: "addons/token".to_owned(),
                secret_name: "token".to_owned(),
                namespace: "addons".to_owned(),
                host: "a.example".to_owned(),
                why: "it has no annotation".to_owned(),
            }),
        };
        assert_eq!(
            source_hints(&error.into()),
            [
                "look:   kubectl get secret token -n addons -o jsonpath='{.metadata.annotations}'",
                "accept: kubectl annotate secret token -n addons --overwrite kubectl-addons.dev/allowed-hosts=a.example",
            ]
        );
    }

    #[test]
    fn tags_are_listed_where_one_of_them_may_be_meant() {
        let lost = |repository| RegistryAccessError::NotFound {
            location: "h/a:1".to_owned(),
            detail: String::new(),
            repository,
        };
        let look = ["look:   skopeo list-tags docker://h/a"];
        assert_eq!(registry_hints(&lost(Some("h/a".to_owned()))), look);
        assert!(registry_hints(&lost(None)).is_empty());
    }

    #[test]
    fn a_copy_is_mended_where_its_source_is() {
        let [own] = unread_catalogue_hints("platform").try_into().unwrap();
        assert_eq!(own, "fix:    kubectl addons catalogue sync platform");
        let [copy]: [String; 1] = unread_catalogue_hints("merged-ref-platform")
            .try_into()
            .unwrap();
        assert!(
            copy.contains("in the cluster of catalogue platform:"),
            "{copy}"
        );
        assert!(copy.ends_with("kubectl addons catalogue push"), "{copy}");
    }

    #[test]
    fn what_is_not_in_the_cache_needs_one_run_with_servers() {
        let location = || "https://a.example/x".to_owned();
        let what = location();
        let git = addons_sources::git::GitError {
            remote: location(),
            problem: GitProblem::Offline { what },
        };
        for error in [
            SourceError::Url(UrlError::Offline {
                location: location(),
            }),
            SourceError::Git(git),
            SourceError::Image(ImageFetchError::Registry(RegistryAccessError::Offline {
                location: location(),
            })),
        ] {
            assert_eq!(
                source_hints(&error),
                ["fix:    run this once without --offline"]
            );
        }
    }

    #[test]
    fn a_program_that_is_missing_is_installed() {
        let of = |problem| {
            source_hints(&SourceError::Git(addons_sources::git::GitError {
                remote: "ssh://a.example/x".to_owned(),
                problem,
            }))
        };
        let version = "2.25.1".to_owned();
        for problem in [
            GitProblem::NoProgram { program: "git" },
            GitProblem::TooOld { version },
        ] {
            assert_eq!(of(problem), ["fix:    install git 2.31 or later"]);
        }
        let ssh = of(GitProblem::NoProgram { program: "ssh" });
        let fix = "fix:    install OpenSSH's client, or use https:// as the remote";
        assert_eq!(ssh, [fix]);
    }
}
