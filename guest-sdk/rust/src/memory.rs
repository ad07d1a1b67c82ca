// SPDX-License-Identifier: Apache-2.0
//! The block of linear memory that the host writes requests to.
#![allow(unsafe_code)]

/// Memory that each call reuses, aligned to 8 bytes. It grows and is never freed, so in
/// the steady state nothing is allocated.
#[derive(Default)]
pub(crate) struct Block {
    /// `u64` guarantees the alignment, `u8` would not.
    words: Vec<u64>,
}

impl Block {
    /// Makes room for `n` bytes, with undefined content. An address stays valid unless
    /// the block must grow.
    pub(crate) fn reserve(&mut self, n: usize) -> &mut [u8] {
        let need = (n + 7) / 8;
        if need > self.words.len() {
            self.words = vec![0; (need + need / 4).max(512)];
        }
        &mut self.bytes_mut()[..n]
    }

    /// All bytes of the block.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the words are initialized, bytes need no alignment, and the slice
        // borrows the block.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), 8 * self.words.len()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; every bit pattern is a valid word.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), 8 * self.words.len()) }
    }
}

/// The address of `b` in linear memory; 0 if it is empty. The result has no meaning on a
/// machine with 64-bit pointers.
pub(crate) fn address(b: &[u8]) -> u32 {
    if b.is_empty() {
        return 0;
    }
    b.as_ptr() as usize as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_stays_where_it_is_until_it_is_too_small() {
        let mut block = Block::default();
        let at = block.reserve(1).as_ptr();
        assert_eq!(at as usize % 8, 0);
        assert_eq!(block.reserve(4096).as_ptr(), at);
        block.reserve(4097)[4096] = 7;
        assert_eq!(block.bytes()[4096], 7);
        assert_eq!(block.bytes().len() % 8, 0);
        assert_eq!(address(&[]), 0);
    }
}
