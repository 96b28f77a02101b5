//! Sealing: what goes to a client and must come back unread and unchanged.
//!
//! Request state, task ids and cursors travel through clients as sealed tokens. A [`Sealer`] turns
//! bytes into such a token and back; [`KeyRing`] is the one that is used unless the builder is
//! given another.

use std::{fmt, future::ready};

use base64::{
    Engine as _,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    error::Unspecified,
    hkdf::{HKDF_SHA256, KeyType, Prk, Salt},
};

use crate::target::{BoxFuture, MaybeSend, MaybeSync};

/// Seals bytes into tokens that only it can open.
///
/// An implementation gives confidentiality and integrity: whoever does not hold the key learns
/// nothing about the plaintext but its length, and no token opens that was not sealed under the
/// same context. It is asynchronous because a platform may offer nothing but asynchronous
/// cryptography.
pub trait Sealer: fmt::Debug + MaybeSend + MaybeSync + 'static {
    /// Seals `plaintext` into a token.
    ///
    /// `salt` is fresh from the platform's randomness for each token. `context` is authenticated,
    /// not stored: the same bytes must be given to [`open`](Self::open).
    ///
    /// # Errors
    /// When no token can be made; the request then fails.
    fn seal<'a>(
        &'a self,
        salt: [u8; 16],
        context: &'a [u8],
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<u8>, SealError>>;

    /// Opens a token and returns what was sealed.
    ///
    /// # Errors
    /// For every token that was not sealed by this sealer, under one of its current keys,
    /// with the same `context`. The reason is for the log; no caller may learn it.
    fn open<'a>(
        &'a self,
        context: &'a [u8],
        token: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<u8>, OpenError>>;
}

/// The default [`Sealer`]: ChaCha20-Poly1305 under a ring of keys.
///
/// A token is the id of its key (1 byte), its salt (16), the ciphertext, and the tag (16). Each
/// token has a key and a nonce of its own, derived from the ring's key by HKDF-SHA256, so the
/// number of tokens that a fleet seals under one key is no concern.
///
/// The first key seals, any others only open. **Rotation without downtime**: add the new key where
/// it only opens, deploy that everywhere, move it to the front so that it seals, and remove the old
/// one once the longest-lived token has expired.
pub struct KeyRing {
    /// The first seals. Never empty.
    keys: Vec<Key>,
}

impl KeyRing {
    /// Makes a ring of one key.
    #[must_use]
    pub fn new(id: u8, key: &[u8; 32]) -> Self {
        Self { keys: vec![Key::new(id, key)] }
    }

    /// Adds a key that only opens.
    ///
    /// # Errors
    /// When the ring has a key with this id, or is full.
    pub fn with_old(mut self, id: u8, key: &[u8; 32]) -> Result<Self, KeyRingError> {
        self.push(id, key).map_err(|fault| KeyRingError(format!("key {id} {fault}")))?;
        Ok(self)
    }

    /// Reads keys from text: `id:key` entries, separated by commas. The first seals, the others
    /// open.
    ///
    /// An id is a number from 0 to 255, a key is 32 bytes in base64url, with or without padding.
    ///
    /// # Errors
    /// Names the first entry that is wrong and the remedy, never any part of a key.
    pub fn parse(text: &str) -> Result<Self, KeyRingError> {
        if text.trim().is_empty() {
            return Err(KeyRingError(format!("there is no key; {HOW_TO_MAKE_ONE}")));
        }
        let mut ring = Self { keys: Vec::new() };
        for (index, entry) in text.split(',').enumerate() {
            let position = index + 1;
            // Until the id is known to be one, it could as well be a key.
            let (id, key) = entry.split_once(':').unwrap_or(("", entry));
            let id: u8 = id.trim().parse().map_err(|_| {
                KeyRingError(format!(
                    "entry {position} does not begin with an id from 0 to 255 and a colon; \
                     {HOW_TO_MAKE_ONE}"
                ))
            })?;
            let fault = |fault: Fault| {
                let remedy = match fault {
                    Fault::Encoding | Fault::Length(_) => HOW_TO_MAKE_ONE,
                    Fault::Duplicate => "give every key an id of its own",
                    Fault::Full => "retire the oldest",
                };
                KeyRingError(format!("entry {position} (key {id}) {fault}; {remedy}"))
            };
            let bytes = BASE64URL.decode(key.trim()).map_err(|_| fault(Fault::Encoding))?;
            let key = bytes.as_slice().try_into().map_err(|_| fault(Fault::Length(bytes.len())))?;
            ring.push(id, key).map_err(fault)?;
        }
        Ok(ring)
    }

