//! One sample of every answer of the operator's API, and of every body that it accepts. Every value is fixed. See `seam`.

use super::calls::lowered;
use super::seam::{digest, id};
use super::{Shape, audit, files, shape, shape_by_bytes, skills, transcripts};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, MemoryId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::ledger_entry::Kind;
use ironclaw_contract::seam::change::{
    Access, AgentRole, Engage, GuardMode, Ignored, Senders, Sharing, UnknownSenders,
};
use ironclaw_contract::seam::message;
use ironclaw_contract::seam::seal::Label;
use ironclaw_operator::{
    Agent, AgentAbilities, AgentBudget, AgentMcp, AgentMember, AgentMode, AgentMount, AgentPackages, AgentScope,
    AgentWiring, Attempt, Bound, Cancelled, ChainLink, Check, Class, Control, DamagedSkill, Failure, History,
    HistoryLine, HostStatus, JailReport, LedgerLine, MessageFile, MessageImage, MessageView, ModelFailure, NewAgent,
    NewMessage, NewNote, Note, Notes, OwnSource, Panicked, Preflight, Principal, Proof, ReadReplies, ReaderStatus,
    Receipt, Recorded, Resumed, Run, Session, SessionPhase, SessionStatus, ShownReply, SlotCounts, SmallContext,
    Speaker, Stage, StageOutcome, Status, Stopped, UnreadReplies, UnreadReply, Why,
};
use std::collections::BTreeMap;

pub(super) const AT: &str = "2026-11-18T11:06:40.123Z";

pub(super) fn session_id() -> SessionId {
    id::<SessionId>("ses", 1)
}

fn failure_by_bound() -> Failure {
    let mut failure = Failure::new("call_asked_too_often", "5 of at most 5 wait", "decide on them");
    failure.error.bound = Some(Box::new(super::requests::bound()));
    failure
}

fn message_id() -> MessageId {
    id::<MessageId>("msg", 1)
}

fn jail() -> JailReport {
    JailReport {
        namespaces: BTreeMap::from([("net".to_owned(), 4_026_532_281), ("user".to_owned(), 4_026_532_280)]),
        own_namespaces: vec!["user".to_owned(), "net".to_owned()],
        seccomp: 2,
        seccomp_filters: 2,
        capabilities: BTreeMap::from([("effective".to_owned(), "0000000000000000".to_owned())]),
        no_new_privs: true,
        landlock: true,
        landlock_abi: 7,
        interfaces: vec!["lo down".to_owned()],
        uid: 200_001,
        gid: 200_001,
        root: vec!["in".to_owned(), "out".to_owned()],
        mounts: vec!["/in ro".to_owned()],
    }
}

fn awake() -> SessionStatus {
    SessionStatus {
        id: session_id(),
        agent: "clerk".to_owned(),
        state: SessionPhase::Awake,
        reason: None,
        mode: GuardMode::Enforce,
        origin: format!("loopback:{}", id::<PersonId>("per", 1)),
        waiting: 1,
        pid: Some(4711),
        jail: Some(jail()),
        reader: Some(ReaderStatus { pid: 4712, jail: jail() }),
    }
}

fn parked() -> SessionStatus {
    let reason = Some("three launches failed in a row".to_owned());
    SessionStatus { state: SessionPhase::Parked, reason, pid: None, jail: None, reader: None, ..awake() }
}

fn delivered() -> MessageView {
    MessageView {
        message_id: message_id(),
        session_id: session_id(),
        turn_id: Some(id::<TurnId>("trn", 1)),
        status: message::Status::Delivered,
        reply: Some("Done.".to_owned()),
        notice: false,
        receipt: Receipt::Received,
        reason: None,
        calls: vec![super::requests::call()],
        shown: ShownReply::default(),
        sources: None,
    }
}

fn recorded(message: Option<MessageView>) -> Recorded {
    Recorded { message_id: message_id(), session_id: session_id(), message: message.map(Box::new) }
}

fn waiting() -> MessageView {
    let reason = Some("the session is parked".to_owned());
    let (status, receipt) = (message::Status::Queued, Receipt::Pending);
    MessageView { turn_id: None, status, reply: None, receipt, reason, calls: Vec::new(), ..delivered() }
}

fn stage() -> Stage {
    Stage {
        seq: 12,
        at: AT.to_owned(),
        stage: "message.recorded".to_owned(),
        outcome: StageOutcome::Done,
        reason: String::new(),
    }
}

fn places() -> SlotCounts {
    SlotCounts { awake: 3, awake_max: 64, waiting: 0 }
}

