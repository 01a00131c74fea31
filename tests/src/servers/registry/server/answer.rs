//! Answers, and errors.

use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use serde_json::{Value, json};

/// An answer.
pub(super) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    is_head: bool,
}

/// An error as the specification wants it.
#[derive(Debug)]
pub(super) struct Refusal {
    code: Code,
    status: u16,
    detail: String,
    headers: Vec<(&'static str, String)>,
}

/// The codes of the specification, and two that distribution has besides them: of pages and of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    BlobUnknown,
    BlobUploadInvalid,
    BlobUploadUnknown,
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestUnknown,
    NameInvalid,
    NameUnknown,
    PaginationNumberInvalid,
    RangeInvalid,
    Unauthorized,
    Unsupported,
}

impl Code {
    /// Its status, its name and what it says.
    fn parts(self) -> (u16, &'static str, &'static str) {
        match self {
            Self::BlobUnknown => (404, "BLOB_UNKNOWN", "blob unknown to registry"),
            Self::BlobUploadInvalid => (400, "BLOB_UPLOAD_INVALID", "blob upload invalid"),
            Self::BlobUploadUnknown => (
                404,
                "BLOB_UPLOAD_UNKNOWN",
                "blob upload unknown to registry",
            ),
            Self::DigestInvalid => (
                400,
                "DIGEST_INVALID",
                "provided digest did not match uploaded content",
            ),
            Self::ManifestBlobUnknown => (400, "MANIFEST_BLOB_UNKNOWN", "blob unknown to registry"),
            Self::ManifestInvalid => (400, "MANIFEST_INVALID", "manifest invalid"),
            Self::ManifestUnknown => (404, "MANIFEST_UNKNOWN", "manifest unknown"),
            Self::NameInvalid => (400, "NAME_INVALID", "invalid repository name"),
            Self::NameUnknown => (404, "NAME_UNKNOWN", "repository name not known to registry"),
            Self::PaginationNumberInvalid => (
                400,
                "PAGINATION_NUMBER_INVALID",
                "invalid number of results requested",
            ),
            Self::RangeInvalid => (416, "RANGE_INVALID", "invalid content range"),
            Self::Unauthorized => (401, "UNAUTHORIZED", "authentication required"),
            Self::Unsupported => (405, "UNSUPPORTED", "the operation is unsupported"),
        }
    }
}

impl Answer {
    /// A status without a body.
    pub(super) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            is_head: false,
        }
    }

    /// These bytes.
    pub(super) fn bytes(media_type: &str, bytes: Bytes) -> Self {
        Self {
            body: bytes,
            ..Self::status(200)
        }
        .with(CONTENT_TYPE.as_str(), media_type)
    }

    /// A JSON value.
    pub(super) fn json(value: &Value) -> Self {
        Self::bytes("application/json", Bytes::from(value.to_string()))
    }

    /// One more header.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with another status.
    pub(super) fn with_status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// The same for `HEAD`.
    pub(super) fn without_body(self) -> Self {
        Self {
            is_head: true,
            ..self
        }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = Response::builder()
            .status(self.status)
            .header("Docker-Distribution-API-Version", "registry/2.0");
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        let body = match self.is_head {
            true => {
                response = response.header(CONTENT_LENGTH, self.body.len());
                Bytes::new()
            }
            false => self.body,
        };
        // Every header is one that a request has brought, or plain text.
        let unusable = |_| Response::new(Full::default());
        response.body(Full::new(body)).unwrap_or_else(unusable)
    }
}

impl Refusal {
    /// An error with the status of its code.
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            status: code.parts().0,
            detail: detail.into(),
            headers: Vec::new(),
        }
    }

    /// Of a path that there is not.
    pub(super) fn path() -> Self {
        Self {
            status: 404,
            ..Self::new(Code::Unsupported, "no such path")
        }
    }

    /// Of a method that a path does not have.
    pub(super) fn method() -> Self {
        Self::new(Code::Unsupported, "no such method here")
    }

    /// One more header.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let (_, code, message) = refusal.code.parts();
        let error = json!({"code": code, "message": message, "detail": refusal.detail});
        let mut answer = Self::json(&json!({"errors": [error]})).with_status(refusal.status);
        answer.headers.extend(refusal.headers);
        answer
    }
}
