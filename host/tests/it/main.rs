//! The host's tests, as one program.

mod client;
mod crash;
mod jail;
mod layers;
mod preflight;
mod processes;
mod record;
mod round;
mod stage;
mod world;