    fn push(&mut self, id: u8, key: &[u8; 32]) -> Result<(), Fault> {
        if self.keys.iter().any(|key| key.id == id) {
            return Err(Fault::Duplicate);
        }
        if self.keys.len() == MAX_KEYS {
            return Err(Fault::Full);
        }
        self.keys.push(Key::new(id, key));
        Ok(())
    }

    fn seal_now(
        &self,
        salt: [u8; SALT_LEN],
        context: &[u8],
        plaintext: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let Some(key) = self.keys.first() else { return Err(SealError::new("the ring is empty")) };
        let mut token = Vec::with_capacity(HEAD_LEN + plaintext.len() + TAG_LEN);
        token.push(key.id);
        token.extend_from_slice(&salt);
        token.extend_from_slice(plaintext);
        let tag = key
            .for_token(&salt)
            .and_then(|(key, nonce)| {
                key.seal_in_place_separate_tag(nonce, Aad::from(context), &mut token[HEAD_LEN..])
            })
            .map_err(|Unspecified| SealError::new("the plaintext is too long"))?;
        token.extend_from_slice(tag.as_ref());
        Ok(token)
    }

    fn open_now(&self, context: &[u8], token: &[u8]) -> Result<Vec<u8>, OpenError> {
        let Some((&[id, ref salt @ ..], sealed)) = token.split_first_chunk::<HEAD_LEN>() else {
            return Err(OpenError::Malformed);
        };
        if sealed.len() < TAG_LEN {
            return Err(OpenError::Malformed);
        }
        let key = self.keys.iter().find(|key| key.id == id).ok_or(OpenError::UnknownKey)?;
        let mut buffer = sealed.to_vec();
        let length = key
            .for_token(salt)
            .and_then(|(key, nonce)| {
                key.open_in_place(nonce, Aad::from(context), &mut buffer).map(|plain| plain.len())
            })
            .map_err(|Unspecified| OpenError::Rejected)?;
        buffer.truncate(length);
        Ok(buffer)
    }
}

impl Sealer for KeyRing {
    fn seal<'a>(
        &'a self,
        salt: [u8; SALT_LEN],
        context: &'a [u8],
        plaintext: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<u8>, SealError>> {
        Box::pin(ready(self.seal_now(salt, context, plaintext)))
    }

    fn open<'a>(
        &'a self,
        context: &'a [u8],
        token: &'a [u8],
    ) -> BoxFuture<'a, Result<Vec<u8>, OpenError>> {
        Box::pin(ready(self.open_now(context, token)))
    }
}

/// Shows the ids, never the keys.
impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyRing")?;
        f.debug_list().entries(self.keys.iter().map(|key| key.id)).finish()
    }
}

/// Why keys do not make a [`KeyRing`]. Says which entry is at fault and what to do, and no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRingError(String);

impl fmt::Display for KeyRingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyRingError {}

/// Why a [`Sealer`] made no token.
#[derive(Clone, Debug)]
pub struct SealError {
    message: String,
}

impl SealError {
    /// Makes an error with a text for the log.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sealing failed: {}", self.message)
    }
}

impl std::error::Error for SealError {}

/// Why a [`Sealer`] did not open a token. For the log: on the wire all reasons look the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The bytes cannot be a token: they are too few, or arranged otherwise.
    Malformed,
    /// The token names a key that this sealer does not have, or no longer has.
    UnknownKey,
    /// The token was altered, or sealed by somebody else or under another context.
    Rejected,
    /// The sealer could not do its work; the token may be good.
    Unavailable(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the token is malformed"),
            Self::UnknownKey => {
                f.write_str("the token was sealed with a key that is not on the ring")
            }
            Self::Rejected => f.write_str("the token was altered or belongs to another context"),
            Self::Unavailable(message) => write!(f, "the token could not be opened: {message}"),
        }
    }
}

impl std::error::Error for OpenError {}

struct Key {
    id: u8,
    prk: Prk,
}

impl Key {
    fn new(id: u8, key: &[u8; 32]) -> Self {
        Self { id, prk: Salt::new(HKDF_SHA256, LABEL).extract(key) }
    }

