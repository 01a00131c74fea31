//! Layers are decompressed while they arrive.

use std::io::{self, Read};

use tokio::sync::mpsc;

use super::ImageError;
use super::layer::{self, Budget, Compression, Layer, LayerError};
use crate::registry::Blob;

/// Chunks between the network and the decompressor.
const CHUNKS: usize = 16;

/// The chunks of a blob, on the thread of the decompressor.
struct Chunks {
    chunks: mpsc::Receiver<Vec<u8>>,
    current: io::Cursor<Vec<u8>>,
}

/// Reads a layer on its own thread while its bytes arrive. An error of the transfer is reported before an error of the archive,
/// because it explains that one.
pub async fn read(
    mut blob: Blob<'_, '_>,
    compression: Compression,
    path: String,
    mut budget: Budget,
) -> Result<(Result<Layer, LayerError>, Budget), ImageError> {
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
            Budget::default(),
        )
    };
    while let Some(chunk) = blob.next().await? {
        if sender.send(chunk).await.is_ok() {
            continue;
        }
        // The reader stopped: at the end of the archive or at an error.
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
