//! Readers for compressed layers: one that counts bytes, one that enforces limits, and one for several zstd
//! frames.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};

use super::{LayerError, MAX_RATIO, RATIO_FLOOR};

/// The maximum window size of a zstd frame in bytes, as in the tools of zstd.
const MAX_WINDOW: u64 = 128 << 20;
/// The number of bytes of a magic number.
const MAGIC: usize = 4;

/// Counts the bytes that are read.
pub struct CountingReader<R> {
    inner: R,
    count: Rc<Cell<u64>>,
}

/// Fails when a limit is exceeded.
pub struct BoundedReader<R> {
    inner: R,
    compressed: Rc<Cell<u64>>,
    seen: u64,
    left: u64,
    exceeded: Rc<Cell<Option<LayerError>>>,
}

/// Decompresses consecutive zstd frames. Skippable frames, as in zstd:chunked, are skipped.
pub struct ZstdFrames<R: Read> {
    state: FrameState<R>,
}

enum FrameState<R: Read> {
    Between(R),
    Inside(Box<StreamingDecoder<Prefixed<R>, ruzstd::decoding::FrameDecoder>>),
    End,
}

/// The magic number that was already read, followed by the rest.
type Prefixed<R> = io::Chain<io::Cursor<Vec<u8>>, R>;

impl<R> CountingReader<R> {
    /// Returns the reader and its counter.
    pub fn new(inner: R) -> (Self, Rc<Cell<u64>>) {
        let count = Rc::new(Cell::new(0));
        let reader = Self {
            inner,
            count: Rc::clone(&count),
        };
        (reader, count)
    }
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.set(self.count.get().saturating_add(read as u64));
        Ok(read)
    }
}

impl<R> BoundedReader<R> {
    /// Returns the reader and the cell for the limit that was exceeded.
    pub fn new(
        inner: R,
        compressed: Rc<Cell<u64>>,
        left: u64,
    ) -> (Self, Rc<Cell<Option<LayerError>>>) {
        let exceeded = Rc::default();
        let reader = Self {
            inner,
            compressed,
            seen: 0,
            left,
            exceeded: Rc::clone(&exceeded),
        };
        (reader, exceeded)
    }

    /// The number of bytes that may still be read.
    pub fn remaining(&self) -> u64 {
        self.left
    }

    fn stop(&self, why: LayerError) -> io::Error {
        self.exceeded.set(Some(why));
        io::Error::other("too much")
    }
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.seen = self.seen.saturating_add(read as u64);
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(self.stop(LayerError::Large)),
        }
        if self.seen > RATIO_FLOOR && self.seen > self.compressed.get().saturating_mul(MAX_RATIO) {
            return Err(self.stop(LayerError::Ratio));
        }
        Ok(read)
    }
}

impl<R: Read> ZstdFrames<R> {
    /// Creates the reader without reading anything.
    pub fn new(inner: R) -> Self {
        Self {
            state: FrameState::Between(inner),
        }
    }

    /// Reads up to the next frame with content or the end.
    fn next(mut inner: R) -> io::Result<FrameState<R>> {
        loop {
            let mut magic = Vec::with_capacity(MAGIC);
            inner.by_ref().take(MAGIC as u64).read_to_end(&mut magic)?;
            if magic.is_empty() {
                return Ok(FrameState::End);
            }
            if let [low, 0x2a, 0x4d, 0x18] = magic.as_slice()
                && (0x50..=0x5f).contains(low)
            {
                skip_frame(&mut inner)?;
                continue;
            }
            let prefixed = io::Cursor::new(magic).chain(inner);
            let decoder = StreamingDecoder::new_with_max_window_size(prefixed, MAX_WINDOW);
            return decoder
                .map(|decoder| FrameState::Inside(Box::new(decoder)))
                .map_err(decode_error);
        }
    }
}

impl<R: Read> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, FrameState::End) {
                FrameState::End => return Ok(0),
                FrameState::Between(inner) => self.state = Self::next(inner)?,
                FrameState::Inside(mut decoder) => {
                    let read = decoder.read(buffer)?;
                    if read > 0 {
                        self.state = FrameState::Inside(decoder);
                        return Ok(read);
                    }
                    let (_, inner) = decoder.into_inner().into_inner();
                    self.state = FrameState::Between(inner);
                }
            }
        }
    }
}

/// Skips the rest of a skippable frame: its length and that many bytes.
fn skip_frame(inner: &mut impl Read) -> io::Result<()> {
    let mut length = [0; MAGIC];
    inner.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    match io::copy(&mut inner.take(length), &mut io::sink())? == length {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn decode_error(error: FrameDecoderError) -> io::Error {
    match error {
        FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::BadMagicNumber(_)) => {
            io::Error::new(io::ErrorKind::InvalidData, "it is not zstd")
        }
        error => io::Error::other(error),
    }
}