fn stops() -> Vec<Shape> {
    let stopped = Stopped { since: AT.to_owned(), by: "owner".to_owned() };
    let cancelled = Cancelled {
        session_id: session_id(),
        turn_id: id::<TurnId>("trn", 1),
        messages: vec![message_id()],
        running: true,
    };
    vec![
        shape("operator.stopped", stopped.clone()),
        shape("operator.panicked", Panicked { stopped, sessions: 3, gone: true }),
        shape("operator.resumed", Resumed { resumed: true }),
        shape("operator.cancelled", cancelled),
        shape("operator.places", places()),
    ]
}

pub(super) fn shapes() -> Vec<Shape> {
    let groups =
        [host(), agents(), messages(), transcripts::all(), files::all(), memory(), ledger(), stops(), skills::all()];
    groups.into_iter().flatten().collect()
}

fn host() -> Vec<Shape> {
    let socket = "/run/user/1000/ironclaw/api.sock".to_owned();
    let run = Run { pid: 4710, socket, version: "0.1.0".to_owned(), listen: None };
    let host = HostStatus {
        version: "0.1.0".to_owned(),
        pid: 4710,
        home: "/home/alice/.local/state/ironclaw".to_owned(),
        started_at: AT.to_owned(),
        fingerprint: digest(0xf1).to_string(),
        launcher_pid: 4709,
        ledger_entries: 42,
        warnings: vec!["ses_x runs in the mode dangerous_warn".to_owned()],
        zone: "Europe/Berlin".to_owned(),
        zone_doubt: None,
    };
    let attempt = Attempt {
        group: "sockets".to_owned(),
        name: "open a TCP socket".to_owned(),
        expected: "refused".to_owned(),
        observed: "EPERM".to_owned(),
        wall: "seccomp".to_owned(),
        contained: true,
    };
    let control = Control {
        wall: "seccomp".to_owned(),
        caught: true,
        noticed: 92,
        by: vec!["open a TCP socket".to_owned(), "make a user namespace".to_owned()],
    };
    let check = |ok, remedy: &str| Check {
        name: "user namespaces".to_owned(),
        ok,
        found: "AppArmor restricts them".to_owned(),
        remedy: remedy.to_owned(),
    };
    let remedy = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0";
    let full = Session {
        status: awake(),
        person: Some(id::<PersonId>("per", 1)),
        person_name: Some("Alice".to_owned()),
        channel: "loopback".to_owned(),
        asked_by: None,
        title: Some("Look what changed".to_owned()),
        thread: "work".to_owned(),
        created_at: AT.to_owned(),
        last_active_at: AT.to_owned(),
        last_used_ms: 1_795_000_000_123,
        items: 7,
        turn_id: Some(id::<TurnId>("trn", 1)),
        failures: 0,
    };
    let sessions = vec![awake(), parked()];
    vec![
        shape("operator.run.port", Run { listen: Some("127.0.0.1:8787".to_owned()), ..run.clone() }),
        shape("operator.run", run),
        shape("operator.failure", Failure::new("agent_unknown", "there is no agent `clerk`", "ironctl agent list")),
        shape("operator.failure.bound", failure_by_bound()),
        shape("operator.failure.bare", Failure::new("agent_unknown", "there is no agent `clerk`", "")),
        shape_by_bytes(
            "operator.status",
            &Status {
                host,
                sessions,
                stopped: None,
                places: places(),
                waiting: vec![
                    ironclaw_operator::WaitingCount { kind: ironclaw_operator::WaitingKind::Call, count: 1 },
                    ironclaw_operator::WaitingCount { kind: ironclaw_operator::WaitingKind::Change, count: 2 },
                ],
                replies_unread: 3,
                without_place: vec!["Bob".to_owned()],
                bounds: vec![Bound::new("schedules of one person", 1000, 900, "remove some")],
                lowered: vec![lowered()],
                small_contexts: vec![SmallContext {
                    model: "local".to_owned(),
                    tokens: 4096,
                    sentence: "the model of endpoint local reads only about 4096 tokens".to_owned(),
                    learned_at: AT.to_owned(),
                }],
                damaged_skills: vec![DamagedSkill {
                    name: "weather".to_owned(),
                    version: "1.0.0".to_owned(),
                    agents: vec!["clerk".to_owned()],
                }],
            },
        ),
        shape_by_bytes("operator.session_status.awake", &awake()),
        shape_by_bytes("operator.session_status.parked", &parked()),
        shape_by_bytes(
            "operator.session",
            &Session {
                status: parked(),
                person: None,
                person_name: None,
                channel: "agent".to_owned(),
                asked_by: Some("reader".to_owned()),
                title: None,
                thread: String::new(),
                turn_id: None,
                failures: 3,
                ..full.clone()
            },
        ),
        shape_by_bytes("operator.session.turn", &full),
        shape("operator.jail_report", jail()),
        shape("operator.attempt", attempt.clone()),
        shape("operator.control", control.clone()),
        shape_by_bytes(
            "operator.proof",
            &Proof {
                attempts: vec![attempt.clone()],
                stock: vec![attempt.clone()],
                reader: vec![attempt.clone()],
                server: vec![attempt.clone()],
                commands: vec![attempt],
                controls: vec![control],
            },
        ),
        shape("operator.check", check(true, "")),
        shape_by_bytes(
            "operator.preflight",
            &Preflight { ok: false, checks: vec![check(false, remedy)], features: Vec::new() },
        ),
    ]
}

