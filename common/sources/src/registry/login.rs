//! Credentials at a registry: from the source's Secret or from this machine's `docker login`; and the answers to challenges.

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
use crate::http::{Http, HttpError, Received, Redirects, bound};
use crate::reach::{Reach, Used};
use crate::{Access, host, platform};

use super::challenge::Challenge;
use super::docker_config::{self, same_host};
use super::{RegistryError, answers, asked, wrong};

/// How long a helper of `docker login` may take.
const HELPER_TIMEOUT: Duration = Duration::from_secs(30);
/// The token server of Docker Hub.
const DOCKER_HUB_TOKENS: &str = "auth.docker.io";

/// The credentials at one registry. Without Debug: they are never printed.
pub enum Identity {
    /// None.
    Anonymous,
    /// A user.
    Password {
        /// May be empty.
        username: String,
        /// The password, or a token in its place.
        password: String,
    },
    /// A token for more tokens (`identitytoken`).
    Refresh(String),
}

impl Identity {
    /// Who has that user name and password: nobody, where both are empty.
    pub fn of(username: String, password: String) -> Self {
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
    /// Another repository that is read, too.
    beside: Option<String>,
    credentials: Option<&'a Credentials>,
    reach: &'a Reach,
    /// Whether the user could open their `docker login`, and did not.
    is_closed: bool,
    /// `None` before this machine's `docker login` was read.
    identity: Option<Identity>,
    /// Why `docker login` has none.
    helper: Option<String>,
}

/// The answer of a token server.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Login<'a> {
    /// Sends nothing yet, and reads `docker login` only when the registry asks for credentials.
    ///
    /// # Errors
    /// Credentials that may not be sent there, or are of the wrong kind.
    pub fn new(reference: &Image, plain: bool, access: &Access<'a>) -> Result<Self, RegistryError> {
        let host = asked(reference).to_owned();
        let safe = !plain || host::is_loopback(host::without_port(&host));
        let is_open = access.reach.opens_registry(&reference.host);
        let identity = match access.credentials {
            Some(credentials) => Some(of_secret(credentials, reference, !plain)?),
            None if is_open && safe => None,
            None => Some(Identity::Anonymous),
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

    /// Asks for tokens to push with, from now on.
    pub fn pushes(&mut self) {
        self.pushes = true;
    }

    pub fn is_pushing(&self) -> bool {
        self.pushes
    }

    /// Asks for tokens that may read another repository as well, until it is told otherwise.
    pub fn reads_beside(&mut self, repository: Option<&str>) {
        self.beside = repository.map(str::to_owned);
    }

    /// The header for the first request: a password from the Secret, which saves a request if the registry accepts it directly.
    pub fn first(&self) -> Option<HeaderValue> {
        match self.identity.as_ref()? {
            Identity::Password { username, password } => basic(username, password),
            Identity::Anonymous | Identity::Refresh(_) => None,
        }
    }

    /// The header to send instead of `sent` after a refusal; `None` if there is no other.
    ///
    /// # Errors
    /// No token, or a token server that may not get the credentials.
    pub async fn answer(
        &mut self,
        http: &Http,
        challenge: &Challenge,
        sent: Option<&HeaderValue>,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        self.ask_machine().await;
        match challenge {
            Challenge::Basic => Ok(self.first().filter(|first| sent != Some(first))),
            Challenge::Bearer { realm, service } => {
                self.token(http, realm, service).await.map(Some)
            }
        }
    }

    /// For errors: whose credentials were refused, and the way out.
    pub fn refused(&self) -> (String, String) {
        let secret = "a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/basic-auth, named in \
                      auth.secretRef of the source";
        match (self.credentials, &self.identity, &self.helper) {
            (Some(credentials), Some(Identity::Anonymous), _) => (
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
            (None, Some(Identity::Password { .. } | Identity::Refresh(_)), _) => (
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

    /// `~/.docker/config.json` and the helpers that it names.
    async fn ask_machine(&mut self) {
        if self.identity.is_some() {
            return;
        }
        // Helpers know Docker Hub by this name.
        let server = if same_host(&self.host, "docker.io") {
            "https://index.docker.io/v1/".to_owned()
        } else {
            self.host.clone()
        };
        let asking = tokio::task::spawn_blocking(move || read_machine(&server));
        let (identity, helper) = match tokio::time::timeout(HELPER_TIMEOUT, asking).await {
            Ok(Ok(Ok(DockerCredential::UsernamePassword(username, password)))) => {
                (Identity::of(username, password), None)
            }
            Ok(Ok(Ok(DockerCredential::IdentityToken(token)))) => (Identity::Refresh(token), None),
            Ok(Ok(Err(error))) => (Identity::Anonymous, failure(error)),
            Ok(Err(_)) | Err(_) => (
                Identity::Anonymous,
                Some("its credential helper does not answer".to_owned()),
            ),
        };
        if !matches!(identity, Identity::Anonymous) {
            self.reach.tell(Used::Registry(self.host.clone()));
        }
        self.identity = Some(identity);
        self.helper = helper;
    }

    /// A token to pull with, and to push where that was asked for.
    async fn token(
        &self,
        http: &Http,
        realm: &str,
        service: &str,
    ) -> Result<HeaderValue, RegistryError> {
        let url = self.realm(realm)?;
        let name = host::of(&url);
        let no_token = |why: String| RegistryError::Token {
            host: self.host.clone(),
            realm: name.clone(),
            why,
        };
        let received = self.receive(http, url, service).await;
        let received = received.map_err(|source| wrong(&name, source))?;
        let (status, detail) = (received.status, answers::detail(&received.bytes));
        if matches!(status.as_u16(), 401 | 403) {
            let (who, accept) = self.refused();
            return Err(RegistryError::Unauthorized {
                location: format!("{}/{}", self.host, self.repository),
                who,
                detail,
                accept,
            });
        }
        if !status.is_success() {
            return Err(no_token(format!("{status}{detail}")));
        }
        // An error of serde may quote the token.
        let token: Token = entrance::from_slice(&received.bytes)
            .map_err(|_| no_token("its answer is not JSON with a token".to_owned()))?;
        let token = token.token.or(token.access_token);
        let header = token.and_then(|token| secret(&format!("Bearer {token}")));
        header.ok_or_else(|| no_token("its answer holds no token".to_owned()))
    }

    /// Asks for a token. A redirect could lead a password or a refresh token to another host, so none is followed.
    async fn receive(
        &self,
        http: &Http,
        mut url: Url,
        service: &str,
    ) -> Result<Received, HttpError> {
        let scopes = self.scopes();
        let request = if let Some(Identity::Refresh(token)) = &self.identity {
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
                Some(Identity::Password { username, password }) => {
                    request.basic_auth(username, Some(password))
                }
                _ => request,
            }
        };
        let request = request.build()?;
        let received = http.receive(&request, Redirects::None, None, bound::SMALL);
        received.await
    }

    /// What a token is to allow.
    fn scopes(&self) -> Vec<String> {
        let actions = if self.pushes { "pull,push" } else { "pull" };
        let own = format!("repository:{}:{actions}", self.repository);
        let beside = self.beside.as_ref();
        let beside = beside.map(|beside| format!("repository:{beside}:pull"));
        std::iter::once(own).chain(beside).collect()
    }

    /// The token server, if it may get the credentials: the registry itself with its port, or a host that the Secret names. With
    /// the credentials of `docker login` any token server may, as for docker.
    fn realm(&self, realm: &str) -> Result<Url, RegistryError> {
        let wrong = |realm: String, why: &str| RegistryError::Realm {
            host: self.host.clone(),
            realm,
            why: why.to_owned(),
        };
        let mut url =
            Url::parse(realm).map_err(|_| wrong(format!("{realm:?}"), "it is not a valid URL"))?;
        let host = host::of(&url);
        // Both fail only for URLs that cannot have credentials.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let name = url.host_str().unwrap_or_default();
        let anonymous = matches!(self.identity, Some(Identity::Anonymous));
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

fn of_secret(
    credentials: &Credentials,
    reference: &Image,
    tls: bool,
) -> Result<Identity, RegistryError> {
    let host = reference.host.as_str();
    // Docker Hub is asked by another name than images have.
    let resolved = credentials.check(asked(reference), tls);
    resolved.or_else(|_| credentials.check(host, tls))?;
    match &credentials.proof {
        Proof::Basic { username, password } => Ok(Identity::of(username.clone(), password.clone())),
        Proof::Docker { config } => docker_config::identity(config, host, &reference.repository)
            .map_err(|source| RegistryError::DockerConfig {
                secret: credentials.secret.clone(),
                source,
            }),
        Proof::Ssh { .. } | Proof::ObjectStore { .. } => {
            let wanted = "kubernetes.io/dockerconfigjson or kubernetes.io/basic-auth";
            Err(credentials.mismatch("a registry", wanted).into())
        }
    }
}

/// The entry for a server in `config.json` of `$DOCKER_CONFIG`, else of `~/.docker`.
fn read_machine(server: &str) -> Result<DockerCredential, CredentialRetrievalError> {
    let named = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = named.or_else(|| Some(platform::home()?.join(".docker")));
    let folder = folder.ok_or(CredentialRetrievalError::ConfigNotFound)?;
    let file = File::open(folder.join("config.json"))
        .map_err(|_| CredentialRetrievalError::ConfigReadError)?;
    docker_credential::get_credential_from_reader(BufReader::new(file), server)
}

/// The part of the error that is shown if the registry then refuses. The output of a helper may hold secrets.
fn failure(error: CredentialRetrievalError) -> Option<String> {
    match error {
        CredentialRetrievalError::HelperFailure { helper, .. } => Some(format!("{helper} fails")),
        CredentialRetrievalError::NoCredentialConfigured
        | CredentialRetrievalError::ConfigNotFound
        | CredentialRetrievalError::ConfigReadError => None,
        other => Some(other.to_string()),
    }
}

fn basic(username: &str, password: &str) -> Option<HeaderValue> {
    secret(&format!(
        "Basic {}",
        STANDARD.encode(format!("{username}:{password}"))
    ))
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
