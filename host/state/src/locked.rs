//! One page of memory that is never swapped out and never in a core dump.
//!
//! Holds the root secret of the seals and nothing else. See [`crate::seal`].
#![allow(unsafe_code)]

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mlock, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

const PAGE_BYTES: usize = 4096;

/// 32 secret bytes on a page of their own.
pub struct LockedSecret(NonNull<c_void>);

// SAFETY: the page belongs to this value alone and is only read after it was filled.
unsafe impl Send for LockedSecret {}
// SAFETY: as above; reading shared memory from several threads is sound.
unsafe impl Sync for LockedSecret {}

impl LockedSecret {
    /// A page with these bytes; `fill` writes them in place.
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
        // SAFETY: the page is writable, 4096 bytes long, and nobody else has a reference to it yet.
        fill(unsafe { secret.0.cast::<[u8; 32]>().as_mut() }).map_err(Error::Fill)?;
        Ok(secret)
    }

    /// The bytes.
    pub fn expose(&self) -> &[u8; 32] {
        // SAFETY: the page lives as long as self, was filled in `new`, and is never written again.
        unsafe { self.0.cast::<[u8; 32]>().as_ref() }
    }
}

impl Drop for LockedSecret {
    fn drop(&mut self) {
        // SAFETY: the page is ours, writable and 4096 bytes long; nobody has a reference any more.
        unsafe {
            zeroize::Zeroize::zeroize(self.0.cast::<[u8; 32]>().as_mut());
            // Nothing can be done about a failure here, and the process goes on without the page's contents.
            let _ = munmap(self.0, PAGE_BYTES);
        }
    }
}

/// Why there is no locked page.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// The system locks no memory for us.
    #[error("cannot lock one page of memory ({0}): raise the limit, `ulimit -l 64` or LimitMEMLOCK=64K")]
    Lock(nix::Error),
    /// There are no random bytes.
    #[error(transparent)]
    Fill(E),
}
