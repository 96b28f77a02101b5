//! Sealing, as tokens are made: encrypted, then written in base64url.

use std::hint::black_box;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use mcp_edge::{KeyRing, Sealer as _};

use crate::{Result, now};

const SALT: [u8; 16] = [4; 16];
/// As large as the digest that the core binds a token to.
const CONTEXT: [u8; 32] = [5; 32];

pub(crate) fn seal(times: usize, length: usize) -> Result {
    let (ring, plaintext) = (ring(), vec![b'x'; length]);
    for _ in 0..times {
        black_box(seal_one(&ring, black_box(&plaintext))?);
    }
    Ok(())
}

pub(crate) fn open(times: usize, length: usize) -> Result {
    let (ring, plaintext) = (ring(), vec![b'x'; length]);
    let token = seal_one(&ring, &plaintext)?;
    let mut opened = plaintext.clone();
    for _ in 0..times {
        let sealed = URL_SAFE_NO_PAD.decode(black_box(&token)).map_err(|e| e.to_string())?;
        opened = now(ring.open(&CONTEXT, &sealed))??;
    }
    if opened == plaintext { Ok(()) } else { Err("a token opened to something else".into()) }
}

fn ring() -> KeyRing {
    KeyRing::new(1, &[7; 32])
}

fn seal_one(ring: &KeyRing, plaintext: &[u8]) -> Result<String> {
    Ok(URL_SAFE_NO_PAD.encode(now(ring.seal(SALT, &CONTEXT, plaintext))??))
}
