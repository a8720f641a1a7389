//! Memory that is wiped when it is given back.
//!
//! Keys and tokens pass through buffers of the HTTP libraries, which do not wipe them: after a request a copy would stay in the
//! heap until something else takes its place. See `keys` of the host, for what the host itself keeps.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which wipes what is given back.
struct Wiping;

#[global_allocator]
static ALLOCATOR: Wiping = Wiping;

// SAFETY: every call goes to the system's allocator with the caller's own layout. The wiped memory was allocated with that layout
// and has no owner. `realloc` is the default one: it allocates, copies and gives the old memory back through `dealloc`.
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
        // SAFETY: the caller gives back what was allocated with this layout. The call is one that the compiler does not leave out.
        unsafe {
            libc::explicit_bzero(memory.cast(), layout.size());
            System.dealloc(memory, layout);
        }
    }
}
