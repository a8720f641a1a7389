//! Tests of turns, from the first bell to the last row.

use crate::host::{Host, LIMITS, call};
use ironclaw_contract::ids::TurnId;
use ironclaw_contract::seam::inbound::Turn;
use ironclaw_contract::seam::link::TurnLimits;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_contract::seam::socket::{Item, Purpose, RefusalCode, Request, Response, Verdict};

/// Opens a turn with one message, and receives its request to the model.
fn begun(limits: TurnLimits) -> (Host, Turn) {
    let mut host = Host::welcomed(limits);
    let message = host.project("hello");
    let turn = host.open(&[&message]);
    assert_eq!(host.asked_to_generate(), [message.seal.seq]);
    (host, turn)
}

/// Checks that the turn ends with exactly this row, and that the sandbox still answers the next turn.
#[track_caller]
fn ends_with(mut host: Host, turn: &Turn, content: &str) {
    host.bell();
    assert_eq!(host.said(), [(content.to_owned(), turn.turn.to_string())]);
    host.ring();
    host.close_turn();
    let message = host.project("again");
    let next = host.open(&[&message]);
    let refs = host.asked_to_generate();
    assert_eq!(refs.last(), Some(&message.seal.seq));
    let reply = host.answer_output(1, Vec::new());
    host.bell();
    let said = host.said();
    assert_eq!(said.len(), 2);
    assert_eq!(said[1], (format!(r#"{{"reply":"{}"}}"#, reply.item), next.turn.to_string()));
    host.close().expect("a clean end");
}

#[test]
fn items_of_the_last_request_are_named_by_a_range() {
    let mut host = Host::welcomed(LIMITS);
    for (expected, parts) in [(&[2][..], 1), (&[2, 4, 6], 3), (&[2, 4, 6, 8, 10], 3)] {
        let message = host.project("hello");
        host.open(&[&message]);
        assert_eq!(host.asked_to_generate(), expected);
        assert_eq!(host.parts.get(), parts, "a single item keeps its ref");
        host.answer_output(1, Vec::new());
        host.bell();
        host.close_turn();
    }
    let message = host.project("hello");
    host.open(&[&message]);
    host.asked_to_generate();
    host.answer(refused(RefusalCode::Unknown));
    assert_eq!(host.asked_to_generate().last(), Some(&message.seal.seq));
    assert_eq!(host.parts.get(), host.named.borrow().len(), "the host forgot the request");
    host.answer_output(1, Vec::new());
    host.bell();
    host.close().expect("a clean end");
}

fn refused(code: RefusalCode) -> Response {
    Response::Refused { code, message: "no".into() }
}

#[test]
fn message_gets_one_row_that_names_the_output() {
    let mut host = Host::welcomed(LIMITS);
    let (first, second) = (host.project("hello"), host.project("and"));
    let turn = host.open(&[&first, &second]);
    assert_eq!(host.asked_to_generate(), [2, 4]);
    let output = host.answer_output(5, Vec::new());
    host.bell();
    let rows = host.rows();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row.content, format!(r#"{{"reply":"{}"}}"#, output.item));
    assert_eq!(row.turn, turn.turn.to_string());
    let notes = host.found().progress;
    let notes: Vec<_> = notes.iter().map(|note| (note.message.as_str(), note.status.as_str())).collect();
    assert_eq!(notes, [(second.seal.item.message().to_string().as_str(), "completed")], "only the reply is committed");
    host.close().expect("a clean end");
}

#[test]
fn calls_run_in_order_and_results_join_the_next_request() {
    let (mut host, turn) = begun(LIMITS);
    let refusal = host.sealed(ItemKind::Result);
    let calls = vec![
        call("exec", "{}", Verdict::Refused { item: refusal, bytes: 10 }),
        call("write_file", r#"{"content":"note","path":"a/n.txt"}"#, Verdict::Local),
        call("schedule_task", r#"{"prompt":"p","recurrence":"daily"}"#, Verdict::Row),
        call("send_message", r#"{"text":"hi","to":"family"}"#, Verdict::Await),
    ];
    host.answer_output(0, calls.clone());

    let local = Request::Report {
        turn: turn.turn,
        call_id: calls[1].call_id,
        ok: true,
        body: "wrote 4 bytes to a/n.txt, which has 4 bytes now".into(),
    };
    assert_eq!(host.asked(), local);
    assert_eq!(std::fs::read_to_string(host.paths.workspace.join("a/n.txt")).expect("written"), "note");
    host.answer_result(20);
    host.bell();
    assert_eq!(host.asked(), Request::Result { turn: turn.turn, call_id: calls[2].call_id });
    let row = format!(r#"{{"call":"{}"}}"#, calls[2].call_id);
    assert_eq!(host.said(), [(row, turn.turn.to_string())]);
    host.answer_result(20);
    assert_eq!(host.asked(), Request::Result { turn: turn.turn, call_id: calls[3].call_id });
    host.answer_result(20);
    assert_eq!(host.asked_to_generate(), [2, 4, 6, 8, 10, 12]);
    let progress = host.found().progress;
    assert_eq!((progress.len(), progress[0].status.as_str()), (1, "processing"));
    assert_eq!(progress[0].message, turn.messages[0].to_string());
    let output = host.answer_output(5, Vec::new());
    host.bell();
    let rows = host.rows();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 3], "a call that the host runs makes no row");
    assert_eq!(rows[1].content, format!(r#"{{"reply":"{}"}}"#, output.item));
    host.close().expect("a clean end");
}

#[test]
fn failed_local_tool_is_reported_as_failed() {
    let (mut host, turn) = begun(LIMITS);
    let refused = call("read_file", r#"{"path":"../../etc/passwd"}"#, Verdict::Local);
    host.answer_output(0, vec![refused.clone()]);
    match host.asked() {
        Request::Report { call_id, ok: false, body, turn: of } => {
            assert!(body.contains("`..` is not allowed"), "{body}");
            assert_eq!((call_id, of), (refused.call_id, turn.turn));
        }
        other => panic!("{other:?}"),
    }
    host.answer_result(20);
    host.asked_to_generate();
    assert_eq!(host.found().progress[0].status, "processing", "a turn without a row records its work");
    assert!(host.rows().is_empty());
    host.answer_output(1, Vec::new());
    host.bell();
    host.close().expect("a clean end");
}

#[test]
fn too_many_tool_calls_end_the_turn_before_any_of_them_runs() {
    let (mut host, turn) = begun(LIMITS);
    let write = |n: u32| call("write_file", &format!(r#"{{"content":"","path":"{n}"}}"#), Verdict::Local);
    host.answer_output(0, (0..5).map(write).collect());
    let workspace = host.paths.workspace.clone();
    ends_with(host, &turn, r#"{"end":"tool_calls"}"#);
    assert_eq!(std::fs::read_dir(workspace).map_or(0, Iterator::count), 0);
}

#[test]
fn too_many_requests_to_the_model_end_the_turn() {
    let (mut host, turn) = begun(LIMITS);
    for round in 0..LIMITS.model_calls_max {
        if round > 0 {
            host.asked_to_generate();
        }
        host.answer_output(0, vec![call("list_dir", "{}", Verdict::Local)]);
        host.asked();
        host.answer_result(1);
    }
    ends_with(host, &turn, r#"{"end":"model_calls"}"#);
}

#[test]
fn too_many_bytes_of_results_end_the_turn() {
    let (mut host, turn) = begun(LIMITS);
    host.answer_output(0, vec![call("list_dir", "{}", Verdict::Local)]);
    host.asked();
    host.answer_result(LIMITS.result_bytes_max + 1);
    ends_with(host, &turn, r#"{"end":"bytes"}"#);
}

#[test]
fn turn_larger_than_the_context_ends() {
    let (mut host, turn) = begun(TurnLimits { context_bytes_max: 100, ..LIMITS });
    host.answer_output(0, vec![call("list_dir", "{}", Verdict::Local)]);
    host.asked();
    host.answer_result(101);
    host.bell();
    assert_eq!(host.said(), [(r#"{"end":"bytes"}"#.to_owned(), turn.turn.to_string())]);
    host.ring();
    host.close_turn();
    // The next turn first requests a summary of the items that fit. It continues without a summary.
    let message = host.project("again");
    let next = host.open(&[&message]);
    assert_eq!(
        host.asked_for(Purpose::Compact).len(),
        2,
        "the first message and the output, without the result that does not fit"
    );
    host.answer(Response::Refused { code: RefusalCode::Model, message: "it failed".to_owned() });
    assert_eq!(host.asked_to_generate(), [message.seal.seq], "an output without its message is omitted");
    let reply = host.answer_output(1, Vec::new());
    host.bell();
    assert_eq!(host.said()[1], (format!(r#"{{"reply":"{}"}}"#, reply.item), next.turn.to_string()));
    host.close().expect("a clean end");
}

#[test]
fn summary_replaces_the_items_that_it_covers() {
    let (mut host, _) = begun(TurnLimits { context_bytes_max: 100, ..LIMITS });
    let long = host.answer_output(95, Vec::new());
    host.bell();
    host.ring();
    host.close_turn();
    let message = host.project("again");
    let next = host.open(&[&message]);
    let covered = host.asked_for(Purpose::Compact);
    assert!(covered.contains(&long.seq) && !covered.contains(&message.seal.seq), "{covered:?}");
    let summary = host.sealed(ItemKind::Summary);
    host.answer(Response::Output { item: summary.clone(), bytes: 10, calls: Vec::new() });
    assert_eq!(host.asked_to_generate(), [message.seal.seq, summary.seq]);
    let reply = host.answer_output(1, Vec::new());
    host.bell();
    assert_eq!(host.said()[1], (format!(r#"{{"reply":"{}"}}"#, reply.item), next.turn.to_string()));
    host.close().expect("a clean end");
}

#[test]
fn request_that_the_model_does_not_read_becomes_shorter() {
    let (mut host, _) = begun(LIMITS);
    host.answer_output(20, Vec::new());
    host.bell();
    host.ring();
    host.close_turn();
    let second = host.project("hello");
    host.open(&[&second]);
    assert_eq!(host.asked_to_generate().len(), 3);
    let newest = host.answer_output(20, Vec::new());
    host.bell();
    host.ring();
    host.close_turn();
    let message = host.project("again");
    let next = host.open(&[&message]);
    assert_eq!(host.asked_to_generate().len(), 5);
    host.answer(refused(RefusalCode::Frame));
    let covered = host.asked_for(Purpose::Compact);
    assert!(covered.len() > 1 && !covered.contains(&message.seal.seq), "{covered:?}");
    host.answer(refused(RefusalCode::Frame));
    let fewer = host.asked_for(Purpose::Compact);
    assert!(fewer.len() < covered.len() && covered.starts_with(&fewer), "{fewer:?} of {covered:?}");
    let summary = host.sealed(ItemKind::Summary);
    host.answer(Response::Output { item: summary.clone(), bytes: 10, calls: Vec::new() });
    let mut named = host.asked_to_generate();
    assert!(named.contains(&summary.seq) && named.contains(&message.seal.seq), "{named:?}");
    // The messages of the turn are never left out.
    while named != [message.seal.seq] {
        host.answer(refused(RefusalCode::Frame));
        let shorter = host.asked_to_generate();
        assert!(
            shorter.len() < named.len() && shorter.contains(&message.seal.seq),
            "{shorter:?} of {named:?}, {newest:?}"
        );
        named = shorter;
    }
    let reply = host.answer_output(1, Vec::new());
    host.bell();
    assert_eq!(host.said()[2], (format!(r#"{{"reply":"{}"}}"#, reply.item), next.turn.to_string()));
    host.close().expect("a clean end");
}

#[test]
fn turn_past_its_deadline_ends() {
    let mut host = Host::welcomed(LIMITS);
    let message = host.project("hello");
    let turn = host.open_until(&[&message], 1);
    ends_with(host, &turn, r#"{"end":"time"}"#);
}

#[test]
fn empty_output_ends_the_turn() {
    let (mut host, turn) = begun(LIMITS);
    host.answer_output(0, Vec::new());
    ends_with(host, &turn, r#"{"end":"empty"}"#);
}

#[test]
fn message_missing_from_the_queue_ends_the_turn() {
    let mut host = Host::welcomed(LIMITS);
    let mut message = host.project("hello");
    message.seal.item = ironclaw_contract::ids::ItemId::new();
    let turn = host.open(&[&message]);
    ends_with(host, &turn, r#"{"end":"failed"}"#);
}

#[test]
fn refusal_ends_the_turn_without_a_retry() {
    for (code, reason) in [
        (RefusalCode::Budget, "model_calls"),
        (RefusalCode::Model, "model"),
        (RefusalCode::Seal, "failed"),
        (RefusalCode::Order, "failed"),
        (RefusalCode::Unavailable, "failed"),
    ] {
        let (host, turn) = begun(LIMITS);
        host.answer(refused(code));
        ends_with(host, &turn, &format!(r#"{{"end":"{reason}"}}"#));
    }
    for (code, reason) in [(RefusalCode::Budget, "bytes"), (RefusalCode::Call, "failed")] {
        let (mut host, turn) = begun(LIMITS);
        host.answer_output(0, vec![call("list_dir", "{}", Verdict::Local)]);
        host.asked();
        host.answer(refused(code));
        ends_with(host, &turn, &format!(r#"{{"end":"{reason}"}}"#));
    }
}

#[test]
fn answer_to_another_request_ends_the_turn() {
    let (mut host, turn) = begun(LIMITS);
    host.answer_result(1);
    ends_with(host, &turn, r#"{"end":"failed"}"#);
}

#[test]
fn turn_closed_by_the_host_writes_no_row() {
    let close_then_answer: [fn(&mut Host); 3] = [
        |host| {
            host.answer_output(1, Vec::new());
        },
        |host| {
            host.answer_output(0, vec![call("write_file", r#"{"content":"","path":"n"}"#, Verdict::Local)]);
        },
        |host| host.answer(refused(RefusalCode::Turn)),
    ];
    for answer in close_then_answer {
        let (mut host, _) = begun(LIMITS);
        host.close_turn();
        answer(&mut host);
        let next = begun_after(&mut host);
        assert!(host.rows().is_empty());
        assert!(!host.paths.workspace.join("n").exists(), "a call of the closed turn ran");
        let reply = host.answer_output(1, Vec::new());
        host.bell();
        assert_eq!(host.said(), [(format!(r#"{{"reply":"{}"}}"#, reply.item), next.to_string())]);
        host.close().expect("a clean end");
    }
}

fn begun_after(host: &mut Host) -> TurnId {
    let message = host.project("next");
    let turn = host.open(&[&message]);
    assert_eq!(host.asked_to_generate().last(), Some(&message.seal.seq));
    turn.turn
}

#[test]
fn end_of_the_link_ends_the_sandbox_during_a_request() {
    let (mut host, _) = begun(LIMITS);
    host.close().expect("a clean end");
    assert!(host.rows().is_empty());
}

#[test]
fn broken_connection_is_opened_again_once() {
    let (mut host, turn) = begun(LIMITS);
    host.hang_up();
    host.asked_to_generate();
    host.answer_output(0, vec![call("list_dir", "{}", Verdict::Local)]);
    host.asked();
    host.hang_up();
    host.asked();
    host.hang_up();
    ends_with(host, &turn, r#"{"end":"failed"}"#);
}

#[test]
fn several_bells_for_one_turn_count_as_one() {
    let mut host = Host::welcomed(LIMITS);
    for _ in 0..5 {
        host.ring();
    }
    let message = host.project("hello");
    let turn = host.open(&[&message]);
    assert_eq!(host.asked_to_generate(), [message.seal.seq]);
    for _ in 0..5 {
        host.ring();
    }
    let reply = host.answer_output(1, Vec::new());
    ends_with(host, &turn, &format!(r#"{{"reply":"{}"}}"#, reply.item));
}

#[test]
fn earlier_items_and_context_are_seen_in_order_and_once() {
    let mut host = Host::prepare();
    let first = host.project("first");
    let output = host.sealed(ItemKind::Output);
    let of_another = host.project("of another");
    let waiting = host.project("waits");
    let earlier = TurnId::new();
    for (reference, bytes) in [(first.seal.clone(), 5), (output, 7), (of_another.seal.clone(), 10)] {
        let item = Item { reference, bytes, turn: Some(earlier) };
        host.items.lock().expect("not poisoned").push(item);
    }
    host.launch();
    host.say(&crate::host::welcome(LIMITS));
    host.bell();
    host.open(&[&waiting]);
    assert_eq!(host.asked_to_generate(), [2, 4, 6, 8]);
    host.answer_output(1, Vec::new());
    host.bell();
    host.close().expect("a clean end");
}

#[test]
fn items_are_listed_only_if_one_is_missing() {
    let mut host = Host::welcomed(LIMITS);
    for (expected, has_notice) in [(vec![2], false), (vec![2, 4, 6], false), (vec![2, 4, 6, 8, 10, 12], true)] {
        if has_notice {
            let reference = host.sealed(ItemKind::Notice);
            host.items.lock().expect("not poisoned").push(Item { reference, bytes: 6, turn: None });
        }
        let message = host.project("hello");
        host.open(&[&message]);
        assert_eq!(host.asked_to_generate(), expected);
        host.answer_output(1, Vec::new());
        host.bell();
        host.close_turn();
    }
    assert_eq!(*host.listed.lock().expect("not poisoned"), [0, 6], "the first turn, and the one after a notice");
    host.close().expect("a clean end");
}
