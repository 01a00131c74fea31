//! Advice if a source cannot be read, or helm cannot be run.

use addons_helm::BinaryError;
use addons_operation::OperationError;
use addons_operation::distribution::DistributionError;
use addons_operation::text::shell_word;
use addons_sources::SourceError;
use addons_sources::chart::RepositoryChartError;
use addons_sources::credentials::CredentialsError;
use addons_sources::dependency::DependencyError;
use addons_sources::git::GitProblem;
use addons_sources::image::ImageFetchError;
use addons_sources::location::CatalogueError;
use addons_sources::reach::OwnPlace;
use addons_sources::registry::RegistryError;
use addons_sources::registry::chart::RegistryChartError;
use addons_sources::url::UrlError;
use common::api::names::ANNOTATION_ALLOWED_HOSTS;
use common::catalogue::merged;

use super::{fix, look};
use crate::words::typed;

/// Advice for an operation that could not read its sources or run helm.
pub(super) fn of_operation(error: &OperationError) -> Vec<String> {
    match error {
        OperationError::Source(error)
        | OperationError::Dependency(DependencyError::Source { source: error, .. }) => {
            of_source(error)
        }
        OperationError::Distribution(error) => of_distribution(error),
        OperationError::Index(error) => of_catalogue(error),
        OperationError::Url(error) => of_url(error),
        OperationError::Credentials(error) => of_credentials(error),
        OperationError::HelmBinary(error) => of_binary(error),
        _ => Vec::new(),
    }
}

pub(super) fn of_source(error: &SourceError) -> Vec<String> {
    match error {
        SourceError::Url(error) | SourceError::Chart(RepositoryChartError::Fetch(error)) => {
            of_url(error)
        }
        SourceError::Git(error) => match &error.problem {
            GitProblem::Offline { .. } => online(),
            GitProblem::Closed { place, .. } => open(place.as_deref()),
            GitProblem::Credentials(error) => of_credentials(error),
            GitProblem::NoProgram { program: "ssh" } => {
                fix("install OpenSSH's client, or use https:// as the remote")
            }
            GitProblem::NoProgram { .. } | GitProblem::TooOld { .. } => {
                let (major, minor) = addons_sources::git::OLDEST;
                fix(&format!("install git {major}.{minor} or later"))
            }
            _ => Vec::new(),
        },
        SourceError::Image(ImageFetchError::Registry(error))
        | SourceError::RegistryChart(RegistryChartError::Registry(error)) => {
            if error.is_without_tls() {
                return fix("set plainHTTP: true in the source, or serve the registry with TLS");
            }
            of_registry(error)
        }
        _ => Vec::new(),
    }
}

pub(super) fn of_catalogue(error: &CatalogueError) -> Vec<String> {
    match error {
        CatalogueError::Url(error) => of_url(error),
        _ => Vec::new(),
    }
}

