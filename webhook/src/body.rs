//! Reads the body of a review, within limits of time, size and memory.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header;
use actix_web::web::{Bytes, BytesMut, Payload};
use actix_web::{HttpMessage as _, HttpRequest};
use futures::StreamExt as _;

use crate::budget::{BodyBudget, BudgetShare};
use crate::refusal::ReviewRefusal;

/// Two objects of 3 MiB, the limit of the API server, and the rest of the review.
pub const MAX: usize = 7 << 20;
/// actix has no timer for bodies: a client that stops in the middle would hold its share for ever.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A body, and the share of the budget that it holds until the last clone is dropped.
#[derive(Clone)]
pub struct Body {
    /// The whole body.
    pub bytes: Bytes,
    /// The address of the sender.
    pub peer: IpAddr,
    _share: Arc<BudgetShare>,
}

/// Reads the body of a request.
///
/// # Errors
/// The header does not say that it is JSON, it is too large, too slow or cut off, or there is no memory left for it.
pub async fn read(
    request: &HttpRequest,
    payload: Payload,
    peer: IpAddr,
    budget: &Arc<BodyBudget>,
) -> Result<Body, ReviewRefusal> {
    if request.content_type() != "application/json" {
        return Err(ReviewRefusal::MediaType);
    }
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok());
    // A body without a length, as in chunked encoding, is counted as it arrives.
    let declared = declared.and_then(|length| length.parse().ok());
    let declared: usize = declared.unwrap_or(0);
    if declared > MAX {
        return Err(ReviewRefusal::TooLarge);
    }
    let memory = budget.share(peer, declared);
    let share = tokio::time::timeout(TIMEOUT, memory).await;
    let share = share.map_err(|_| ReviewRefusal::Memory)?;
    let read = tokio::time::timeout(TIMEOUT, read_all(payload, declared, share));
    let (bytes, share) = read.await.map_err(|_| ReviewRefusal::TooSlow)??;
    Ok(Body {
        bytes,
        peer,
        _share: Arc::new(share),
    })
}

async fn read_all(
    mut payload: Payload,
    declared: usize,
    mut share: BudgetShare,
) -> Result<(Bytes, BudgetShare), ReviewRefusal> {
    let mut bytes = BytesMut::with_capacity(declared);
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|_| ReviewRefusal::CutOff)?;
        let length = bytes.len() + chunk.len();
        if length > MAX {
            return Err(ReviewRefusal::TooLarge);
        }
        if length > declared && !share.grow(length - declared.max(bytes.len())) {
            return Err(ReviewRefusal::Memory);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes.freeze(), share))
}
