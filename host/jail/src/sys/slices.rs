//! The time slice of the threads of this process and of those that it starts.
//!
//! Changes no priority and no share of the processors. See [`super`].

use super::checked;
use std::io;
use std::mem::size_of;

/// Nanoseconds of a slice: the shortest that the kernel allows.
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr` of the kernel, version 1.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

/// Bytes of an [`Attributes`].
const SIZE: u32 = size_of::<Attributes>() as u32;

fn attributes() -> io::Result<Attributes> {
    let mut read = Attributes::default();
    // SAFETY: the kernel writes at most `SIZE` bytes, which `read` has, and any bytes are valid numbers.
    checked(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut read, SIZE, 0) })?;
    Ok(read)
}

/// Asks for the shortest time slice, for this thread and those that it starts. The kernel then runs a thread that waited sooner after
/// its wake-up, and lets it run shorter: a round is many short steps of several processes. A kernel before Linux 6.12 ignores it.
///
/// # Errors
/// When the kernel or the machine refuses it.
pub fn ask_for_short_slices() -> io::Result<()> {
    let wanted = Attributes { size: SIZE, runtime: SLICE_NS, ..attributes()? };
    // A real-time policy of the operator has no slices.
    if !matches!(i32::try_from(wanted.policy), Ok(libc::SCHED_OTHER | libc::SCHED_BATCH)) {
        return Ok(());
    }
    // SAFETY: the kernel reads `size` bytes, which `wanted` has.
    checked(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const wanted, 0) }).map(drop)
}
