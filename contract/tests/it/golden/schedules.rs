//! Golden samples of schedules and their occurrences.

use super::seam::id;
use super::{Shape, shape, word};
use ironclaw_contract::ids::{ChangeId, MessageId, PersonId, ScheduleId};
use ironclaw_contract::seam::change::{self, CatchUp, Flow, FlowSource, ReplyTo, RunContext, WrittenBy};
use ironclaw_operator::{
    DryRun, NextRun, Occurrence, OccurrenceOf, OccurrenceState, ScheduleFlow, ScheduleState, ScheduleView,
};

pub(super) fn shapes() -> Vec<Shape> {
    let (schedule, due) = (id::<ScheduleId>("sch", 1), "2026-11-18T07:00:00.000Z".to_owned());
    let local = "2026-11-18T08:00:00+01:00[Europe/Berlin]".to_owned();
    let flow = ScheduleFlow {
        tool: "send_message".to_owned(),
        to: "me".to_owned(),
        recipient: "desk:7".to_owned(),
        from: vec!["/notes".to_owned()],
        lost: None,
    };
    let shown = ScheduleView {
        id: schedule,
        name: "water-the-plants".to_owned(),
        agent: "clerk".to_owned(),
        creator: "olga".to_owned(),
        prompt: "water the plants".to_owned(),
        written_by: WrittenBy::Person,
        recurrence: "cron 0 8 * * *".to_owned(),
        zone: "Europe/Berlin".to_owned(),
        catch_up: CatchUp::Once,
        may: vec!["write".to_owned()],
        flows: vec![flow.clone()],
        context: RunContext::Fresh,
        reply_to: "desk:7".to_owned(),
        state: ScheduleState::Active,
        reason: None,
        remedy: None,
        next: Some(due.clone()),
        next_local: Some(local.clone()),
        failing_since: None,
        last: None,
        change: id::<ChangeId>("chg", 1),
        created_at: "2026-11-17T08:00:00.000Z".to_owned(),
    };
    let occurrence = Occurrence {
        due: due.clone(),
        due_local: local.clone(),
        state: OccurrenceState::Done,
        reason: None,
        message: Some(id::<MessageId>("msg", 1)),
        receipt: Some("dlv_00000000000000000000000001".to_owned()),
        count: 1,
        by: None,
    };
    let skipped = Occurrence {
        state: OccurrenceState::Skipped,
        reason: Some("missed".to_owned()),
        message: None,
        receipt: None,
        count: 17,
        ..occurrence.clone()
    };
    let paused = ScheduleView {
        state: ScheduleState::Paused,
        reason: Some("flow_writable".to_owned()),
        remedy: Some("agent b may write to /srv/notes: `ironctl agent revoke-dir b /srv/notes`".to_owned()),
        next: None,
        next_local: None,
        last: Some(skipped.clone()),
        ..shown.clone()
    };
    let failing = ScheduleView {
        failing_since: Some(due.clone()),
        last: Some(Occurrence {
            state: OccurrenceState::Failed,
            reason: Some("call_refused".to_owned()),
            receipt: None,
            ..occurrence.clone()
        }),
        ..shown.clone()
    };
    let dry = DryRun {
        id: schedule,
        next: vec![NextRun { due: due.clone(), local }],
        may: vec!["write".to_owned()],
        flows: vec![flow.clone()],
        reply_to: "desk:7".to_owned(),
        refused: None,
        remedy: None,
    };
    let of = OccurrenceOf { schedule, due, state: OccurrenceState::Failed, reason: Some("delivery".to_owned()) };
    vec![
        shape("operator.schedule_view", shown),
        shape("operator.schedule_view.paused", paused),
        shape("operator.schedule_view.failing", failing),
        shape("operator.schedule_flow", flow),
        shape("operator.occurrence", occurrence),
        shape("operator.occurrence.skipped", skipped),
        shape("operator.next_run", dry.next[0].clone()),
        shape("operator.dry_run", dry),
        shape("operator.occurrence_of", of),
        word("words.run_context", RunContext::ALL),
        shape("schedule", payload()),
        shape("schedule.flow", flows()[0].clone()),
        shape("schedule.flow_source", flows()[0].from[0].clone()),
        shape("schedule.reply_to", payload().reply_to.expect("a conversation")),
    ]
}

fn flows() -> Vec<Flow> {
    let source = FlowSource { directory: "/notes".to_owned(), source: Some("/home/olga/notes".to_owned()) };
    vec![Flow {
        to: "me".to_owned(),
        from: vec![source],
        tool: Some("send_message".to_owned()),
        recipient: Some("desk:7".to_owned()),
        thread: None,
    }]
}

fn payload() -> change::Schedule {
    change::Schedule {
        id: None,
        name: Some("water-the-plants".to_owned()),
        prompt: Some("water the plants".to_owned()),
        cron: Some("0 8 * * *".to_owned()),
        zone: Some("Europe/Berlin".to_owned()),
        catch_up: Some(CatchUp::Once),
        may: Some(vec!["write".to_owned()]),
        flows: Some(flows()),
        context: Some(RunContext::Fresh),
        reply_to: Some(ReplyTo { channel: "desk".to_owned(), address: "7".to_owned(), thread: None }),
        from: Some("2026-11-17T08:00:00.000Z".to_owned()),
        creator: Some(id::<PersonId>("per", 1)),
        written_by: Some(WrittenBy::Person),
        ..change::Schedule::default()
    }
}
