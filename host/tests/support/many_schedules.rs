//! Schedules in the record of a stopped host, made by the host's own code.
//!
//! Starts no run. See `chaos::schedules` and `benches/schedules`.

use super::host_fixture::TestHost;
use super::record;
use ironclaw_calendar::Series;
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId, ScheduleId};
use ironclaw_contract::seam::change::{CatchUp, RunContext, WrittenBy};
use ironclaw_host::driven::{LOOPBACK, find_agent, schedules};
use ironclaw_state::{Error, State};

/// Returns the row of an active schedule whose first time is after its anchor. Its replies go to a thread of its own.
pub(crate) fn row((agent, creator): (AgentId, PersonId), series: &Series, catch_up: CatchUp) -> schedules::Schedule {
    let id = ScheduleId::new();
    schedules::Schedule {
        id,
        name: id.to_string(),
        agent,
        creator,
        change: ChangeId::new(),
        prompt: "echo water".to_owned(),
        written_by: WrittenBy::Person,
        kind: series.recurrence.kind().as_str().to_owned(),
        recurrence: series.recurrence.to_string(),
        zone: series.zone.name().to_owned(),
        anchor: series.anchor,
        catch_up,
        may: Vec::new(),
        flows: Vec::new(),
        context: RunContext::Continue,
        channel: LOOPBACK.to_owned(),
        platform_id: creator.to_string(),
        thread_id: id.to_string(),
        state: schedules::State::Active,
        reason: None,
        next_due: series.next_after(series.anchor),
        attended_at: None,
        failing_since: None,
        created_at: series.anchor,
    }
}

/// Adds this number of schedules to an existing agent, each of another creator, who may be unknown.
pub(crate) fn make_schedules(host: &TestHost, agent: &str, count: usize, series: &Series) {
    let master = record::master(&host.home);
    let (agent, series) = (agent.to_owned(), series.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let state = State::open(&host.home.join("state.db"), &master.state_key()).expect("the state opens");
        let make = state.write(move |tx| {
            let agent = find_agent(tx, &agent)?.expect("an agent");
            for _ in 0..count {
                schedules::insert(tx, &row((agent.id, PersonId::new()), &series, CatchUp::Skip))?;
            }
            Ok::<_, Error>(())
        });
        make.await.expect("schedules are made");
        state.close().await;
    });
}
