//! Many sessions at once in the record of a stopped host, made by the host's own code.
//!
//! Wakes no session and sends no message. See `chaos::scale` and `benches/idle`.

use super::host_fixture::TestHost;
use super::record;
use ironclaw_host::driven::sessions::{self, Origin};
use ironclaw_host::driven::{Denied, Error, LOOPBACK, find_agent, owner};
use ironclaw_state::State;
pub(crate) fn name(agent: usize) -> String {
    format!("agent-{agent}")
}

/// Creates sessions of existing agents, as the first message to each of their threads would.
pub(crate) fn make_sessions(host: &TestHost, agents: usize, threads: usize) {
    let master = record::master(&host.home);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let state = State::open(&host.home.join("state.db"), &master.state_key()).expect("the state opens");
        let wrapping = master.wrapping_key();
        let make = state.write(move |tx| {
            let owner = owner(tx)?.expect("an owner");
            for agent in 0..agents {
                let agent = find_agent(tx, &name(agent))?.expect("an agent");
                for thread in 0..threads {
                    let (channel, address) = (LOOPBACK.to_owned(), owner.to_string());
                    let origin = Origin::from_sender(channel, address, format!("t{thread}"));
                    sessions::find_or_create(tx, &agent, &origin, owner, u32::MAX, &wrapping)?;
                }
            }
            Ok::<_, Denied<Error>>(())
        });
        make.await.expect("sessions are made");
        state.close().await;
    });
}