    /// The key and nonce of one token. The id goes in, so that a token does not open under another
    /// id even where two ids have the same key.
    fn for_token(&self, salt: &[u8; SALT_LEN]) -> Result<(LessSafeKey, Nonce), Unspecified> {
        let mut material = [0; KEY_LEN + NONCE_LEN];
        self.prk.expand(&[LABEL, &[self.id], salt], Material)?.fill(&mut material)?;
        let (key, nonce) = material.split_at(KEY_LEN);
        let key = UnboundKey::new(&CHACHA20_POLY1305, key)?;
        Ok((LessSafeKey::new(key), Nonce::try_assume_unique_for_key(nonce)?))
    }
}

/// How many bytes a token's key and nonce take together.
struct Material;

impl KeyType for Material {
    fn len(&self) -> usize {
        KEY_LEN + NONCE_LEN
    }
}

enum Fault {
    Duplicate,
    Encoding,
    Full,
    Length(usize),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Duplicate => f.write_str("has the id of an earlier key"),
            Self::Encoding => f.write_str("is not base64url of 32 bytes"),
            Self::Full => write!(f, "is one key too many: {MAX_KEYS} at most"),
            Self::Length(length) => write!(f, "has {length} bytes instead of 32"),
        }
    }
}

const BASE64URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
const HOW_TO_MAKE_ONE: &str = "write `1:` and the output of `openssl rand 32 | basenc --base64url`";
const LABEL: &[u8] = b"mcp-edge seal 1";
const MAX_KEYS: usize = 16;

