//! One page of memory that is never swapped out and never in a core dump.
//!
//! Holds the root secret of the seals and nothing else. See [`crate::seal`].
#![allow(unsafe_code)]

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mlock, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

const PAGE_BYTES: usize = 4096;

/// A page of memory with 32 secret bytes.
pub struct LockedSecret(NonNull<c_void>);

// SAFETY: the page belongs to this value alone and is only read after it was filled.
unsafe impl Send for LockedSecret {}
// SAFETY: as above; reading shared memory from several threads is sound.
unsafe impl Sync for LockedSecret {}

impl LockedSecret {
    /// Allocates and locks a page; `fill` writes the secret in place.
    ///
    /// # Errors
    /// When the system has no page to lock (`ulimit -l` is 0).
    pub fn new<E>(fill: impl FnOnce(&mut [u8; 32]) -> Result<(), E>) -> Result<Self, Error<E>> {
        let length = NonZeroUsize::new(PAGE_BYTES).expect("4096 is not 0");
        // SAFETY: a fresh private anonymous mapping at an address of the kernel's choice touches no other memory.
        let page = unsafe {
            mmap_anonymous(None, length, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_PRIVATE)
        }
        .map_err(Error::Lock)?;
        let secret = Self(page);
        // SAFETY: the mapping is ours and PAGE_BYTES long.
        unsafe {
            mlock(page, PAGE_BYTES).map_err(Error::Lock)?;
            madvise(page, PAGE_BYTES, MmapAdvise::MADV_DONTDUMP).map_err(Error::Lock)?;
            madvise(page, PAGE_BYTES, MmapAdvise::MADV_DONTFORK).map_err(Error::Lock)?;
        }
        // SAFETY: the page is writable, 4096 bytes long, and no other reference to it exists yet.
        fill(unsafe { secret.0.cast::<[u8; 32]>().as_mut() }).map_err(Error::Fill)?;
        Ok(secret)
    }

    /// Returns the secret bytes.
    pub fn expose(&self) -> &[u8; 32] {
        // SAFETY: the page lives as long as self, was filled in `new`, and is never written again.
        unsafe { self.0.cast::<[u8; 32]>().as_ref() }
    }
}

impl Drop for LockedSecret {
    fn drop(&mut self) {
        // SAFETY: the page is ours, writable and 4096 bytes long; no other reference to it exists.
        unsafe {
            zeroize::Zeroize::zeroize(self.0.cast::<[u8; 32]>().as_mut());
            // A failure cannot be handled here; the content of the page is wiped already.
            let _ = munmap(self.0, PAGE_BYTES);
        }
    }
}

/// The reason that a page cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// The system refuses to lock memory.
    #[error("cannot lock one page of memory ({0}): raise the limit, `ulimit -l 64` or LimitMEMLOCK=64K")]
    Lock(nix::Error),
    /// There are no random bytes.
    #[error(transparent)]
    Fill(E),
}
