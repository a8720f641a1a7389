//! The routes of the API, each once: `host/src/api/paths.rs` serves them, and `ironctl/src/client.rs` requests them.
//!
//! Has no role and no handler of a route. See `docs/openapi.json` for the purpose of each.

#![allow(missing_docs, reason = "the path says what a route is for, and `docs/openapi.json` says it in a sentence")]

use super::*;
use std::marker::PhantomData;
use std::time::Duration;

/// Time for an ordinary request.
const REQUEST_SECONDS: u64 = 30;

/// Time for an emergency stop; a host that needs longer is killed.
const PANIC_SECONDS: u64 = 10;

/// Time for the launch of a session and its self-test.
const PROVE_SECONDS: u64 = 120;

/// Time for the test of an endpoint; the timeout of the host is shorter.
const TEST_SECONDS: u64 = 150;

/// Time for the listing of an MCP server; the timeout of the host is shorter.
const LOOK_SECONDS: u64 = 120;

/// Time while the host reaches sources of skills or registries of packages; the timeout of the host is shorter.
const RESOLVE_SECONDS: u64 = 180;

/// Time for the erasure of many sessions.
const ERASE_SECONDS: u64 = 120;

/// Time for the bytes of a file.
const FILE_SECONDS: u64 = 300;

/// Time for the archive of a chain of millions of entries.
const ROTATE_SECONDS: u64 = 300;

/// Time for the copy of a large record, before the first byte of a backup.
const COPY_SECONDS: u64 = 1800;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Patch,
    Delete,
}

/// A route with this number of names in its path, its body and its answer. `()` is no body, and a body may be [`Raw`].
pub struct Route<const NAMES: usize, Body, Answer> {
    pub method: Method,
    /// The path, with its names in braces.
    pub path: &'static str,
    /// The longest wait of a client for the answer.
    pub timeout: Duration,
    types: PhantomData<fn(Body) -> Answer>,
}

/// Bytes that are no JSON document, such as those of a file.
pub enum Raw {}

impl<const NAMES: usize, Body, Answer> Route<NAMES, Body, Answer> {
    const fn new(method: Method, path: &'static str) -> Self {
        let (bytes, mut at, mut names) = (path.as_bytes(), 0, 0);
        while at < bytes.len() {
            names += (bytes[at] == b'{') as usize;
            at += 1;
        }
        assert!(names == NAMES, "the type of a route has the number of the names in its path");
        Self { method, path, timeout: Duration::from_secs(REQUEST_SECONDS), types: PhantomData }
    }

    const fn within(self, seconds: u64) -> Self {
        Self { timeout: Duration::from_secs(seconds), ..self }
    }
}

/// Returns a route for reading.
pub const fn get<const NAMES: usize, Answer>(path: &'static str) -> Route<NAMES, (), Answer> {
    Route::new(Method::Get, path)
}

const fn post<const NAMES: usize, Body, Answer>(path: &'static str) -> Route<NAMES, Body, Answer> {
    Route::new(Method::Post, path)
}

const fn patch<const NAMES: usize, Body, Answer>(path: &'static str) -> Route<NAMES, Body, Answer> {
    Route::new(Method::Patch, path)
}

const fn delete<const NAMES: usize, Answer>(path: &'static str) -> Route<NAMES, (), Answer> {
    Route::new(Method::Delete, path)
}

