//! Base64, base32, and digests in hexadecimal digits. As in sprig, the result of decoding an invalid text is the text of Go's error.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::map_text;
use crate::function::{Arguments, Function, FunctionContext, FunctionError, FunctionResult};
use crate::value::Type::Text;
use crate::value::Value;

pub(super) const ENCODINGS: &[Function<'static>] = &[
    Function::new("b64enc", &[Text], &|ctx, args| encode(ctx, args, &BASE64)),
    Function::new("b64dec", &[Text], &|_, args| {
        decoded_text(decode_base64(args.text(0)?.as_bytes()), "base64")
    }),
    Function::new("b32enc", &[Text], &|ctx, args| encode(ctx, args, &BASE32)),
    Function::new("b32dec", &[Text], &|_, args| {
        decoded_text(decode_base32(args.text(0)?.as_bytes()), "base32")
    }),
];

struct BaseEncoding {
    alphabet: &'static [u8],
    /// Bits per digit.
    bits: usize,
    /// Number of digits that make whole bytes.
    group: usize,
}

const BASE64: BaseEncoding = BaseEncoding {
    alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    bits: 6,
    group: 4,
};

const BASE32: BaseEncoding = BaseEncoding {
    alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
    bits: 5,
    group: 8,
};

/// The position of the first invalid byte.
struct InvalidByte(usize);

impl BaseEncoding {
    fn digit(&self, byte: u8) -> Option<u64> {
        let digit = self.alphabet.iter().position(|digit| *digit == byte)?;
        u64::try_from(digit).ok()
    }

    /// Decodes the whole bytes of a group of digits. The last digits may be missing.
    fn bytes(&self, digits: &[u64]) -> Vec<u8> {
        let bits = digits
            .iter()
            .fold(0_u64, |bits, digit| bits << self.bits | digit);
        let bits = bits << (self.bits * (self.group - digits.len()));
        let all = self.bits * self.group / 8;
        let whole = self.bits * digits.len() / 8;
        bits.to_be_bytes()[8 - all..8 - all + whole].to_vec()
    }
}

fn encode(ctx: &mut FunctionContext, args: Arguments<'_>, base: &BaseEncoding) -> FunctionResult {
    let bytes = args.text(0)?.as_bytes();
    let size = base.bits * base.group / 8;
    let length = bytes.len().div_ceil(size).saturating_mul(base.group);
    ctx.reserve(length)?;
    let mut out = String::with_capacity(length);
    for chunk in bytes.chunks(size) {
        let mut group = [0; 8];
        for (to, from) in group.iter_mut().skip(8 - size).zip(chunk) {
            *to = *from;
        }
        let group = u64::from_be_bytes(group);
        let digits = (chunk.len() * 8).div_ceil(base.bits);
        for index in 0..base.group {
            let shift = base.bits * (base.group - 1 - index);
            let digit = usize::try_from(group >> shift).unwrap_or_default() % base.alphabet.len();
            let digit = base.alphabet.get(digit).filter(|_| index < digits);
            out.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    Ok(Value::text(out))
}

fn decoded_text(result: Result<Vec<u8>, InvalidByte>, name: &str) -> FunctionResult {
    match result {
        Err(InvalidByte(at)) => Ok(Value::text(format!(
            "illegal {name} data at input byte {at}"
        ))),
        Ok(bytes) => String::from_utf8(bytes)
            .map(Value::text)
            .map_err(|_| FunctionError::new("what it decodes to is not UTF-8")),
    }
}

/// Go's `base64.StdEncoding`: newlines are skipped, leftover bits are ignored.
fn decode_base64(text: &[u8]) -> Result<Vec<u8>, InvalidByte> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut digits = Vec::with_capacity(BASE64.group);
    let mut input = text
        .iter()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\n' | b'\r'));
    while let Some((at, byte)) = input.next() {
        if let Some(digit) = BASE64.digit(*byte) {
            digits.push(digit);
            if digits.len() == BASE64.group {
                out.extend(BASE64.bytes(&digits));
                digits.clear();
            }
            continue;
        }
        if *byte != b'=' || digits.len() < 2 {
            return Err(InvalidByte(at));
        }
        if digits.len() == 2 {
            match input.next() {
                None => return Err(InvalidByte(text.len())),
                Some((_, b'=')) => {}
                Some((at, _)) => return Err(InvalidByte(at - 1)),
            }
        }
        return match input.next() {
            Some((at, _)) => Err(InvalidByte(at)),
            None => {
                out.extend(BASE64.bytes(&digits));
                Ok(out)
            }
        };
    }
    if digits.is_empty() {
        Ok(out)
    } else {
        Err(InvalidByte(text.len() - digits.len()))
    }
}

/// Go's `base32.StdEncoding`: positions are counted without newlines.
fn decode_base32(text: &[u8]) -> Result<Vec<u8>, InvalidByte> {
    let is_newline = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let text: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !is_newline(byte))
        .collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    for (index, group) in text.chunks(BASE32.group).enumerate() {
        let start = index * BASE32.group;
        // Padding is recognized only within the last eight digits; everything after it is ignored.
        let padded = group.iter().position(|byte| *byte == b'=');
        let padded = padded.filter(|count| *count >= 2 && text.len() - start - count <= 8);
        let count = padded.unwrap_or(group.len());
        let mut digits = Vec::with_capacity(BASE32.group);
        for (offset, byte) in group.iter().take(count).enumerate() {
            digits.push(BASE32.digit(*byte).ok_or(InvalidByte(start + offset))?);
        }
        if group.len() < BASE32.group {
            let at = if padded.is_some() { text.len() } else { start };
            return Err(InvalidByte(at));
        }
        let padding = group.get(count..).unwrap_or_default();
        if let Some(offset) = padding.iter().position(|byte| *byte != b'=') {
            return Err(InvalidByte(start + count + offset - 1));
        }
        if matches!(count, 3 | 6) {
            return Err(InvalidByte(start + count));
        }
        out.extend(BASE32.bytes(&digits));
        if padded.is_some() {
            break;
        }
    }
    Ok(out)
}

pub(super) const HASHES: &[Function<'static>] = &[
    Function::new("sha1sum", &[Text], &|_, args| map_text(args, hex::<Sha1>)),
    Function::new("sha256sum", &[Text], &|_, args| {
        map_text(args, hex::<Sha256>)
    }),
    Function::new("sha512sum", &[Text], &|_, args| {
        map_text(args, hex::<Sha512>)
    }),
    Function::new("adler32sum", &[Text], &|_, args| {
        map_text(args, |text| {
            adler2::adler32_slice(text.as_bytes()).to_string()
        })
    }),
];

fn hex<D: Digest>(text: &str) -> String {
    let digest = D::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
