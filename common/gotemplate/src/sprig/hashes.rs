//! Digests in hexadecimal digits.

use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::map_text;
use crate::function::Function;
use crate::value::Type::Text;

pub(super) const HASHES: &[Function<'static>] = &[
    Function::new("sha1sum", &[Text], &|_, args| map_text(args, hex::<Sha1>)),
    Function::new("sha256sum", &[Text], &|_, args| {
        map_text(args, hex::<Sha256>)
    }),
    Function::new("sha512sum", &[Text], &|_, args| {
        map_text(args, hex::<Sha512>)
    }),
    Function::new("adler32sum", &[Text], &|_, args| {
        map_text(args, |text| adler32(text.as_bytes()).to_string())
    }),
];

fn hex<D: Digest>(text: &str) -> String {
    let digest = D::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65521;
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % MODULUS;
        (a, (b + a) % MODULUS)
    });
    b << 16 | a
}