// Agents.
pub const STATUS: Route<0, (), Status> = get("/v1/status");
pub const STOP: Route<0, (), Stopping> = post("/v1/stop");
pub const AGENTS: Route<0, (), Vec<Agent>> = get("/v1/agents");
pub const CREATE_AGENT: Route<0, NewAgent, Agent> = post("/v1/agents");
pub const AGENT: Route<1, (), Agent> = get("/v1/agents/{agent}");
pub const REMOVE_AGENT: Route<1, (), Agent> = delete("/v1/agents/{agent}");
pub const SET_MODE: Route<1, AgentMode, AgentMode> = post("/v1/agents/{agent}/mode");
pub const BUDGET: Route<1, (), AgentBudget> = get("/v1/agents/{agent}/budget");
pub const SET_BUDGET: Route<1, AgentBudget, AgentBudget> = post("/v1/agents/{agent}/budget");
pub const SET_MODEL: Route<1, AgentModel, AgentModel> = post("/v1/agents/{agent}/model");
pub const SEND_MESSAGE: Route<1, NewMessage, Recorded> = post("/v1/agents/{agent}/messages");
pub const HISTORY: Route<1, (), History> = get("/v1/agents/{agent}/history");
pub const THREADS: Route<1, (), Threads> = get("/v1/agents/{agent}/threads");
pub const UNREAD_COUNTS: Route<0, (), Vec<UnreadReplies>> = get("/v1/unread");
pub const READ_UNREAD: Route<1, (), ReadReplies> = post("/v1/agents/{agent}/unread");
pub const NOTES: Route<1, (), Notes> = get("/v1/agents/{agent}/memory");
pub const ADD_NOTE: Route<1, NewNote, Note> = post("/v1/agents/{agent}/memory");
pub const REMOVE_NOTE: Route<2, (), Note> = delete("/v1/agents/{agent}/memory/{note}");

// Changes and channels.
pub const WAITING_LIST: Route<0, (), WaitingList> = get("/v1/waiting");
pub const WAITING: Route<1, (), Waiting> = get("/v1/waiting/{id}");
pub const WAITING_TOGETHER: Route<1, (), WaitingTogether> = get("/v1/waiting/{id}/together");
pub const DECIDE: Route<1, Decision, Waiting> = post("/v1/waiting/{id}/decision");
pub const RESET_REQUESTS: Route<1, NewRequestReset, RequestReset> = post("/v1/agents/{agent}/requests/reset");
pub const PUSH_DIFF: Route<1, (), PushDiff> = get("/v1/waiting/{id}/diff");
pub const ALLOWANCES: Route<0, (), Vec<Allowance>> = get("/v1/allowances");
pub const ADD_ALLOWANCE: Route<0, NewAllowance, Allowance> = post("/v1/allowances");
pub const REVIEW_ALLOWANCE: Route<0, AllowanceDraft, AllowancePage> = post("/v1/allowances/review");
pub const ALLOWANCE_OFFERS: Route<0, (), Vec<AllowanceOffer>> = get("/v1/allowances/offers");
pub const ALLOWANCE: Route<1, (), Allowance> = get("/v1/allowances/{id}");
pub const REMOVE_ALLOWANCE: Route<1, (), Allowance> = delete("/v1/allowances/{id}");
pub const SUBMIT_CHANGE: Route<0, NewChange, SubmittedChange> = post("/v1/changes");
pub const CHANNELS: Route<0, (), Vec<Channel>> = get("/v1/channels");
pub const ADD_CHANNEL: Route<0, NewChannel, NewChannelMade> = post("/v1/channels");
pub const REMOVE_CHANNEL: Route<1, (), Channel> = delete("/v1/channels/{channel}");
pub const TEST_CHANNEL: Route<1, (), ChannelTest> = post("/v1/channels/{channel}/test");
pub const PROBE_CHANNEL: Route<1, (), ChannelProbe> = post("/v1/channels/{channel}/probe");
pub const CONNECT_AGENT: Route<1, NewWiring, Channel> = post("/v1/channels/{channel}/agents");
pub const DISCONNECT_AGENT: Route<2, (), Channel> = delete("/v1/channels/{channel}/agents/{agent}");
pub const REVIEW_OWN_SENDER: Route<2, (), PersonPage> = post("/v1/channels/{channel}/own_senders/{sender}/review");
pub const ADD_OWN_SENDER: Route<2, NewOwnSender, Channel> = post("/v1/channels/{channel}/own_senders/{sender}");
pub const END_OWN_SENDER: Route<2, (), Channel> = delete("/v1/channels/{channel}/own_senders/{sender}");
pub const DISMISS_SENDER: Route<2, (), Channel> = delete("/v1/channels/{channel}/senders/{sender}");
pub const MCP_SERVERS: Route<0, (), Vec<McpServer>> = get("/v1/mcp");
pub const MCP_SERVER: Route<1, (), McpServer> = get("/v1/mcp/{server}");
pub const LOOK_AT_MCP_SERVER: Route<1, McpLook, McpServer> = post("/v1/mcp/{server}/look").within(LOOK_SECONDS);
pub const RESOLVE_MCP_COMMAND: Route<0, McpCommand, McpResolvedCommand> =
    post("/v1/mcp-commands/resolve").within(RESOLVE_SECONDS);