const KEY_LEN: usize = 32;
const SALT_LEN: usize = 16;
const TAG_LEN: usize = 16;
const HEAD_LEN: usize = 1 + SALT_LEN;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const KEY: [u8; 32] = *b"0123456789abcdef0123456789abcdef";
    const KEY_TEXT: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY";
    const OTHER: [u8; 32] = [9; 32];

    fn seal(ring: &KeyRing, salt: u8, context: &[u8], plaintext: &[u8]) -> Vec<u8> {
        ring.seal([salt; 16], context, plaintext).now_or_never().unwrap().unwrap()
    }

    fn open(ring: &KeyRing, context: &[u8], token: &[u8]) -> Result<Vec<u8>, OpenError> {
        ring.open(context, token).now_or_never().unwrap()
    }

    #[test]
    fn what_was_sealed_opens() {
        let ring = KeyRing::new(7, &KEY);
        for plaintext in [&b""[..], b"x", &[0xa5; 200], &[1; 8192]] {
            let token = seal(&ring, 1, b"context", plaintext);
            assert_eq!(token.len(), plaintext.len() + 33);
            assert_eq!(token[0], 7);
            assert_eq!(open(&ring, b"context", &token).unwrap(), plaintext);
        }
    }

    #[test]
    fn every_salt_gives_another_token() {
        let ring = KeyRing::new(7, &KEY);
        let (first, second) =
            (seal(&ring, 1, b"", b"plaintext"), seal(&ring, 2, b"", b"plaintext"));
        assert_ne!(first[HEAD_LEN..], second[HEAD_LEN..]);
        assert_eq!(first, seal(&ring, 1, b"", b"plaintext"));
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let ring = KeyRing::new(7, &KEY).with_old(6, &KEY).unwrap();
        let token = seal(&ring, 1, b"context", b"plaintext");
        for bit in 0..token.len() * 8 {
            let mut altered = token.clone();
            altered[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&ring, b"context", &altered).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn truncated_and_extended_tokens_are_refused() {
        let ring = KeyRing::new(7, &KEY);
        let mut token = seal(&ring, 1, b"context", b"plaintext");
        for length in 0..token.len() {
            let error = open(&ring, b"context", &token[..length]).unwrap_err();
            let expected = if length < 33 { OpenError::Malformed } else { OpenError::Rejected };
            assert_eq!(error, expected, "{length}");
        }
        token.push(0);
        assert_eq!(open(&ring, b"context", &token), Err(OpenError::Rejected));
    }

    #[test]
    fn another_context_or_key_is_refused() {
        let ring = KeyRing::new(7, &KEY);
        let token = seal(&ring, 1, b"context", b"plaintext");
        for context in [&b""[..], b"contex", b"context\0", b"Context"] {
            assert_eq!(open(&ring, context, &token), Err(OpenError::Rejected));
        }
        assert_eq!(open(&KeyRing::new(7, &OTHER), b"context", &token), Err(OpenError::Rejected));
        assert_eq!(open(&KeyRing::new(8, &KEY), b"context", &token), Err(OpenError::UnknownKey));
    }

    #[test]
    fn keys_rotate_without_refusing_a_token() {
        let before = KeyRing::new(1, &KEY);
        let added = KeyRing::new(1, &KEY).with_old(2, &OTHER).unwrap();
        let promoted = KeyRing::new(2, &OTHER).with_old(1, &KEY).unwrap();
        let retired = KeyRing::new(2, &OTHER);
        let (old, new) = (seal(&before, 1, b"", b"old"), seal(&promoted, 1, b"", b"new"));
        assert_eq!(seal(&added, 1, b"", b"old"), old, "an added key does not seal");
        assert_eq!(open(&added, b"", &new).unwrap(), b"new");
        assert_eq!(open(&promoted, b"", &old).unwrap(), b"old");
        assert_eq!(open(&retired, b"", &old), Err(OpenError::UnknownKey));
    }

    #[test]
    fn tokens_of_earlier_releases_open() {
        let ring = KeyRing::new(7, &KEY);
        assert_eq!(
            BASE64URL.encode(seal(&ring, 3, b"context", b"plaintext")),
            "BwMDAwMDAwMDAwMDAwMDAwPlEvP-ZevpJFUD50V3N3dlOGmAgticqBXK"
        );
    }

    #[test]
    fn keys_are_read_from_text() {
        let padded = format!(" 7:{KEY_TEXT}= ,\n0 : {} ", BASE64URL.encode(OTHER));
        let ring = KeyRing::parse(&padded).unwrap();
        let token = seal(&KeyRing::new(7, &KEY), 1, b"", b"plaintext");
        assert_eq!(seal(&ring, 1, b"", b"plaintext"), token, "the first key seals");
        assert!(open(&ring, b"", &seal(&KeyRing::new(0, &OTHER), 1, b"", b"x")).is_ok());
        assert_eq!(format!("{ring:?}"), "KeyRing[7, 0]");
    }

    #[test]
    fn faulty_keys_are_named_with_the_remedy_and_without_the_secret() {
        let good = format!("1:{KEY_TEXT}");
        let make = "openssl rand 32 | basenc --base64url";
        for (text, at, remedy) in [
            (String::new(), "there is no key", make),
            (" \n".to_owned(), "there is no key", make),
            (format!("{good},"), "entry 2 does not begin with an id", make),
            (KEY_TEXT.to_owned(), "entry 1 does not begin with an id", make),
            (format!("256:{KEY_TEXT}"), "entry 1 does not begin with an id", make),
            (format!("{KEY_TEXT}:1"), "entry 1 does not begin with an id", make),
            (format!("{good},2:"), "entry 2 (key 2) has 0 bytes", make),
            (format!("{good},2:{}", &KEY_TEXT[..40]), "entry 2 (key 2) has 30 bytes", make),
            (format!("2:MDEy{KEY_TEXT}"), "entry 1 (key 2) has 35 bytes", make),
            (format!("2:{}+/", &KEY_TEXT[..41]), "entry 1 (key 2) is not base64url", make),
            (format!("2:{KEY_TEXT};3:x"), "entry 1 (key 2) is not base64url", make),
            (
                format!("{good},{good}"),
                "entry 2 (key 1) has the id of an earlier key",
                "id of its own",
            ),
            (
                (0..17).map(|id| format!("{id}:{KEY_TEXT}")).collect::<Vec<_>>().join(","),
                "entry 17 (key 16) is one key too many",
                "retire the oldest",
            ),
        ] {
            let error = KeyRing::parse(&text).unwrap_err();
            for shown in [error.to_string(), format!("{error:?}")] {
                assert!(shown.contains(at) && shown.contains(remedy), "{shown}");
                assert!(!shown.contains(&KEY_TEXT[..8]), "{shown}");
            }
        }
    }

    #[test]
    fn an_id_is_given_once() {
        let error = KeyRing::new(7, &KEY).with_old(7, &OTHER).unwrap_err();
        assert_eq!(error.to_string(), "key 7 has the id of an earlier key");
    }

    #[test]
    fn debug_shows_no_secret() {
        let ring = KeyRing::new(7, &KEY).with_old(200, &OTHER).unwrap();
        assert_eq!(format!("{ring:?}"), "KeyRing[7, 200]");
    }
}
