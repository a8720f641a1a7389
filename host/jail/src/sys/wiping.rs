//! The allocator of the process: it wipes memory when it is freed.
//!
//! Keys and tokens pass through buffers of the HTTP libraries, which do not wipe them. Without this allocator, a copy would remain
//! in the heap after a request. See `keys` of the host for its own keys.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, with a wipe of freed memory.
struct Wiping;

#[global_allocator]
static ALLOCATOR: Wiping = Wiping;

// SAFETY: every call goes to the system's allocator with the caller's own layout. The wiped memory was allocated with that layout
// and has no owner. `realloc` is the default one: it allocates, copies and frees the old memory through `dealloc`.
unsafe impl GlobalAlloc for Wiping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller frees memory that was allocated with this layout. The compiler does not remove this call.
        unsafe {
            libc::explicit_bzero(memory.cast(), layout.size());
            System.dealloc(memory, layout);
        }
    }
}
