//! Any bytes at all as a layer: an error or a layer, never a panic.

use addons_sources::image::layer::{Compression, LayerBudget, read_layer};
use proptest::prelude::*;

use super::{gzip, tar};

fn compression() -> impl Strategy<Value = Compression> {
    prop_oneof![
        Just(Compression::None),
        Just(Compression::Gzip),
        Just(Compression::Zstd),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..4096), compression in compression()) {
        let _ = read_layer(&bytes[..], compression, "m", &mut LayerBudget::default());
    }

    /// Headers that are nearly right: their checksums are made to fit.
    #[test]
    fn nearly_an_archive(
        changes in prop::collection::vec((0_usize..4096, any::<u8>()), 0..24),
        cut in 0_usize..8192,
        zip in any::<bool>(),
    ) {
        let long = "n".repeat(180);
        let files = [("m/a.yaml", "a"), (long.as_str(), "b"), ("m/.wh.c", ""), ("m/d/e", "f")];
        let mut bytes = tar(&files).unwrap();
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        for block in bytes.chunks_exact_mut(512) {
            // Data that is taken for a header does no harm.
            if block[257..262] == *b"ustar" {
                let mut header = tar::Header::new_old();
                header.as_mut_bytes().copy_from_slice(block);
                header.set_cksum();
                block.copy_from_slice(header.as_bytes());
            }
        }
        bytes.truncate(cut);
        let (bytes, compression) = match zip {
            true => (gzip(&bytes).unwrap(), Compression::Gzip),
            false => (bytes, Compression::None),
        };
        if let Ok(layer) = read_layer(&bytes[..], compression, "m", &mut LayerBudget::default()) {
            for (path, _) in &layer.entries {
                prop_assert!(!path.starts_with('/') && !path.split('/').any(|part| part == ".."));
            }
        }
    }
}
