//! The host's tests, as one program.

mod attack;
mod forged;
mod hostile;
mod jail;
mod layers;
mod preflight;
mod round;
mod stage;
mod world;