pub const BEGIN_MCP_LOGIN: Route<1, NewMcpLogin, McpLoginBegun> = post("/v1/mcp/{server}/login").within(LOOK_SECONDS);
pub const FINISH_MCP_LOGIN: Route<1, McpLoginAnswer, McpServer> =
    post("/v1/mcp/{server}/login/finish").within(LOOK_SECONDS);
pub const LOG_OUT_OF_MCP_SERVER: Route<1, (), McpServer> = post("/v1/mcp/{server}/logout").within(LOOK_SECONDS);

// Schedules.
pub const SCHEDULES: Route<0, (), Vec<ScheduleView>> = get("/v1/schedules");
pub const SCHEDULE: Route<1, (), ScheduleView> = get("/v1/schedules/{id}");
pub const REMOVE_SCHEDULE: Route<1, (), ScheduleView> = delete("/v1/schedules/{id}");
pub const OCCURRENCES: Route<1, (), Vec<Occurrence>> = get("/v1/schedules/{id}/occurrences");
pub const NEXT_RUNS: Route<1, (), DryRun> = get("/v1/schedules/{id}/next");
pub const RUN_SCHEDULE: Route<1, (), Occurrence> = post("/v1/schedules/{id}/run");
pub const PAUSE_SCHEDULE: Route<1, (), ScheduleView> = post("/v1/schedules/{id}/pause");
pub const RESUME_SCHEDULE: Route<1, (), ScheduleView> = post("/v1/schedules/{id}/resume");

// Skills.
pub const SKILLS: Route<0, (), Vec<InstalledSkill>> = get("/v1/skills").within(RESOLVE_SECONDS);
pub const SKILL: Route<1, (), SkillPackage> = get("/v1/skills/{skill}").within(RESOLVE_SECONDS);
pub const INSTALL_SKILL: Route<0, InstallSkill, SubmittedChange> = post("/v1/skills/install").within(RESOLVE_SECONDS);
pub const REMOVE_SKILL: Route<0, RemoveSkill, SubmittedChange> = post("/v1/skills/remove");
pub const PIN_SKILL: Route<0, PinSkill, InstalledSkill> = post("/v1/skills/pin");
pub const SKILL_SOURCES: Route<0, (), Vec<SkillSource>> = get("/v1/skill-sources");
pub const ADD_SKILL_SOURCE: Route<0, SkillSource, Vec<SkillSource>> = post("/v1/skill-sources");
pub const REMOVE_SKILL_SOURCE: Route<1, (), Vec<SkillSource>> = delete("/v1/skill-sources/{source}");
pub const SKILL_KEYS: Route<0, (), Vec<SkillKey>> = get("/v1/skill-keys");
pub const ADD_SKILL_KEY: Route<0, NewSkillKey, SkillKey> = post("/v1/skill-keys");
pub const REMOVE_SKILL_KEY: Route<1, (), SkillKey> = delete("/v1/skill-keys/{key}");
pub const REVOKE_SKILL_KEY: Route<1, (), SkillKey> = post("/v1/skill-keys/{key}/revoke");
pub const REVOKE_SKILL: Route<0, SkillVersion, SkillVersion> = post("/v1/skill-revocations");

