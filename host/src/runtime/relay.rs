//! A slow link for the benchmark: it forwards bells on ticks, as if both sides polled.
//!
//! Compiled only with the feature `relay`, which no release has. It forwards the frames of a handshake at once.

use ironclaw_contract::seam::link::BELL;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Puts a relay into the link if `IRONCLAW_RELAY_MS` sets a tick.
pub fn put_between(link: UnixStream) -> std::io::Result<UnixStream> {
    let Some(tick) = std::env::var("IRONCLAW_RELAY_MS").ok().and_then(|tick| tick.parse().ok()) else {
        return Ok(link);
    };
    let (ours, relays) = UnixStream::pair()?;
    let ((from_sandbox, to_sandbox), (from_host, to_host)) = (link.into_split(), relays.into_split());
    tokio::spawn(forward(from_sandbox, to_host, tick));
    tokio::spawn(forward(from_host, to_sandbox, tick));
    Ok(ours)
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, tick_ms: u64) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let bytes = &bytes[..count];
        if bytes.iter().all(|&byte| byte == BELL) {
            // The next tick of a clock with an unknown phase comes after a random part of its period.
            let phase = getrandom::u64().unwrap_or(0) % (tick_ms * 1000);
            tokio::time::sleep(Duration::from_micros(phase)).await;
        }
        if to.write_all(bytes).await.is_err() {
            return;
        }
    }
}
