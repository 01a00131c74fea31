//! Credentials for a registry, from the Secret of the source or from the local `docker login`, and answers to
//! its challenges.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::entrance;
use common::image::Image;
use docker_credential::{CredentialRetrievalError, DockerCredential};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use url::Url;

use crate::credentials::{Credentials, Proof};
use crate::http::{Http, HttpError, ReceivedResponse, Redirects, bound};
use crate::reach::{Reach, UsedAccount};
use crate::{SourceAccess, host, platform};

use super::challenge::Challenge;
use super::docker_config::{self, same_host};
use super::{RegistryAccessError, answers, api_host, http_error};

/// How long a credential helper of `docker login` may take.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);
/// The token server of Docker Hub.
const DOCKER_HUB_TOKENS: &str = "auth.docker.io";

/// The credentials for one registry. Does not implement Debug, because credentials are never printed.
pub enum RegistryIdentity {
    /// No credentials.
    Anonymous,
    /// A user name and password.
    Password {
        /// The user name, which can be empty.
        username: String,
        /// The password, or a token instead.
        password: String,
    },
    /// A token that is used to request tokens (`identitytoken`).
    Refresh(String),
}

impl RegistryIdentity {
    /// The credentials with this user name and password. If both are empty, there are none.
    pub fn new(username: String, password: String) -> Self {
        if username.is_empty() && password.is_empty() {
            return Self::Anonymous;
        }
        Self::Password { username, password }
    }
}

/// The credentials for requests to one repository.
pub struct Login<'a> {
    /// The registry: `HOST` or `HOST:PORT`.
    host: String,
    repository: String,
    plain: bool,
    pushes: bool,
    /// Another repository that is also read.
    beside: Option<String>,
    credentials: Option<&'a Credentials>,
    reach: &'a Reach,
    /// Whether the user could have opened their `docker login` to the source but did not.
    is_closed: bool,
    /// `None` before the local `docker login` was read.
    identity: Option<RegistryIdentity>,
    /// Why `docker login` has no credentials.
    helper: Option<String>,
}

/// The response of a token server.
#[derive(Deserialize)]
struct TokenResponse {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Login<'a> {
    /// Creates the login. Sends no request; `docker login` is only read when the registry requires
    /// credentials.
    ///
    /// # Errors
    /// The credentials may not be sent to this registry or have the wrong type.
    pub fn new(
        reference: &Image,
        plain: bool,
        access: &SourceAccess<'a>,
    ) -> Result<Self, RegistryAccessError> {
        let host = api_host(reference).to_owned();
        let safe = !plain || host::is_loopback(host::without_port(&host));
        let is_open = access.reach.opens_registry(&reference.host);
        let identity = match access.credentials {
            Some(credentials) => Some(secret_identity(credentials, reference, !plain)?),
            None if is_open && safe => None,
            None => Some(RegistryIdentity::Anonymous),
        };
        Ok(Self {
            host,
            repository: reference.repository.clone(),
            plain,
            pushes: false,
            beside: None,
            credentials: access.credentials,
            reach: access.reach,
            is_closed: access.reach.can_open() && !is_open,
            identity,
            helper: None,
        })
    }

    /// Makes all further tokens allow pushing.
    pub fn request_push(&mut self) {
        self.pushes = true;
    }

    pub fn is_pushing(&self) -> bool {
        self.pushes
    }

    /// Makes further tokens also allow reading another repository; `None` ends this.
    pub fn allow_reading(&mut self, repository: Option<&str>) {
        self.beside = repository.map(str::to_owned);
    }

    /// The header of the first request. It has the password of the Secret, which saves a request if the
    /// registry accepts it directly.
    pub fn initial_header(&self) -> Option<HeaderValue> {
        match self.identity.as_ref()? {
            RegistryIdentity::Password { username, password } => basic_header(username, password),
            RegistryIdentity::Anonymous | RegistryIdentity::Refresh(_) => None,
        }
    }