// Messages and sessions.
pub const DEAD_LETTERS: Route<0, (), DeadLetters> = get("/v1/dead");
pub const RETRY_DELIVERY: Route<1, (), DeadLetterDone> = post("/v1/dead/{delivery}/retry");
pub const DROP_DELIVERY: Route<1, (), DeadLetterDone> = delete("/v1/dead/{delivery}");
pub const MESSAGE: Route<1, (), MessageView> = get("/v1/messages/{id}");
pub const MESSAGE_EVENTS: Route<1, (), Raw> = get("/v1/messages/{id}/events");
pub const RETRY_MESSAGE: Route<1, (), Recorded> = post("/v1/messages/{id}/retry");
pub const WHY_MESSAGE: Route<1, (), Why> = get("/v1/messages/{id}/why");
pub const REASONING: Route<1, (), Reasoning> = get("/v1/messages/{id}/reasoning");
pub const WHY_CALL: Route<1, (), CallWhy> = get("/v1/calls/{id}/why");
pub const TOOLS: Route<0, (), Vec<Tool>> = get("/v1/tools");
pub const EGRESS: Route<0, (), Vec<EgressGrant>> = get("/v1/egress");
pub const DESTINATIONS: Route<0, (), Vec<Destination>> = get("/v1/destinations");
pub const GROUPS: Route<0, (), Vec<AgentGroup>> = get("/v1/groups");
pub const DESTINATIONS_OF_AGENT: Route<1, (), Vec<Destination>> = get("/v1/agents/{agent}/destinations");
pub const EGRESS_OF_AGENT: Route<1, (), Vec<EgressGrant>> = get("/v1/agents/{agent}/egress");
pub const TEST_CALL: Route<1, TestCall, TestedCall> = post("/v1/tools/{tool}/test");
pub const EXPLAIN_CALL: Route<1, ExplainCall, ExplainedCall> = post("/v1/tools/{tool}/explain");
pub const MANIFEST_SCHEMA: Route<0, (), ManifestSchema> = get("/v1/tools/schema");
pub const TEST_SCOPE: Route<0, TestScope, TestedScope> = post("/v1/scope/test");
pub const REPORT: Route<0, (), Report> = get("/v1/report");
pub const USAGE: Route<0, (), Usage> = get("/v1/usage");
pub const LEDGER_HEAD: Route<0, (), LedgerHead> = get("/v1/audit/head");
pub const ACCEPT_BREAK: Route<0, AcceptBreak, BreakAccepted> = post("/v1/audit/accept").within(ROTATE_SECONDS);
pub const ROTATE_LEDGER: Route<0, (), Rotated> = post("/v1/audit/rotate").within(ROTATE_SECONDS);
pub const BACK_UP: Route<0, (), Raw> = post("/v1/backup").within(COPY_SECONDS);
pub const NOTE_VERIFIED_BACKUP: Route<1, (), NotedBackup> = post("/v1/backups/{id}/verified");
pub const PANIC: Route<0, (), Panicked> = post("/v1/panic").within(PANIC_SECONDS);
pub const RESUME: Route<0, (), Resumed> = post("/v1/resume");
pub const SESSIONS: Route<0, (), Vec<Session>> = get("/v1/sessions");
pub const SESSION: Route<1, (), Session> = get("/v1/sessions/{id}");
pub const REMOVE_SESSION: Route<1, (), Session> = delete("/v1/sessions/{id}");
pub const TRANSCRIPT: Route<1, (), Transcript> = get("/v1/sessions/{id}/transcript");
pub const SESSION_REPLIES: Route<1, (), SessionReplies> = get("/v1/sessions/{id}/replies");
pub const CANCEL_TURN: Route<1, (), Cancelled> = post("/v1/sessions/{id}/cancel");
pub const STOP_SESSION: Route<1, (), Session> = post("/v1/sessions/{id}/stop");
pub const RELEASE_SESSION: Route<1, (), Session> = post("/v1/sessions/{id}/release");
pub const PROVE_SESSION: Route<1, (), Proof> = post("/v1/sessions/{id}/prove").within(PROVE_SECONDS);

// Files.
pub const CONVERSATION: Route<1, (), Conversation> = get("/v1/agents/{agent}/session");
pub const OPEN_CONVERSATION: Route<1, NewConversation, Conversation> = post("/v1/agents/{agent}/session");
pub const FILES: Route<1, (), FileList> = get("/v1/sessions/{id}/files");
pub const PUT_FILE: Route<1, Raw, FileStored> = post("/v1/sessions/{id}/files").within(FILE_SECONDS);
pub const REMOVE_FILE: Route<1, (), FileRemoved> = delete("/v1/sessions/{id}/files");
pub const FILE_HISTORY: Route<1, (), FileHistory> = get("/v1/sessions/{id}/files/history");
pub const RESTORE_FILE: Route<1, FileRestore, FileRestored> = post("/v1/sessions/{id}/files/restore");
pub const SENT_FILE: Route<1, (), Raw> = get("/v1/calls/{id}/file").within(FILE_SECONDS);
pub const FILE: Route<1, (), Raw> = get("/v1/sessions/{id}/files/content").within(FILE_SECONDS);

