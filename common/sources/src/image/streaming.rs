//! Decompresses layers while they arrive.

use std::io::{self, Read};

use tokio::sync::mpsc;

use super::ImageFetchError;
use super::layer::{self, Compression, ImageLayer, LayerBudget, LayerError};
use crate::registry::Blob;

/// The number of chunks to buffer between the network and the decompressor.
const CHUNKS: usize = 16;

/// A reader of the chunks of a blob on the thread of the decompressor.
struct Chunks {
    chunks: mpsc::Receiver<Vec<u8>>,
    current: io::Cursor<Vec<u8>>,
}

/// Reads a layer on a separate thread while its bytes arrive. If both the transfer and the archive fail, the
/// error of the transfer is returned, because it is the cause.
pub async fn stream_layer(
    mut blob: Blob<'_, '_>,
    compression: Compression,
    path: String,
    mut budget: LayerBudget,
) -> Result<(Result<ImageLayer, LayerError>, LayerBudget), ImageFetchError> {
    let (sender, chunks) = mpsc::channel(CHUNKS);
    let mut reading = tokio::task::spawn_blocking(move || {
        let chunks = Chunks {
            chunks,
            current: io::Cursor::default(),
        };
        let layer = layer::read_layer(chunks, compression, &path, &mut budget);
        (layer, budget)
    });
    let ended = |error: tokio::task::JoinError| {
        (
            Err(LayerError::Damaged(io::Error::other(error))),
            LayerBudget::default(),
        )
    };
    while let Some(chunk) = blob.next().await? {
        if sender.send(chunk).await.is_ok() {
            continue;
        }
        // The reader stopped at the end of the archive or because of an error.
        let read = (&mut reading).await.unwrap_or_else(ended);
        if !read.0.as_ref().is_err_and(LayerError::is_limit) {
            while blob.next().await?.is_some() {}
        }
        return Ok(read);
    }
    drop(sender);
    Ok(reading.await.unwrap_or_else(ended))
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.current.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match self.chunks.blocking_recv() {
                Some(chunk) => self.current = io::Cursor::new(chunk),
                None => return Ok(0),
            }
        }
    }
}