fn agents() -> Vec<Shape> {
    let new = NewAgent {
        name: "clerk".to_owned(),
        model: Some("scripted".to_owned()),
        persona: Some("You keep the books.".to_owned()),
        enabled_tools: Some(vec!["read_file".to_owned()]),
    };
    let agent = Agent {
        id: id::<AgentId>("agt", 1),
        name: "clerk".to_owned(),
        model: "scripted".to_owned(),
        follows_default: true,
        persona: "You keep the books.".to_owned(),
        enabled_tools: vec!["read_file".to_owned()],
        always_asked: Vec::new(),
        created_at: AT.to_owned(),
        sessions: 1,
        access: Access::Members,
        roles: vec![AgentMember { person: id::<PersonId>("per", 1), name: "Alice".to_owned(), role: AgentRole::Admin }],
        mounts: vec![AgentMount {
            source: "/srv/data".to_owned(),
            target: "/data".to_owned(),
            read_only: true,
            mine: Some(OwnSource { person: "Alice".to_owned(), lost: Some("written".to_owned()) }),
        }],
        packages: Some(AgentPackages {
            apt: vec!["jq".to_owned()],
            npm: vec!["left-pad".to_owned()],
            pypi: vec!["mypy==1.2.3".to_owned()],
            layer: digest(1),
            made_at: AT.to_owned(),
        }),
        wirings: vec![AgentWiring {
            channel: "shop".to_owned(),
            engage: Engage::Pattern,
            pattern: Some("^!clerk".to_owned()),
            from: Senders::Known,
            unknown: UnknownSenders::Strict,
            ignored: Ignored::Accumulate,
            sharing: Sharing::Thread,
        }],
        mcp: vec![AgentMcp { server: "files".to_owned(), tools: vec!["read".to_owned()] }],
        abilities: None,
    };
    let scope =
        AgentScope { principal: Principal::Schedule, may: vec![Class::Read, Class::Ask], unasked: vec![Class::Read] };
    let abilities = AgentAbilities {
        mode: GuardMode::Enforce,
        automatic_tools: vec!["send_message".to_owned()],
        hosts: Vec::new(),
        destinations: Vec::new(),
        groups: Vec::new(),
        skills: Vec::new(),
        schedules: Vec::new(),
        allowances: Vec::new(),
        ceilings: AgentBudget { tokens_per_day: Some(1000), cost_per_day_micros: None },
        scopes: vec![scope.clone()],
    };
    vec![
        shape_by_bytes(
            "operator.new_agent.bare",
            &NewAgent { model: None, persona: None, enabled_tools: None, ..new.clone() },
        ),
        shape_by_bytes("operator.new_agent", &new),
        shape("operator.agent.abilities", Agent { abilities: Some(abilities.clone()), ..agent.clone() }),
        shape("operator.agent_abilities", abilities),
        shape("operator.agent_scope", scope),
        shape("operator.agent", agent),
        shape_by_bytes("operator.agent_mode", &AgentMode { mode: "enforce".to_owned() }),
    ]
}

fn link() -> ChainLink {
    ChainLink { session: session_id(), agent: "assistant".to_owned(), message: message_id(), hop: 1 }
}