pub(super) fn of_url(error: &UrlError) -> Vec<String> {
    match error {
        UrlError::Offline { .. } => online(),
        UrlError::Local { place, .. } => open(place.as_deref()),
        // A typed location is accessible without a flag.
        UrlError::Denied {
            location,
            identity: None,
            ..
        } => match OwnPlace::parse(location) {
            Ok(Some(OwnPlace::Bucket(bucket))) if !typed::names(&bucket) => open(Some(&bucket)),
            _ => Vec::new(),
        },
        UrlError::Secret { source, .. } => of_credentials(source),
        UrlError::Image(error) => match &**error {
            ImageFetchError::Registry(error) => of_registry(error),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

pub(super) fn of_registry(error: &RegistryError) -> Vec<String> {
    match error {
        RegistryError::Offline { .. } => online(),
        RegistryError::Unauthorized { accept, .. } => fix(accept),
        RegistryError::NotFound {
            repository: Some(repository),
            ..
        } => look(&format!("skopeo list-tags docker://{repository}")),
        // A registry that is given by name alone has no `plainHTTP` field.
        error if error.is_without_tls() => fix(
            "serve the registry with TLS; by its name alone, only a registry on this machine (localhost, 127.0.0.1) is accessed over HTTP",
        ),
        RegistryError::Credentials(error) => of_credentials(error),
        _ => Vec::new(),
    }
}

pub(super) fn of_credentials(error: &CredentialsError) -> Vec<String> {
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

pub(super) fn of_binary(error: &BinaryError) -> Vec<String> {
    match error {
        BinaryError::Missing | BinaryError::TooOld { .. } => {
            let mut lines = look("https://helm.sh/docs/intro/install");
            lines.extend(fix("--helm-bin FILE, or KUBECTL_ADDONS_HELM=FILE"));
            lines
        }
        BinaryError::NoFile { .. } | BinaryError::NotHelm { .. } => {
            fix("--helm-bin FILE, or KUBECTL_ADDONS_HELM=FILE")
        }
    }
}

/// Advice for files, keys or accounts that the user can open to documents of others.
fn open(place: Option<&str>) -> Vec<String> {
    let Some(place) = place else {
        return Vec::new();
    };
    let flag = format!("--own-access={place}");
    let accept = typed::with(std::slice::from_ref(&flag)).unwrap_or_else(|| shell_word(&flag));
    vec![format!("accept: {accept}")]
}

fn online() -> Vec<String> {
    fix("run this once without --offline")
}

/// Advice for a catalogue by reference whose file cannot be read. A copy follows its source, which is in another cluster.
pub fn of_unread(catalogue: &str) -> Vec<String> {
    match merged::source_of_reference(catalogue) {
        None => fix(&format!("kubectl addons catalogue sync {catalogue}")),
        Some(source) => fix(&format!(
            "in the cluster of catalogue {source}: kubectl addons catalogue sync {source}, then kubectl addons catalogue push"
        )),
    }
}

/// Advice for catalogues that cannot be updated or pushed to other clusters.
pub fn of_distribution(error: &DistributionError) -> Vec<String> {
    match error {
        DistributionError::TooLarge { .. } => {
            let mut lines = fix(
                "name manifests on a server with source.url, source.git or source.docker instead of source.inline",
            );
            lines.extend(fix(
                "kubectl addons catalogue add https://HOST/FILE --by-reference",
            ));
            lines
        }
        DistributionError::Unread { catalogue, .. } => of_unread(catalogue),
        DistributionError::HeldTwice { .. } => look("kubectl addons catalogue view --core"),
        DistributionError::NoSources => fix("kubectl addons catalogue add FILE"),
        DistributionError::NoTargets { .. } => look("kubectl get namespaces --show-labels"),
        DistributionError::NoFrom { name } => fix(&format!(
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
            of_source(&error.into()),
            [
                "look:   kubectl get secret token -n addons -o jsonpath='{.metadata.annotations}'",
                "accept: kubectl annotate secret token -n addons --overwrite kubectl-addons.dev/allowed-hosts=a.example",
            ]
        );
    }

    #[test]
    fn tags_are_listed_where_one_of_them_may_be_meant() {
        let lost = |repository| RegistryError::NotFound {
            location: "h/a:1".to_owned(),
            detail: String::new(),
            repository,
        };
        let look = ["look:   skopeo list-tags docker://h/a"];
        assert_eq!(of_registry(&lost(Some("h/a".to_owned()))), look);
        assert!(of_registry(&lost(None)).is_empty());
    }

    #[test]
    fn a_copy_is_mended_where_its_source_is() {
        let [own] = of_unread("platform").try_into().unwrap();
        assert_eq!(own, "fix:    kubectl addons catalogue sync platform");
        let [copy]: [String; 1] = of_unread("merged-ref-platform").try_into().unwrap();
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
            SourceError::Image(ImageFetchError::Registry(RegistryError::Offline {
                location: location(),
            })),
        ] {
            assert_eq!(
                of_source(&error),
                ["fix:    run this once without --offline"]
            );
        }
    }

    #[test]
    fn a_program_that_is_missing_is_installed() {
        let of = |problem| {
            of_source(&SourceError::Git(addons_sources::git::GitError {
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
