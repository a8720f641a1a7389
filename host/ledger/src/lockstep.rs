//! SHA-256 of several messages in turns, block by block: a processor begins a block while that of another message is not finished.
//!
//! Two messages take about one and a half times as long as one of them. A check of many entries is the only user; see [`crate::quick`].

use ironclaw_contract::canonical::Digest;
use sha2::block_api::compress256;

/// The state before the first block (FIPS 180-4, section 5.3.3).
const INITIAL: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// Bytes of a block.
pub(super) const BLOCK_BYTES: usize = 64;

/// The hash of a message whose blocks are given one by one.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    state: [u32; 8],
    bytes: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Self { state: INITIAL, bytes: 0 }
    }
}

impl Stream {
    pub(super) fn add(&mut self, blocks: &[[u8; BLOCK_BYTES]]) {
        compress256(&mut self.state, blocks);
        self.bytes += (blocks.len() * BLOCK_BYTES) as u64;
    }

    /// Adds the last bytes, which are fewer than a block, and returns the digest.
    pub(super) fn end(mut self, rest: &[u8]) -> Digest {
        let mut padded = rest.to_vec();
        pad(&mut padded, self.bytes + rest.len() as u64);
        compress256(&mut self.state, padded.as_chunks().0);
        digest(&self.state)
    }
}

/// The hash of a message that is complete before its first block is computed.
#[derive(Debug, Default)]
pub(super) struct Message {
    padded: Vec<u8>,
    state: [u32; 8],
    /// The number of blocks that are computed.
    done: usize,
}

impl Message {
    /// Replaces the message by these parts.
    pub(super) fn set(&mut self, parts: &[&[u8]]) {
        self.padded.clear();
        parts.iter().for_each(|part| self.padded.extend_from_slice(part));
        let bytes = self.padded.len() as u64;
        pad(&mut self.padded, bytes);
        (self.state, self.done) = (INITIAL, 0);
    }

    /// Computes the next block; returns `false` if there is none.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        let Some(block) = self.padded.as_chunks().0.get(self.done) else { return false };
        compress256(&mut self.state, std::slice::from_ref(block));
        self.done += 1;
        true
    }

    /// Returns the digest; every block must be computed.
    pub(super) fn digest(&self) -> Digest {
        debug_assert_eq!(self.done * BLOCK_BYTES, self.padded.len());
        digest(&self.state)
    }
}

/// Adds the padding behind the last bytes of a message of this length (section 5.1.1).
fn pad(last: &mut Vec<u8>, bytes: u64) {
    const LENGTH_BYTES: usize = 8;
    last.push(0x80);
    last.resize((last.len() + LENGTH_BYTES).next_multiple_of(BLOCK_BYTES) - LENGTH_BYTES, 0);
    last.extend_from_slice(&(8 * bytes).to_be_bytes());
}

fn digest(state: &[u32; 8]) -> Digest {
    let mut bytes = [0; 32];
    for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    Digest::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_equals_that_of_the_library_for_each_length() {
        let text: Vec<u8> = (0..300).map(|number: u32| (number * 7) as u8).collect();
        let mut message = Message::default();
        for length in 0..text.len() {
            let text = &text[..length];
            let (first, second) = text.split_at(length / 3);
            message.set(&[first, second]);
            while message.step() {}
            assert_eq!(message.digest(), Digest::of(text), "{length} bytes");
            let mut stream = Stream::default();
            let (blocks, rest) = text.as_chunks();
            blocks.chunks(2).for_each(|blocks| stream.add(blocks));
            assert_eq!(stream.end(rest), Digest::of(text), "{length} bytes");
        }
    }
}