fn messages() -> Vec<Shape> {
    let new = NewMessage {
        text: "What stands in the notes?".to_owned(),
        files: vec![
            MessageFile { name: "notes.md".to_owned(), text: "# Notes\n".to_owned(), ..Default::default() },
            MessageFile {
                name: "photo.png".to_owned(),
                text: "This image is in the workspace as photo.png (9 bytes, image/png).".to_owned(),
                image: Some(MessageImage { path: "photo.png".to_owned(), digest: Digest::of(b"photo") }),
                ..Default::default()
            },
            MessageFile {
                name: "table.pdf".to_owned(),
                data: Some("JVBERi0xLjc=".to_owned()),
                media_type: Some("application/pdf".to_owned()),
                ..Default::default()
            },
        ],
        event_id: Some("client-7".to_owned()),
        speak_as: Some("loopback:alice-work".to_owned()),
        thread: Some("work".to_owned()),
        quoted: vec!["See you at five.".to_owned()],
        allow: vec!["send".to_owned()],
        untyped: false,
    };
    let why = Why {
        occurrence: None,
        message: delivered(),
        stages: vec![stage()],
        progress: vec!["msg_01ka0000000000000000000000 processing at 2026-11-21T10:00:00.000Z".to_owned()],
        failure: None,
        words: vec![],
        chain: vec![link()],
        has_written_call: false,
        summary: "it was answered and the answer arrived".to_owned(),
    };
    let refused = Stage { outcome: StageOutcome::Refused, reason: "it belongs to no open turn".to_owned(), ..stage() };
    let unread = UnreadReplies {
        entry_type: "replies".to_owned(),
        agent: "assistant".to_owned(),
        session_id: session_id(),
        thread: None,
        count: 2,
        newest_at: AT.to_owned(),
    };
    let reply = UnreadReply {
        session_id: session_id(),
        thread: Some("work".to_owned()),
        schedule: None,
        at: AT.to_owned(),
        author: Speaker::Agent,
        text: "Done.".to_owned(),
        shown_as: None,
    };
    vec![
        shape_by_bytes(
            "operator.new_message.bare",
            &NewMessage { files: vec![], event_id: None, speak_as: None, thread: None, ..new.clone() },
        ),
        shape_by_bytes("operator.new_message", &new),
        shape("operator.chain_link", link()),
        shape_by_bytes("operator.recorded", &recorded(None)),
        shape_by_bytes("operator.recorded.answered", &recorded(Some(delivered()))),
        shape_by_bytes("operator.message_view.delivered", &delivered()),
        shape_by_bytes(
            "operator.message_view.sources",
            &MessageView {
                shown: transcripts::shown(),
                sources: Some(Box::new(transcripts::sources())),
                ..delivered()
            },
        ),
        shape_by_bytes("operator.message_view.waiting", &waiting()),
        shape("operator.stage", stage()),
        shape("operator.stage.refused", refused),
        shape_by_bytes(
            "operator.why.failed",
            &Why {
                failure: Some(ModelFailure {
                    code: "late".to_owned(),
                    message: "the model endpoint `m` did not finish its answer in time".to_owned(),
                }),
                words: vec![super::models::endpoint_words()],
                ..why.clone()
            },
        ),
        shape_by_bytes("operator.why", &why),
        shape_by_bytes(
            "operator.history_line",
            &HistoryLine { at: AT.to_owned(), author: Speaker::Person, text: "Hello".to_owned(), shown_as: None },
        ),
        shape("operator.unread_replies", unread),
        shape_by_bytes(
            "operator.history",
            &History {
                lines: vec![HistoryLine {
                    at: AT.to_owned(),
                    author: Speaker::Agent,
                    text: "Hello".to_owned(),
                    shown_as: None,
                }],
                more: true,
            },
        ),
        shape("operator.read_replies", ReadReplies { replies: vec![reply.clone()], more: false }),
        shape("operator.unread_reply", reply),
    ]
}

fn memory() -> Vec<Shape> {
    let note = Note {
        id: id::<MemoryId>("mem", 1),
        at: AT.to_owned(),
        author: "model".to_owned(),
        principal: id::<PersonId>("per", 1),
        session_id: Some(session_id()),
        labels: vec![Label::LlmDerived],
        text: "The office closes at six.".to_owned(),
    };
    vec![
        shape("operator.note.bare", Note { session_id: None, ..note.clone() }),
        shape("operator.notes", Notes { notes: vec![note.clone()], more: true }),
        shape("operator.note", note),
        shape("operator.new_note", NewNote { text: "The office closes at six.".to_owned() }),
    ]
}

fn ledger() -> Vec<Shape> {
    let data = serde_json::json!({ "at": AT, "stage": "message.recorded" });
    let canonical = ironclaw_contract::canonical::to_string(&data);
    let line =
        LedgerLine { seq: 3, kind: Kind::Claim.name().to_owned(), data, hash: digest(0xc1).to_string(), canonical };
    let mut shapes = super::every!(Kind {
        "ledger.kind.genesis": Kind::Genesis => Kind::Genesis;
        "ledger.kind.boot": Kind::Boot => Kind::Boot;
        "ledger.kind.claim": Kind::Claim => Kind::Claim;
        "ledger.kind.verify": Kind::Verify => Kind::Verify;
        "ledger.kind.retract": Kind::Retract => Kind::Retract;
        "ledger.kind.meta": Kind::Meta => Kind::Meta;
    });
    shapes.push(shape("ledger.line", line));
    shapes.extend(audit::shapes());
    shapes
}
