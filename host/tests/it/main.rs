//! The host's tests, as one program.

mod jail;
mod layers;
mod preflight;
mod round;
mod stage;
mod world;
