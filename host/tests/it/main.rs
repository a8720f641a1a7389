//! The host's tests, as one program.

mod attack;
mod client;
mod crash;
mod erase;
mod field;
mod floods;
mod forged;
mod hostile;
mod jail;
mod layers;
mod moments;
mod preflight;
mod processes;
mod record;
mod round;
mod secrets;
mod stage;
mod state;
mod world;