// People and models.
pub const WHOAMI: Route<0, (), Whoami> = get("/v1/whoami");
pub const PEOPLE: Route<0, (), Vec<Person>> = get("/v1/people");
pub const ADD_PERSON: Route<0, NewPerson, Person> = post("/v1/people");
pub const PERSON: Route<1, (), Person> = get("/v1/people/{person}");
pub const REMOVE_PERSON: Route<1, (), RemovedPerson> = delete("/v1/people/{person}").within(ERASE_SECONDS);
pub const SET_ROLE: Route<1, NewRole, Person> = post("/v1/people/{person}/role");
pub const REVIEW_ROLE: Route<1, NewRole, PersonPage> = post("/v1/people/{person}/role/review");
pub const SET_PLACE: Route<1, NewPlace, Person> = post("/v1/people/{person}/notify");
pub const LINK_IDENTITY: Route<1, NewIdentity, Person> = post("/v1/people/{person}/identities");
pub const REVIEW_LINK: Route<1, NewIdentity, PersonPage> = post("/v1/people/{person}/identities/review");
pub const UNLINK_IDENTITY: Route<2, (), Person> = delete("/v1/people/{person}/identities/{identity}");
pub const SECRETS: Route<0, (), Vec<Secret>> = get("/v1/secrets");
pub const SET_SECRET: Route<0, NewSecret, Secret> = post("/v1/secrets");
pub const ROTATE_SECRET: Route<1, NewSecretValue, Secret> = post("/v1/secrets/{secret}/rotate");
pub const REMOVE_SECRET: Route<1, (), Secret> = delete("/v1/secrets/{secret}");
pub const MODELS: Route<0, (), Vec<Model>> = get("/v1/models");
pub const ADD_MODEL: Route<0, NewModel, KeptModel> = post("/v1/models").within(TEST_SECONDS);
pub const PRESETS: Route<0, (), Vec<ModelPreset>> = get("/v1/presets");
pub const MODEL: Route<1, (), ModelDetails> = get("/v1/models/{model}");
pub const SET_MODEL_SETTINGS: Route<1, SettingsOfModel, ModelDetails> = patch("/v1/models/{model}");
pub const REMOVE_MODEL: Route<1, (), Model> = delete("/v1/models/{model}");
pub const TEST_MODEL: Route<1, (), TestedModel> = post("/v1/models/{model}/test").within(TEST_SECONDS);
pub const SET_DEFAULT_MODEL: Route<1, (), KeptModel> = post("/v1/models/{model}/default");
pub const TOKENS: Route<0, (), Vec<Token>> = get("/v1/tokens");
pub const ADD_TOKEN: Route<0, NewToken, IssuedToken> = post("/v1/tokens");
pub const REMOVE_TOKEN: Route<1, (), Token> = delete("/v1/tokens/{id}");
pub const ROTATE_TOKEN: Route<1, (), IssuedToken> = post("/v1/tokens/{id}/rotate");
pub const CONSOLE_CODE: Route<0, NewConsoleCode, ConsoleCode> = post("/v1/console/codes");
pub const ALLOW_DIRECTORY: Route<0, NewAllowed, Reloaded> = post("/v1/config/mounts");
pub const REVIEW_ALLOWED: Route<0, NewAllowed, PersonPage> = post("/v1/config/mounts/review");
pub const RELOAD_CONFIG: Route<0, (), Reloaded> = post("/v1/config/reload");
pub const AUDIT_CONFIG: Route<0, (), ConfigurationAudit> = get("/v1/config/audit").within(RESOLVE_SECONDS);
pub const METRICS: Route<0, (), Raw> = get("/metrics");
pub const HEALTH: Route<0, (), Health> = get("/healthz");
pub const READINESS: Route<0, (), Readiness> = get("/readyz");
