//! Who may ask: anybody, one user with a password, or whoever has a token for what is asked.
//!
//! A token is a JWT as the specification of distribution describes it, signed with Ed25519.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::Method;
use jiff::Timestamp;
use rustls::SignatureScheme;
use serde_json::Value;

use super::answer::{Code, Refusal};
use super::names::{Route, Target};

/// Who may ask.
pub(in super::super) enum Guard {
    Open,
    /// Whoever sends this header.
    Basic(String),
    Tokens(Keys),
}

/// Who issues tokens, and how they are verified.
pub(in super::super) struct Keys {
    realm: String,
    service: String,
    issuer: String,
    /// By its id.
    keys: BTreeMap<String, Vec<u8>>,
}

/// What a request needs: a repository, and what is done with it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Access {
    repository: String,
    actions: Vec<&'static str>,
}

/// What a request needs; nothing where it is about no repository.
pub(super) fn needed(
    method: &Method,
    route: &Route<'_>,
    query: &BTreeMap<String, String>,
) -> Vec<Access> {
    let Route::Of(name, target) = route else {
        return Vec::new();
    };
    let actions = match *method {
        Method::GET | Method::HEAD => vec!["pull"],
        _ => vec!["pull", "push"],
    };
    let mut all = vec![Access {
        repository: (*name).to_owned(),
        actions,
    }];
    if *target == Target::Uploads
        && let (Some(_), Some(from)) = (query.get("mount"), query.get("from"))
    {
        all.push(Access {
            repository: from.clone(),
            actions: vec!["pull"],
        });
    }
    all
}

impl Guard {
    /// Lets a request pass, or says what it needs.
    pub(super) fn admit(&self, header: Option<&str>, needed: &[Access]) -> Result<(), Refusal> {
        let refusal = |challenge: String| {
            let refusal = Refusal::new(Code::Unauthorized, "");
            refusal.with("WWW-Authenticate", challenge)
        };
        match self {
            Self::Open => Ok(()),
            Self::Basic(wanted) if header == Some(wanted) => Ok(()),
            Self::Basic(_) => Err(refusal("Basic realm=\"tests\"".to_owned())),
            Self::Tokens(keys) => {
                let found = match header.and_then(|header| header.strip_prefix("Bearer ")) {
                    None => Err(""),
                    Some(token) => match keys.allowed(token) {
                        None => Err(",error=\"invalid_token\""),
                        Some(allowed) if needed.iter().all(|one| one.is_in(&allowed)) => Ok(()),
                        Some(_) => Err(",error=\"insufficient_scope\""),
                    },
                };
                found.map_err(|error| refusal(keys.challenge(needed, error)))
            }
        }
    }
}

impl Keys {
    /// `jwks` holds the keys of the issuer.
    pub(in super::super) fn new(
        realm: String,
        service: &str,
        issuer: &str,
        jwks: &str,
    ) -> Result<Self> {
        let jwks: Value = serde_json::from_str(jwks)?;
        let mut keys = BTreeMap::new();
        for key in jwks["keys"].as_array().context("no keys")? {
            let id = key["kid"].as_str().context("a key without id")?;
            let public = key["x"].as_str().context("a key without point")?;
            keys.insert(id.to_owned(), URL_SAFE_NO_PAD.decode(public)?);
        }
        Ok(Self {
            realm,
            service: service.to_owned(),
            issuer: issuer.to_owned(),
            keys,
        })
    }

    fn challenge(&self, needed: &[Access], error: &str) -> String {
        let scopes: Vec<String> = needed
            .iter()
            .map(|one| format!("repository:{}:{}", one.repository, one.actions.join(",")))
            .collect();
        let scope = match scopes.is_empty() {
            true => String::new(),
            false => format!(",scope=\"{}\"", scopes.join(" ")),
        };
        let (realm, service) = (&self.realm, &self.service);
        format!("Bearer realm=\"{realm}\",service=\"{service}\"{scope}{error}")
    }

    /// What a token allows; `None` where it is not valid here and now.
    fn allowed(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let json = |part| serde_json::from_slice::<Value>(&decode(part)?).ok();
        let header = json(header)?;
        let key = self.keys.get(header["kid"].as_str()?)?;
        if header["alg"] != "EdDSA" || !is_signed(key, signed, &decode(signature)?) {
            return None;
        }
        let claims = json(claims)?;
        let now = Timestamp::now().as_second();
        let is_now = claims["nbf"].as_i64()? <= now && now < claims["exp"].as_i64()?;
        let is_ours = claims["iss"] == *self.issuer && claims["aud"] == *self.service;
        (is_now && is_ours).then(|| claims["access"].clone())
    }
}

fn is_signed(key: &[u8], text: &str, signature: &[u8]) -> bool {
    let algorithms =
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms;
    let mut algorithms = algorithms.mapping.iter();
    let found = algorithms.find(|(scheme, _)| *scheme == SignatureScheme::ED25519);
    let algorithm = found.and_then(|(_, algorithms)| algorithms.first());
    algorithm.is_some_and(|algorithm| {
        let verified = algorithm.verify_signature(key, text.as_bytes(), signature);
        verified.is_ok()
    })
}

impl Access {
    /// Whether a token allows all of it.
    fn is_in(&self, allowed: &Value) -> bool {
        let mut grants = allowed.as_array().into_iter().flatten();
        grants.any(|grant| {
            let actions = grant["actions"].as_array();
            let has = |action: &&str| {
                actions.is_some_and(|actions| actions.iter().any(|one| one == action))
            };
            grant["type"] == "repository"
                && grant["name"] == *self.repository
                && self.actions.iter().all(has)
        })
    }
}
