//! The listener of a jail: process 1 makes it in the network namespace of the jail, and the host accepts on it.
//!
//! No process of the jail keeps a copy. See [`crate::native::program`] for the processes that may connect to it.

use crate::launcher::wire::{self, Failure, Part, Progress, step};
use crate::{Spec, Wall, Walls, sys};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

/// Makes the listener of the spec, if it has one, and passes it to the launcher.
pub(super) fn pass(spec: &Spec, launcher: &OwnedFd, walls: Walls) -> Result<(), Failure> {
    let Some(port) = spec.listener else { return Ok(()) };
    // Without a namespace of its own, the interface is the machine's, and up already.
    if walls.has(Wall::NetworkNamespace) {
        step(Part::Network, "set the loopback interface up", sys::raise_loopback())?;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = OwnedFd::from(step(Part::Network, "listen in the jail", listener)?);
    let passed = wire::send(launcher, &Progress::Listening, Some(&listener));
    step(Part::Network, "pass the listener to the launcher", passed)
}