    /// Returns the header to send instead of `sent` after a refusal, or `None` if there is no other.
    ///
    /// # Errors
    /// The token server returned no token, or the credentials may not be sent to it.
    pub async fn answer_challenge(
        &mut self,
        http: &Http,
        challenge: &Challenge,
        sent: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, RegistryAccessError> {
        self.read_docker_login().await;
        match challenge {
            Challenge::Basic => Ok(self.initial_header().filter(|first| sent != Some(first))),
            Challenge::Bearer { realm, service } => {
                self.token(http, realm, service).await.map(Some)
            }
        }
    }

    /// Returns, for errors, whose credentials were refused and what the user can do.
    pub fn describe_refusal(&self) -> (String, String) {
        let secret = "a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/basic-auth, named in \
                      auth.secretRef of the source";
        match (self.credentials, &self.identity, &self.helper) {
            (Some(credentials), Some(RegistryIdentity::Anonymous), _) => (
                format!(
                    "requests without credentials, and Secret {} holds none",
                    credentials.secret
                ),
                format!(
                    "put the user name and password for {} into the Secret",
                    self.host
                ),
            ),
            (Some(credentials), ..) => (
                format!("the credentials of Secret {}", credentials.secret),
                format!("correct what the Secret holds for {}", self.host),
            ),
            (None, Some(RegistryIdentity::Password { .. } | RegistryIdentity::Refresh(_)), _) => (
                "the credentials of docker login".to_owned(),
                format!("docker login {}", self.host),
            ),
            (None, _, Some(helper)) => (
                format!("requests without credentials, and docker login has none ({helper})"),
                format!("docker login {}, or {secret}", self.host),
            ),
            (None, ..) if self.pushes => (
                "requests without credentials".to_owned(),
                format!("docker login {}", self.host),
            ),
            (None, ..) if self.is_closed => (
                "requests without credentials".to_owned(),
                format!(
                    "--own-access oci://{}, which uses your docker login; or {secret}",
                    self.host
                ),
            ),
            (None, ..) => ("requests without credentials".to_owned(), secret.to_owned()),
        }
    }

    /// Reads `~/.docker/config.json` and runs the credential helpers that it names.
    async fn read_docker_login(&mut self) {
        if self.identity.is_some() {
            return;
        }
        // Credential helpers know Docker Hub by this name.
        let server = if same_host(&self.host, "docker.io") {
            "https://index.docker.io/v1/".to_owned()
        } else {
            self.host.clone()
        };
        let asking = tokio::task::spawn_blocking(move || read_docker_config(&server));
        let (identity, helper) = match tokio::time::timeout(HELPER_TIMEOUT, asking).await {
            Ok(Ok(Ok(DockerCredential::UsernamePassword(username, password)))) => {
                (RegistryIdentity::new(username, password), None)
            }
            Ok(Ok(Ok(DockerCredential::IdentityToken(token)))) => {
                (RegistryIdentity::Refresh(token), None)
            }
            Ok(Ok(Err(error))) => (RegistryIdentity::Anonymous, helper_failure(error)),
            Ok(Err(_)) | Err(_) => (
                RegistryIdentity::Anonymous,
                Some("its credential helper does not answer".to_owned()),
            ),
        };
        if !matches!(identity, RegistryIdentity::Anonymous) {
            self.reach
                .report_use(UsedAccount::Registry(self.host.clone()));
        }
        self.identity = Some(identity);
        self.helper = helper;
    }

    /// Requests a token.
    async fn token(
        &self,
        http: &Http,
        realm: &str,
        service: &str,
    ) -> Result<HeaderValue, RegistryAccessError> {
        let url = self.check_realm(realm)?;
        let name = host::of(&url);
        let no_token = |why: String| RegistryAccessError::Token {
            host: self.host.clone(),
            realm: name.clone(),
            why,
        };
        let received = self.receive(http, url, service).await;
        let received = received.map_err(|source| http_error(&name, source))?;
        let (status, detail) = (received.status, answers::detail(&received.bytes));
        if matches!(status.as_u16(), 401 | 403) {
            let (who, accept) = self.describe_refusal();
            return Err(RegistryAccessError::Unauthorized {
                location: format!("{}/{}", self.host, self.repository),
                who,
                detail,
                accept,
            });
        }
        if !status.is_success() {
            return Err(no_token(format!("{status}{detail}")));
        }
        // The error of serde could contain the token.
        let token: TokenResponse = entrance::from_slice(&received.bytes)
            .map_err(|_| no_token("its answer is not JSON with a token".to_owned()))?;
        let token = token.token.or(token.access_token);
        let header = token.and_then(|token| sensitive_header(&format!("Bearer {token}")));
        header.ok_or_else(|| no_token("its answer holds no token".to_owned()))
    }

    /// Sends the request for a token. Redirects are not followed, because they could send a password or
    /// refresh token to another host.
    async fn receive(
        &self,
        http: &Http,
        mut url: Url,
        service: &str,
    ) -> Result<ReceivedResponse, HttpError> {
        let scopes = self.scopes();
        let request = if let Some(RegistryIdentity::Refresh(token)) = &self.identity {
            let form = url::form_urlencoded::Serializer::new(String::new())
                .append_pair("grant_type", "refresh_token")
                .append_pair("client_id", "kubectl-addons")
                .append_pair("service", service)
                .append_pair("scope", &scopes.join(" "))
                .append_pair("refresh_token", token)
                .finish();
            let form_type = "application/x-www-form-urlencoded";
            let request = http.client.post(url).header(CONTENT_TYPE, form_type);
            request.body(form)
        } else {
            let mut query = url.query_pairs_mut();
            query.append_pair("service", service);
            for scope in &scopes {
                query.append_pair("scope", scope);
            }
            drop(query);
            let request = http.client.get(url);
            match &self.identity {
                Some(RegistryIdentity::Password { username, password }) => {
                    request.basic_auth(username, Some(password))
                }
                _ => request,
            }
        };
        let request = request.build()?;
        let received = http.receive(&request, Redirects::None, None, bound::SMALL);
        received.await
    }

    /// The scopes that a token must allow.
    fn scopes(&self) -> Vec<String> {
        let actions = if self.pushes { "pull,push" } else { "pull" };
        let own = format!("repository:{}:{actions}", self.repository);
        let beside = self.beside.as_ref();
        let beside = beside.map(|beside| format!("repository:{beside}:pull"));
        std::iter::once(own).chain(beside).collect()
    }

    /// Checks that the credentials may be sent to a token server. Those of a Secret may be sent to the
    /// registry itself with its port and to hosts that the Secret names, those of `docker login` to any token
    /// server, as docker does.
    fn check_realm(&self, realm: &str) -> Result<Url, RegistryAccessError> {
        let wrong = |realm: String, why: &str| RegistryAccessError::Realm {
            host: self.host.clone(),
            realm,
            why: why.to_owned(),
        };
        let mut url =
            Url::parse(realm).map_err(|_| wrong(format!("{realm:?}"), "it is not a valid URL"))?;
        let host = host::of(&url);
        // These only fail for URLs that cannot have credentials.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let name = url.host_str().unwrap_or_default();
        let anonymous = matches!(self.identity, Some(RegistryIdentity::Anonymous));
        match url.scheme() {
            "https" => {}
            "http" if self.plain && (anonymous || host::is_loopback(name)) => {}
            _ => return Err(wrong(host, "it does not use TLS")),
        }
        let own = host::without_port(&self.host);
        let is_hub = same_host(own, "docker.io") && name == DOCKER_HUB_TOKENS;
        if let Some(credentials) = self.credentials
            && !anonymous
            && !host.eq_ignore_ascii_case(&self.host)
            && !is_hub
        {
            credentials.check(&host, true)?;
        }
        Ok(url)
    }
}

fn secret_identity(
    credentials: &Credentials,
    reference: &Image,
    tls: bool,
) -> Result<RegistryIdentity, RegistryAccessError> {
    let host = reference.host.as_str();
    // The API of Docker Hub has another host than its images.
    let resolved = credentials.check(api_host(reference), tls);
    resolved.or_else(|_| credentials.check(host, tls))?;
    match &credentials.proof {
        Proof::Basic { username, password } => {
            Ok(RegistryIdentity::new(username.clone(), password.clone()))
        }
        Proof::Docker { config } => {
            docker_config::find_identity(config, host, &reference.repository).map_err(|source| {
                RegistryAccessError::DockerConfig {
                    secret: credentials.secret.clone(),
                    source,
                }
            })
        }
        Proof::Ssh { .. } | Proof::ObjectStore { .. } => {
            let wanted = "kubernetes.io/dockerconfigjson or kubernetes.io/basic-auth";
            Err(credentials.mismatch("a registry", wanted).into())
        }
    }
}

/// Reads the entry for a server from `config.json` in `$DOCKER_CONFIG` or `~/.docker`.
fn read_docker_config(server: &str) -> Result<DockerCredential, CredentialRetrievalError> {
    let named = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = named.or_else(|| Some(platform::home()?.join(".docker")));
    let folder = folder.ok_or(CredentialRetrievalError::ConfigNotFound)?;
    let file = File::open(folder.join("config.json"))
        .map_err(|_| CredentialRetrievalError::ConfigReadError)?;
    docker_credential::get_credential_from_reader(BufReader::new(file), server)
}

/// Returns the part of the error to show if the registry refuses the request. The output of a helper is left
/// out, because it can contain secrets.
fn helper_failure(error: CredentialRetrievalError) -> Option<String> {
    match error {
        CredentialRetrievalError::HelperFailure { helper, .. } => Some(format!("{helper} fails")),
        CredentialRetrievalError::NoCredentialConfigured
        | CredentialRetrievalError::ConfigNotFound
        | CredentialRetrievalError::ConfigReadError => None,
        other => Some(other.to_string()),
    }
}

fn basic_header(username: &str, password: &str) -> Option<HeaderValue> {
    sensitive_header(&format!(
        "Basic {}",
        STANDARD.encode(format!("{username}:{password}"))
    ))
}

fn sensitive_header(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
