//! Bytes as lower-case hex digits.

/// Returns the hex digits of `bytes`.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| DIGITS.get(usize::from(digit)))
        .map(|digit| char::from(*digit))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_byte_is_two_digits() {
        assert_eq!(super::encode(&[0x00, 0x0a, 0x5f, 0xff]), "000a5fff");
        assert_eq!(super::encode(&[]), "");
    }
}
