//! Reads the files that commands are given. `-` is stdin.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What was read of stdin, which can be read once: a command may plan twice.
static STDIN: Mutex<Stdin> = Mutex::new(Stdin {
    bytes: Vec::new(),
    has_ended: false,
});

struct Stdin {
    bytes: Vec<u8>,
    has_ended: bool,
}

impl Stdin {
    /// Reads on until there are `limit` bytes, or until `input` ends.
    fn read_until(&mut self, limit: u64, input: impl io::Read) -> io::Result<&[u8]> {
        let known = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        let missing = limit.saturating_sub(known);
        if !self.has_ended && missing > 0 {
            let read = input.take(missing).read_to_end(&mut self.bytes)?;
            self.has_ended = u64::try_from(read).unwrap_or(u64::MAX) < missing;
        }
        Ok(&self.bytes)
    }
}

/// Reads a file.
pub fn read_input(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(path, usize::MAX)
}

/// Reads at most one byte more than `limit`, so that the caller can detect a file that is too large.
pub fn read_bounded(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if path != Path::new("-") {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    let mut stdin = STDIN.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(stdin.read_until(limit, io::stdin())?.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command first looks whether its input is a set, of which it reads a part, and then reads everything.
    #[test]
    fn a_later_caller_may_read_more_of_stdin() -> io::Result<()> {
        let mut stdin = Stdin {
            bytes: Vec::new(),
            has_ended: false,
        };
        let mut input: &[u8] = b"0123456789";
        assert_eq!(stdin.read_until(4, &mut input)?, b"0123");
        assert_eq!(stdin.read_until(2, &mut input)?, b"0123");
        assert_eq!(stdin.read_until(100, &mut input)?, b"0123456789");
        assert!(stdin.has_ended);
        Ok(())
    }
}
