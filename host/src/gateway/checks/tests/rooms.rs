//! Tests of the bounds on what people and agents have: a change over one is refused when it is asked for.

use super::{Scene, on_record};
use crate::gateway::decide::proof::Approved;
use crate::gateway::writers;
use crate::registry::mcp::SERVERS_MAX;
use crate::registry::schedules::{self, Schedule, State};
use ironclaw_contract::ids::{ChangeId, ScheduleId};
use ironclaw_contract::seam::change::{CatchUp, ChangeKind, McpRegister, RunContext, WrittenBy};
use ironclaw_operator::DenialCode;
use ironclaw_state::WriteTx;
use serde_json::json;

/// Adds schedules until the owner has this number.
fn fill_schedules(tx: &mut WriteTx<'_>, scene: &Scene, count: usize) {
    for number in 0..count {
        let row = Schedule {
            id: ScheduleId::new(),
            agent: scene.clerk.id,
            creator: scene.owner,
            change: ChangeId::new(),
            name: format!("s{number}of{count}"),
            prompt: "p".to_owned(),
            written_by: WrittenBy::Person,
            kind: "every".to_owned(),
            recurrence: "1d".to_owned(),
            zone: "UTC".to_owned(),
            anchor: 0,
            catch_up: CatchUp::Skip,
            may: Vec::new(),
            flows: Vec::new(),
            context: RunContext::Fresh,
            channel: crate::registry::LOOPBACK.to_owned(),
            platform_id: scene.owner.to_string(),
            thread_id: String::new(),
            state: State::Active,
            reason: None,
            next_due: None,
            attended_at: None,
            failing_since: None,
            created_at: 0,
        };
        ironclaw_store::tables::schedules::insert(tx, &row).expect("inserted");
    }
}

#[test]
fn schedule_over_the_bound_is_refused_when_it_is_asked_for() {
    on_record(|tx, scene| {
        let wanted = || scene.by_owner(ChangeKind::Schedule, json!({ "prompt": "p", "every": "1d" }));
        fill_schedules(tx, &scene, 999);
        assert!(scene.looked(tx, wanted()).is_ok());
        let two = schedules::check_room(tx, scene.owner, 2).map_err(|denied| denied.refusal().code);
        assert_eq!(two, Err(DenialCode::ScheduleTooMany), "a skill adds several at once");
        fill_schedules(tx, &scene, 1);
        scene.refused(tx, wanted(), DenialCode::ScheduleTooMany);
        let held = schedules::all(tx).expect("read")[0].id;
        let change = scene.by_owner(ChangeKind::Schedule, json!({ "id": held, "every": "2d" }));
        assert!(scene.looked(tx, change).is_ok(), "it adds none");
    });
}

#[test]
fn mcp_server_over_the_bound_is_refused_when_it_is_asked_for() {
    on_record(|tx, scene| {
        let url = "https://mcp.example/";
        for number in 0..SERVERS_MAX {
            let server =
                McpRegister { name: format!("s{number}"), url: Some(url.to_owned()), ..McpRegister::default() };
            writers::mcp::register(tx, &Approved::by_test(scene.owner), &server, None, &[]).expect("room");
        }
        let wanted = |name: &str| {
            scene.by_owner(ChangeKind::McpRegister, json!({ "name": name, "url": "https://other.example/" }))
        };
        scene.refused(tx, wanted("more"), DenialCode::McpServersTooMany);
        assert!(scene.looked(tx, wanted("s0")).is_ok(), "it replaces one");
    });
}

#[test]
fn several_hosts_at_once_are_within_the_bound_together() {
    on_record(|tx, scene| {
        let room = |hosts: &[String]| {
            let hosts = hosts.iter().map(String::as_str).collect();
            crate::registry::egress::check_room(tx, scene.clerk.id, &hosts).map_err(|denied| denied.refusal().code)
        };
        let hosts: Vec<String> = (0..1_000).map(|number| format!("h{number}.example")).collect();
        assert_eq!(room(&hosts[..1]), Ok(()));
        assert_eq!(room(&hosts), Err(DenialCode::EgressTooMany));
        assert_eq!(room(&[]), Ok(()));
    });
}
