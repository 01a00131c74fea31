//! A server of tokens, as distribution's specification wants it: it knows one user, and gives nobody else a token.

use std::sync::Arc;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};

use super::front::{Fault, Front, Seen};
use super::{PASSWORD, USER};
use crate::control_plane::pki::base64;

/// Who issues the tokens.
pub const ISSUER: &str = "issuer of the tests";
/// For whom.
pub const SERVICE: &str = "registry of the tests";
const KEY: &str = "tests";

/// The server.
pub struct Tokens {
    key: Arc<KeyPair>,
    front: Front,
    /// Under another name of this machine.
    host: String,
}

impl Tokens {
    /// Starts one; `name` is how the registry calls this machine.
    ///
    /// # Errors
    /// Of the network and of the cryptography.
    pub async fn start(name: &str) -> Result<Self> {
        let key = Arc::new(KeyPair::generate_for(&rcgen::PKCS_ED25519)?);
        let signing = Arc::clone(&key);
        let front = Front::start(None, move |seen| answer(&signing, seen)).await?;
        let port = front.host.rsplit(':').next().unwrap_or_default();
        let host = format!("{name}:{port}");
        Ok(Self { key, front, host })
    }

    /// Where the registry sends for a token.
    #[must_use]
    pub fn realm(&self) -> String {
        format!("http://{}/token", self.host)
    }

    /// The requests since the last call.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.front.requests()
    }

    /// The public key, as JWKS.
    #[must_use]
    pub fn keys(&self) -> String {
        let public = URL_SAFE_NO_PAD.encode(self.key.der_bytes());
        let key = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": KEY, "x": public});
        json!({"keys": [key]}).to_string()
    }

    /// A token for a repository; `*` for those that the tests push to.
    ///
    /// # Errors
    /// Of the cryptography.
    pub fn issue(&self, repository: &str, actions: &[&str]) -> Result<String> {
        // What the tests push to.
        let name = if repository == "*" {
            "team/app"
        } else {
            repository
        };
        issue(&self.key, &[allowed(name, actions)])
    }
}

/// What a scope asks for: `repository:NAME:pull,push`.
fn access(scope: &str) -> Option<Value> {
    let (name, actions) = scope.strip_prefix("repository:")?.rsplit_once(':')?;
    let actions: Vec<&str> = actions.split(',').collect();
    Some(allowed(name, &actions))
}

fn allowed(name: &str, actions: &[&str]) -> Value {
    json!({"type": "repository", "name": name, "actions": actions})
}

fn answer(key: &KeyPair, seen: &Seen) -> Option<Fault> {
    let query = seen.path.strip_prefix("/token?")?;
    let wanted = format!("Basic {}", base64(&format!("{USER}:{PASSWORD}")));
    if seen.authorization.as_deref() != Some(wanted.as_str()) {
        return Some(Fault::Status(401));
    }
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let scopes = pairs.filter(|(key, _)| key == "scope");
    let access: Option<Vec<Value>> = scopes.map(|(_, scope)| access(&scope)).collect();
    let token = issue(key, &access?).ok()?;
    let text = json!({"token": token}).to_string();
    Some(Fault::Bytes(text.into_bytes()))
}

fn issue(key: &KeyPair, access: &[Value]) -> Result<String> {
    let now = Timestamp::now().as_second();
    let header = json!({"typ": "JWT", "alg": "EdDSA", "kid": KEY});
    let claims = json!({
        "iss": ISSUER, "sub": USER, "aud": SERVICE, "jti": "1",
        "exp": now + 300, "nbf": now - 10, "iat": now, "access": access,
    });
    let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
    let signed = format!(
        "{}.{}",
        encode(header.to_string()),
        encode(claims.to_string())
    );
    let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes())?);
    Ok(format!("{signed}.{signature}"))
}
