//! The list of the API's routes with their roles and handlers.
//!
//! See [`ironclaw_operator::routes`] for the paths and their types, [`super::routes`] for the entry of a route.

use super::body::{MESSAGE_BYTES_MAX, TEXT_BYTES_MAX};
use super::chat::{conversation, follow, history, messages, reasoning, threads, unread, why};
use super::routes::{Route, open_to_all, route};
use super::{
    abilities, agents, allowances, audit, backup, calls, changes, channels, configuration, console, dead_letters,
    destinations, explanation, files, groups, health, mcp, memory, models, openapi, people, replies, report, schedules,
    scope, secrets, sessions, settings, skills, status, stops, tokens, transcript, usage, waiting,
};
use crate::registry::Role::{Admin, Member, Owner};
use ironclaw_operator::FILE_PUT_BYTES_MAX;
use ironclaw_operator::routes::*;

/// The document of the API, whose type is no part of the contract.
const DOCUMENT: ironclaw_operator::routes::Route<0, (), openapi::Document> = get("/openapi.json");

/// Returns every path of the API, with the least role that may use it and its purpose.
///
/// There is no other list: the API has exactly these paths, and its document shows all of them. After a change, `IRONCLAW_GOLDEN=write`
/// rewrites `docs/openapi.json`.
pub(super) fn routes() -> Vec<Route> {
    [
        routes_of_agents(),
        routes_of_waiting_and_channels(),
        routes_of_messages_and_sessions(),
        routes_of_schedules(),
        routes_of_skills(),
        routes_of_files(),
        routes_of_people_and_models(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn routes_of_agents() -> Vec<Route> {
    vec![
        route(STATUS, Admin, "The daemon and every session", status::status),
        route(STOP, Admin, "Stop the daemon in order", status::stop),
        route(AGENTS, Member, "Every agent that the caller may talk to", agents::list),
        route(CREATE_AGENT, Admin, "Create an agent", agents::create),
        route(AGENT, Member, "One agent, by name or id", abilities::show),
        route(REMOVE_AGENT, Admin, "Remove an agent, and erase its sessions", agents::remove),
        route(SET_MODE, Admin, "Set the guard mode of an agent", agents::set_mode),
        route(BUDGET, Admin, "An agent's own ceilings", usage::agent_budget),
        route(SET_BUDGET, Admin, "Set an agent's own ceilings; 0 removes one", usage::set),
        route(SET_MODEL, Admin, "Set the model endpoint of an agent", agents::set_model),
        route(SEND_MESSAGE, Member, "Send a message to an agent", messages::send).up_to(MESSAGE_BYTES_MAX),
        route(HISTORY, Member, "The caller's conversation with an agent", history::history),
        route(THREADS, Member, "The caller's conversations with an agent", threads::threads),
        route(UNREAD_COUNTS, Member, "The number of unread replies of the caller's conversations", unread::counts),
        route(READ_UNREAD, Member, "The unread replies of an agent; they then count as read", unread::read),
        route(NOTES, Admin, "The notes of an agent", memory::list),
        route(ADD_NOTE, Admin, "Add a note to an agent's memory", memory::add),
        route(REMOVE_NOTE, Admin, "Erase a note of an agent", memory::forget),
    ]
}

fn routes_of_waiting_and_channels() -> Vec<Route> {
    vec![
        route(WAITING_LIST, Member, "What waits or waited for people, and that the caller may see", waiting::list),
        route(WAITING, Member, "One of these, with its page", waiting::show),
        route(WAITING_TOGETHER, Member, "The page of the calls that wait together with a call", waiting::together),
        route(DECIDE, Member, "Approve exactly the shown page, reject, or answer", waiting::decide),
        route(PUSH_DIFF, Member, "The diff of a push that waits, in parts", waiting::diff),
        route(
            RESET_REQUESTS,
            Member,
            "Begin the counts of an agent's approval requests anew; a member only of their own",
            waiting::reset,
        ),
        route(REPORT, Member, "Calls and requests of a time; a member sees only their own", report::show),
        route(ALLOWANCES, Member, "Allowances; a member sees only their own", allowances::list),
        route(ADD_ALLOWANCE, Member, "Add an allowance for the caller exactly as shown", allowances::add),
        route(REVIEW_ALLOWANCE, Member, "The page of a new allowance; records nothing", allowances::review),
        route(ALLOWANCE_OFFERS, Member, "Repetitions that the caller approved on several days", allowances::offers),
        route(ALLOWANCE, Member, "One allowance", allowances::show),
        route(REMOVE_ALLOWANCE, Member, "Remove an allowance; a member only their own", allowances::remove),
        route(SUBMIT_CHANGE, Member, "Propose a change of an agent", changes::submit),
        route(CHANNELS, Admin, "Every channel besides the loopback", channels::list),
        route(ADD_CHANNEL, Admin, "Create a channel; only this answer has its secret", channels::add),
        route(REMOVE_CHANNEL, Admin, "Remove a channel with its secret", channels::remove),
        route(TEST_CHANNEL, Admin, "Send a signed test to a channel", channels::test),
        route(PROBE_CHANNEL, Admin, "Connect to a channel's receiver, without a request", channels::probe),
        route(CONNECT_AGENT, Admin, "Connect an agent to a channel", channels::connect),
        route(DISCONNECT_AGENT, Admin, "Disconnect an agent from a channel", channels::disconnect),
        route(
            REVIEW_OWN_SENDER,
            Admin,
            "The page of a sender that the caller calls theirs; records nothing",
            channels::own_senders::review,
        ),
        route(ADD_OWN_SENDER, Admin, "Call the text of a sender yours", channels::own_senders::add),
        route(END_OWN_SENDER, Admin, "Count the text of a sender as text of others again", channels::own_senders::end),
        route(DISMISS_SENDER, Admin, "End the wait of a sender", channels::dismiss),
        route(MCP_SERVERS, Admin, "Every MCP server of the catalogue, with the agents that have its tools", mcp::list),
        route(MCP_SERVER, Admin, "One MCP server, with the table of its tools", mcp::show),
        route(LOOK_AT_MCP_SERVER, Admin, "Ask an MCP server for its tools now", mcp::look).up_to(TEXT_BYTES_MAX),
        route(
            RESOLVE_MCP_COMMAND,
            Admin,
            "Find the exact packages and the program of a command that fetches its program; registers nothing",
            mcp::resolve_command,
        )
        .up_to(TEXT_BYTES_MAX),
        route(BEGIN_MCP_LOGIN, Admin, "Begin a login at an MCP server with OAuth", mcp::begin_login),
        route(
            FINISH_MCP_LOGIN,
            Admin,
            "Complete a login with the address to which the issuer sent the browser",
            mcp::finish_login,
        ),
        route(LOG_OUT_OF_MCP_SERVER, Admin, "Remove the tokens of the login at an MCP server", mcp::log_out),
    ]
}

fn routes_of_schedules() -> Vec<Route> {
    vec![
        route(SCHEDULES, Member, "Schedules; a member sees only their own", schedules::list),
        route(SCHEDULE, Member, "One schedule", schedules::show),
        route(REMOVE_SCHEDULE, Member, "Remove a schedule; a member only their own", schedules::remove),
        route(OCCURRENCES, Member, "The occurrences of a schedule, oldest first", schedules::history),
        route(NEXT_RUNS, Member, "The next ten times of a schedule; starts nothing", schedules::next),
        route(RUN_SCHEDULE, Member, "Start a run of a schedule now", schedules::run),
        route(PAUSE_SCHEDULE, Member, "Pause a schedule", schedules::pause),
        route(RESUME_SCHEDULE, Member, "Resume a paused schedule", schedules::resume),
    ]
}

fn routes_of_skills() -> Vec<Route> {
    vec![
        route(SKILLS, Admin, "The skills of an agent", skills::list),
        route(SKILL, Admin, "Resolve and verify a skill; changes nothing of an agent", skills::show),
        route(INSTALL_SKILL, Admin, "Propose to install a skill, or another version of it", skills::install),
        route(REMOVE_SKILL, Admin, "Propose to remove a skill with its grants", skills::remove),
        route(PIN_SKILL, Admin, "Keep a skill of an agent at its version, or let it change", skills::pin),
        route(SKILL_SOURCES, Admin, "The sources of skills", skills::sources),
        route(ADD_SKILL_SOURCE, Owner, "Add a source of skills", skills::add_source),
        route(REMOVE_SKILL_SOURCE, Owner, "Remove a source of skills", skills::remove_source),
        route(SKILL_KEYS, Admin, "The keys whose signatures of skills count", skills::keys),
        route(ADD_SKILL_KEY, Owner, "Add a key whose signatures of skills count", skills::add_key),
        route(REMOVE_SKILL_KEY, Owner, "Remove a key that no installed skill needs", skills::remove_key),
        route(REVOKE_SKILL_KEY, Owner, "Revoke a key for good", skills::revoke_key),
        route(REVOKE_SKILL, Owner, "Revoke a version of a skill for good", skills::revoke_version),
    ]
}

fn routes_of_messages_and_sessions() -> Vec<Route> {
    vec![
        route(DEAD_LETTERS, Member, "Dead letters; a member sees only their own", dead_letters::list),
        route(RETRY_DELIVERY, Member, "Send a dead letter again", dead_letters::retry),
        route(DROP_DELIVERY, Member, "Drop a dead letter", dead_letters::drop_dead_letter),
        route(MESSAGE, Member, "A message of the caller with its status; `last` for the newest", messages::message),
        route(MESSAGE_EVENTS, Member, "A stream of the stages of a message", follow::events),
        route(RETRY_MESSAGE, Member, "Retry a message that was answered by a notice", messages::retry),
        route(WHY_MESSAGE, Member, "The outcome of a message, and its reason", why::why),
        route(REASONING, Member, "The thoughts of the model beside its outputs for a message", reasoning::show),
        route(WHY_CALL, Member, "The judgement of a tool call of the caller, and its outcome", calls::why),
        route(TOOLS, Admin, "Every tool with its manifest", calls::tools),
        route(EGRESS, Admin, "The granted hosts of the network of every agent", calls::egress),
        route(DESTINATIONS, Admin, "The destinations of every agent", destinations::all),
        route(GROUPS, Admin, "The trust groups of agents", groups::all),
        route(DESTINATIONS_OF_AGENT, Admin, "The destinations of an agent", destinations::list_for_agent),
        route(EGRESS_OF_AGENT, Admin, "The granted hosts of the network of an agent", calls::egress_of),
        route(TEST_CALL, Admin, "Judge a call without making it", calls::test),
        route(
            EXPLAIN_CALL,
            Admin,
            "Explain a call without making it: its judgement at each kind of request",
            explanation::explain,
        ),
        route(MANIFEST_SCHEMA, Admin, "The JSON Schema of manifests of tools", calls::schema),
        route(TEST_SCOPE, Admin, "Measure the lexicon over labelled requests", scope::test).up_to(TEXT_BYTES_MAX),
        route(USAGE, Member, "The usage of models, and the ceilings; a member sees only their own", usage::show),
        route(LEDGER_HEAD, Admin, "The head of the ledger, signed", audit::head),
        route(ACCEPT_BREAK, Owner, "Accept that heads or archives know another history", audit::accept),
        route(ROTATE_LEDGER, Admin, "Begin a new chain of the ledger", audit::rotate),
        route(BACK_UP, Owner, "Make a backup of the home; the trailer `ironclaw-backup` describes it", backup::create),
        route(NOTE_VERIFIED_BACKUP, Owner, "Note that a backup was verified", configuration::record_verified_backup),
        route(PANIC, Admin, "Stop every agent; none runs until resume", stops::panic),
        route(RESUME, Admin, "End the emergency stop", stops::resume),
        route(SESSIONS, Member, "Every session; a member sees only their own", sessions::list),
        route(
            SESSION,
            Member,
            "One session, for an operator with the kernel's report; a member only their own",
            sessions::show,
        ),
        route(REMOVE_SESSION, Admin, "Remove a session and erase its content", sessions::remove),
        route(
            TRANSCRIPT,
            Member,
            "The items of a session, as the host recorded them; a member gets only their own",
            transcript::show,
        ),
        route(
            SESSION_REPLIES,
            Member,
            "The last replies of a session, with what each rests on; a member gets only their own",
            replies::list,
        ),
        route(CANCEL_TURN, Member, "Cancel the open turn; a member only their own", stops::cancel),
        route(STOP_SESSION, Admin, "Put a session to sleep", sessions::stop),
        route(RELEASE_SESSION, Admin, "Release a parked or quarantined session", sessions::release),
        route(PROVE_SESSION, Admin, "Run the self-test in a session's jail", sessions::prove),
    ]
}

fn routes_of_files() -> Vec<Route> {
    vec![
        route(CONVERSATION, Member, "The session of the caller's conversation with an agent", conversation::find),
        route(OPEN_CONVERSATION, Member, "The same session; it is made if there is none", conversation::open),
        route(FILES, Member, "The entries of a directory in a workspace", files::list),
        route(PUT_FILE, Member, "Put a file into a workspace", files::put).up_to(FILE_PUT_BYTES_MAX),
        route(REMOVE_FILE, Member, "Remove a file from a workspace", files::remove),
        route(FILE_HISTORY, Member, "The kept versions of the files of a workspace", files::history),
        route(RESTORE_FILE, Member, "Restore a kept version of a file", files::restore),
        route(SENT_FILE, Member, "The bytes of a file that an agent sends with this call", files::sent),
        route(FILE, Member, "The bytes of a file in a workspace", files::content),
    ]
}

fn routes_of_people_and_models() -> Vec<Route> {
    vec![
        route(WHOAMI, Member, "The caller, with identities and the token of the request", people::whoami),
        route(PEOPLE, Owner, "Every person with identities and tokens", people::list),
        route(ADD_PERSON, Owner, "Add a person", people::add),
        route(PERSON, Owner, "One person, by name or id", people::show),
        route(REMOVE_PERSON, Owner, "Remove a person; `erase` also erases their sessions", people::remove),
        route(SET_ROLE, Owner, "Set the role of a person, exactly as shown if it is higher", people::set_role),
        route(REVIEW_ROLE, Owner, "The page of another role; sets nothing", people::review_role),
        route(SET_PLACE, Member, "Set the place where a person is told; a member only their own", people::set_place),
        route(LINK_IDENTITY, Owner, "Link an identity to a person exactly as shown", people::link),
        route(REVIEW_LINK, Owner, "The page of a new identity; links nothing", people::review_link),
        route(UNLINK_IDENTITY, Owner, "Unlink an identity from a person", people::unlink),
        route(SECRETS, Admin, "Every secret, without its value", secrets::list),
        route(SET_SECRET, Owner, "Store a secret", secrets::set),
        route(ROTATE_SECRET, Owner, "Replace the value of a secret", secrets::rotate),
        route(REMOVE_SECRET, Owner, "Remove an unused secret", secrets::remove),
        route(MODELS, Admin, "Every model endpoint", models::list),
        route(ADD_MODEL, Owner, "Test a model endpoint and keep it", models::add),
        route(PRESETS, Admin, "Well-known providers and local servers", models::presets),
        route(MODEL, Admin, "One model endpoint, with its settings and quirks", models::show),
        route(SET_MODEL_SETTINGS, Owner, "Set or clear settings of a model endpoint", models::set),
        route(REMOVE_MODEL, Owner, "Remove an unused model endpoint", models::remove),
        route(TEST_MODEL, Admin, "Send one small request to a model endpoint", models::test),
        route(SET_DEFAULT_MODEL, Owner, "Make a model endpoint the default", models::set_default),
        route(TOKENS, Member, "The caller's tokens; an owner sees all", tokens::list),
        route(ADD_TOKEN, Owner, "Make a token for a person", tokens::create),
        route(REMOVE_TOKEN, Member, "Revoke a token: one's own, or as an owner any", tokens::revoke),
        route(ROTATE_TOKEN, Member, "Replace a token by a fresh one; `current` for the caller's", tokens::rotate),
        route(CONSOLE_CODE, Member, "A code for the console, valid once within a minute", console::issue_code),
        route(ALLOW_DIRECTORY, Owner, "Allow that agents are granted a directory, exactly as shown", settings::allow),
        route(
            REVIEW_ALLOWED,
            Owner,
            "The page of a directory that is to be allowed; allows nothing",
            settings::review_allowed,
        ),
        route(RELOAD_CONFIG, Owner, "Read the settings and the policy again", settings::reload),
        route(AUDIT_CONFIG, Owner, "Findings about the configuration of the home", configuration::audit),
        route(DOCUMENT, Member, "This document", openapi::document),
        route(METRICS, Member, "Metrics for Prometheus, without data of persons", health::metrics),
        open_to_all(HEALTH, "Liveness of the host", health::healthz),
        open_to_all(READINESS, "Readiness of the host for messages", health::readyz),
    ]
}
