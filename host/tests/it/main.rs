//! The host's tests, as one program.

mod authority;
mod budget;
mod changes;
mod changes_random;
mod client;
mod clocks;
mod commands;
mod crash;
mod crowd;
mod erase;
#[path = "../escape/escape.rs"]
mod escape;
mod failures;
mod hooks;
mod jail;
mod journal;
mod keys;
mod kinds;
mod layers;
mod memory;
mod metrics;
mod migration;
mod model_cli;
#[path = "../../examples/model_server/server.rs"]
#[allow(dead_code, reason = "the program to try things with uses more of it")]
mod model_server;
mod model_tries;
mod models;
mod moments;
mod mounts;
mod operators;
mod packages;
mod packages_change;
mod port;
mod preflight;
mod processes;
mod promises;
mod prove;
mod record;
mod rotation;
mod round;
mod scale;
mod secret_store;
mod secrets;
mod shortages;
mod stage;
mod state;
mod stops;
mod storm;
mod streaming;
mod tamper;
mod told;
mod walls;
mod webhook;
mod weeks;
mod world;
