//! The list of the API's routes, which is its only one.
//!
//! See [`super::routes`] for the entry of a route.

use super::body::{MESSAGE_BYTES_MAX, TEXT_BYTES_MAX};
use super::routes::{Route, delete, get, open_to_all, post};
use super::{
    agents, allowances, audit, backup, calls, changes, channels, chat, dead_letters, destinations, files, groups,
    health, mcp, memory, models, openapi, people, questions, requests, schedules, scope, secrets, sessions, settings,
    skills, status, stops, tokens, transcript, usage,
};
use crate::registry::Role::{Admin, Member, Owner};
use ironclaw_contract::operator::FILE_PUT_BYTES_MAX;

/// Returns every path of the API, with the least role that may use it and its purpose.
///
/// There is no other list: the API has exactly these paths, and its document shows all of them. After a change, `IRONCLAW_GOLDEN=write`
/// rewrites `docs/openapi.json`.
pub(super) fn routes() -> Vec<Route> {
    [
        routes_of_agents(),
        routes_of_changes_and_channels(),
        routes_of_questions(),
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
        get("/v1/status", Admin, "The daemon and every session", status::status),
        post("/v1/stop", Admin, "Stop the daemon in order", status::stop),
        get("/v1/agents", Member, "Every agent that the caller may talk to", agents::list),
        post("/v1/agents", Admin, "Create an agent", agents::create),
        get("/v1/agents/{agent}", Member, "One agent, by name or id", agents::show),
        delete("/v1/agents/{agent}", Admin, "Remove an agent, and erase its sessions", agents::remove),
        post("/v1/agents/{agent}/mode", Admin, "Set the guard mode of an agent", agents::set_mode),
        get("/v1/agents/{agent}/budget", Admin, "An agent's own ceilings", usage::of_agent),
        post("/v1/agents/{agent}/budget", Admin, "Set an agent's own ceilings; 0 removes one", usage::set),
        post("/v1/agents/{agent}/model", Admin, "Set the model endpoint of an agent", agents::set_model),
        post("/v1/agents/{agent}/messages", Member, "Send a message to an agent", chat::send).up_to(MESSAGE_BYTES_MAX),
        get("/v1/agents/{agent}/history", Member, "The caller's conversation with an agent", chat::history),
        get("/v1/agents/{agent}/threads", Member, "The caller's conversations with an agent", chat::threads),
        get("/v1/unread", Member, "The number of unread replies of the caller's conversations", chat::unread_counts),
        post(
            "/v1/agents/{agent}/unread",
            Member,
            "The unread replies of an agent; they then count as read",
            chat::read_unread,
        ),
        get("/v1/agents/{agent}/memory", Admin, "The notes of an agent", memory::list),
        post("/v1/agents/{agent}/memory", Admin, "Add a note to an agent's memory", memory::add),
        delete("/v1/agents/{agent}/memory/{note}", Admin, "Erase a note of an agent", memory::forget),
    ]
}

fn routes_of_changes_and_channels() -> Vec<Route> {
    vec![
        get(
            "/v1/inbox",
            Member,
            "Calls, questions and changes that wait and that the caller may decide, answer or asked for",
            requests::inbox,
        ),
        get("/v1/requests", Member, "Approval requests of calls that the caller may see", requests::list),
        get("/v1/requests/{id}", Member, "One approval request, with its page", requests::show),
        get("/v1/requests/{id}/diff", Member, "The diff of a push that waits, in parts", requests::diff),
        post("/v1/requests/{id}/approve", Member, "Approve a call exactly as shown", requests::approve),
        post("/v1/requests/{id}/reject", Member, "Reject a call", requests::reject),
        get("/v1/allowances", Member, "Allowances; a member sees only their own", allowances::list),
        post("/v1/allowances", Member, "Add an allowance for the caller exactly as shown", allowances::add),
        post("/v1/allowances/review", Member, "The page of a new allowance; records nothing", allowances::review),
        get(
            "/v1/allowances/offers",
            Member,
            "Repetitions that the caller approved on several days",
            allowances::offers,
        ),
        get("/v1/allowances/{id}", Member, "One allowance", allowances::show),
        delete("/v1/allowances/{id}", Member, "Remove an allowance; a member only their own", allowances::remove),
        get("/v1/changes", Member, "Changes that wait; a member sees only those that concern them", changes::list),
        post("/v1/changes", Member, "Propose a change of an agent", changes::submit),
        get("/v1/changes/{id}", Member, "One change, with its review page", changes::show),
        post("/v1/changes/{id}/approve", Member, "Approve a change exactly as shown", changes::approve),
        post("/v1/changes/{id}/reject", Member, "Reject a change", changes::reject),
        get("/v1/channels", Admin, "Every channel besides the loopback", channels::list),
        post("/v1/channels", Admin, "Create a channel; only this answer has its secret", channels::add),
        delete("/v1/channels/{channel}", Admin, "Remove a channel with its secret", channels::remove),
        post("/v1/channels/{channel}/test", Admin, "Send a signed test to a channel", channels::test),
        post(
            "/v1/channels/{channel}/probe",
            Admin,
            "Connect to a channel's receiver, without a request",
            channels::probe,
        ),
        post("/v1/channels/{channel}/agents", Admin, "Connect an agent to a channel", channels::connect),
        delete(
            "/v1/channels/{channel}/agents/{agent}",
            Admin,
            "Disconnect an agent from a channel",
            channels::disconnect,
        ),
        delete("/v1/channels/{channel}/senders/{sender}", Admin, "End the wait of a sender", channels::dismiss),
        get("/v1/mcp", Admin, "Every MCP server of the catalogue, with the agents that have its tools", mcp::list),
        get("/v1/mcp/{server}", Admin, "One MCP server, with the table of its tools", mcp::show),
        post("/v1/mcp/{server}/look", Admin, "Ask an MCP server for its tools now", mcp::look).up_to(TEXT_BYTES_MAX),
        post("/v1/mcp/{server}/login", Admin, "Begin a login at an MCP server with OAuth", mcp::begin_login),
        post(
            "/v1/mcp/{server}/login/finish",
            Admin,
            "Complete a login with the address to which the issuer sent the browser",
            mcp::finish_login,
        ),
        post("/v1/mcp/{server}/logout", Admin, "Remove the tokens of the login at an MCP server", mcp::log_out),
    ]
}

fn routes_of_schedules() -> Vec<Route> {
    vec![
        get("/v1/schedules", Member, "Schedules; a member sees only their own", schedules::list),
        get("/v1/schedules/{id}", Member, "One schedule", schedules::show),
        delete("/v1/schedules/{id}", Member, "Remove a schedule; a member only their own", schedules::remove),
        get(
            "/v1/schedules/{id}/occurrences",
            Member,
            "The occurrences of a schedule, oldest first",
            schedules::history,
        ),
        get("/v1/schedules/{id}/next", Member, "The next ten times of a schedule; starts nothing", schedules::next),
        post("/v1/schedules/{id}/run", Member, "Start a run of a schedule now", schedules::run),
        post("/v1/schedules/{id}/pause", Member, "Pause a schedule", schedules::pause),
        post("/v1/schedules/{id}/resume", Member, "Resume a paused schedule", schedules::resume),
    ]
}

fn routes_of_skills() -> Vec<Route> {
    vec![
        get("/v1/skills", Admin, "The skills of an agent", skills::list),
        get("/v1/skills/{skill}", Admin, "Resolve and verify a skill; changes nothing of an agent", skills::show),
        post("/v1/skills/install", Admin, "Propose to install a skill, or another version of it", skills::install),
        post("/v1/skills/remove", Admin, "Propose to remove a skill with its grants", skills::remove),
        post("/v1/skills/pin", Admin, "Keep a skill of an agent at its version, or let it change", skills::pin),
        get("/v1/skill-sources", Admin, "The sources of skills", skills::sources),
        post("/v1/skill-sources", Owner, "Add a source of skills", skills::add_source),
        delete("/v1/skill-sources/{source}", Owner, "Remove a source of skills", skills::remove_source),
        get("/v1/skill-keys", Admin, "The keys whose signatures of skills count", skills::keys),
        post("/v1/skill-keys", Owner, "Add a key whose signatures of skills count", skills::add_key),
        delete("/v1/skill-keys/{key}", Owner, "Remove a key that no installed skill needs", skills::remove_key),
        post("/v1/skill-keys/{key}/revoke", Owner, "Revoke a key for good", skills::revoke_key),
        post("/v1/skill-revocations", Owner, "Revoke a version of a skill for good", skills::revoke_version),
    ]
}

fn routes_of_questions() -> Vec<Route> {
    vec![
        get("/v1/questions", Member, "Questions to the caller; owners and admins see all", questions::list),
        get("/v1/questions/{id}", Member, "One question", questions::show),
        get("/v1/questions/{id}/why", Member, "The origin of a question, and its answer or end", questions::why),
        post("/v1/questions/{id}/answer", Member, "Answer a question that is for the caller", questions::answer),
        post("/v1/questions/{id}/reject", Member, "Cancel a question", questions::reject),
    ]
}

fn routes_of_messages_and_sessions() -> Vec<Route> {
    vec![
        get("/v1/dead", Member, "Dead letters; a member sees only their own", dead_letters::list),
        post("/v1/dead/{delivery}/retry", Member, "Send a dead letter again", dead_letters::retry),
        delete("/v1/dead/{delivery}", Member, "Drop a dead letter", dead_letters::drop_dead_letter),
        get(
            "/v1/messages/{id}",
            Member,
            "A message of the caller with its status; `last` for the newest",
            chat::message,
        ),
        get("/v1/messages/{id}/events", Member, "A stream of the stages of a message", chat::events),
        post("/v1/messages/{id}/retry", Member, "Retry a message that was answered by a notice", chat::retry),
        get("/v1/messages/{id}/why", Member, "The outcome of a message, and its reason", chat::why),
        get("/v1/calls/{id}/why", Member, "The judgement of a tool call of the caller, and its outcome", calls::why),
        get("/v1/tools", Admin, "Every tool with its manifest", calls::tools),
        get("/v1/egress", Admin, "The granted hosts of the network of every agent", calls::egress),
        get("/v1/destinations", Admin, "The destinations of every agent", destinations::all),
        get("/v1/groups", Admin, "The trust groups of agents", groups::all),
        get("/v1/agents/{agent}/destinations", Admin, "The destinations of an agent", destinations::of),
        get("/v1/agents/{agent}/egress", Admin, "The granted hosts of the network of an agent", calls::egress_of),
        post("/v1/tools/{tool}/test", Admin, "Judge a call without making it", calls::test),
        get("/v1/tools/schema", Admin, "The JSON Schema of manifests of tools", calls::schema),
        post("/v1/scope/test", Admin, "Measure the lexicon over labelled requests", scope::test).up_to(TEXT_BYTES_MAX),
        get("/v1/usage", Member, "The usage of models, and the ceilings; a member sees only their own", usage::show),
        get("/v1/audit/head", Admin, "The head of the ledger, signed", audit::head),
        post("/v1/audit/accept", Owner, "Accept that heads or archives know another history", audit::accept),
        post("/v1/audit/rotate", Admin, "Begin a new chain of the ledger", audit::rotate),
        post(
            "/v1/backup",
            Owner,
            "Make a backup of the home; the trailer `ironclaw-backup` describes it",
            backup::create,
        ),
        post("/v1/panic", Admin, "Stop every agent; none runs until resume", stops::panic),
        post("/v1/resume", Admin, "End the emergency stop", stops::resume),
        get("/v1/sessions", Member, "Every session; a member sees only their own", sessions::list),
        get(
            "/v1/sessions/{id}",
            Member,
            "One session, for an operator with the kernel's report; a member only their own",
            sessions::show,
        ),
        delete("/v1/sessions/{id}", Admin, "Remove a session and erase its content", sessions::remove),
        get(
            "/v1/sessions/{id}/transcript",
            Member,
            "The items of a session, as the host recorded them; a member gets only their own",
            transcript::show,
        ),
        post("/v1/sessions/{id}/cancel", Member, "Cancel the open turn; a member only their own", stops::cancel),
        post("/v1/sessions/{id}/stop", Admin, "Put a session to sleep", sessions::stop),
        post("/v1/sessions/{id}/release", Admin, "Release a parked or quarantined session", sessions::release),
        post("/v1/sessions/{id}/prove", Admin, "Run the self-test in a session's jail", sessions::prove),
    ]
}

fn routes_of_files() -> Vec<Route> {
    vec![
        get("/v1/agents/{agent}/session", Member, "The session of the caller's conversation with an agent", chat::find),
        post("/v1/agents/{agent}/session", Member, "The same session; it is made if there is none", chat::open),
        get("/v1/sessions/{id}/files", Member, "The entries of a directory in a workspace", files::list),
        post("/v1/sessions/{id}/files", Member, "Put a file into a workspace", files::put).up_to(FILE_PUT_BYTES_MAX),
        delete("/v1/sessions/{id}/files", Member, "Remove a file from a workspace", files::remove),
        get("/v1/sessions/{id}/files/history", Member, "The kept versions of the files of a workspace", files::history),
        post("/v1/sessions/{id}/files/restore", Member, "Restore a kept version of a file", files::restore),
        get("/v1/calls/{id}/file", Member, "The bytes of a file that an agent sends with this call", files::sent),
        get("/v1/sessions/{id}/files/content", Member, "The bytes of a file in a workspace", files::content),
    ]
}

fn routes_of_people_and_models() -> Vec<Route> {
    vec![
        get("/v1/whoami", Member, "The caller, with identities and the token of the request", people::whoami),
        get("/v1/people", Owner, "Every person with identities and tokens", people::list),
        post("/v1/people", Owner, "Add a person", people::add),
        get("/v1/people/{person}", Owner, "One person, by name or id", people::show),
        delete("/v1/people/{person}", Owner, "Remove a person; `erase` also erases their sessions", people::remove),
        post(
            "/v1/people/{person}/role",
            Owner,
            "Set the role of a person, exactly as shown if it is higher",
            people::set_role,
        ),
        post(
            "/v1/people/{person}/role/review",
            Owner,
            "The page of another role; sets nothing",
            people::page::review_role,
        ),
        post(
            "/v1/people/{person}/notify",
            Member,
            "Set the place where a person is told; a member only their own",
            people::set_place,
        ),
        post("/v1/people/{person}/identities", Owner, "Link an identity to a person exactly as shown", people::link),
        post(
            "/v1/people/{person}/identities/review",
            Owner,
            "The page of a new identity; links nothing",
            people::page::review_link,
        ),
        delete("/v1/people/{person}/identities/{identity}", Owner, "Unlink an identity from a person", people::unlink),
        get("/v1/secrets", Admin, "Every secret, without its value", secrets::list),
        post("/v1/secrets", Owner, "Store a secret", secrets::set),
        post("/v1/secrets/{secret}/rotate", Owner, "Replace the value of a secret", secrets::rotate),
        delete("/v1/secrets/{secret}", Owner, "Remove an unused secret", secrets::remove),
        get("/v1/models", Admin, "Every model endpoint", models::list),
        post("/v1/models", Owner, "Test a model endpoint and keep it", models::add),
        get("/v1/presets", Admin, "Well-known providers and local servers", models::presets),
        get("/v1/models/{model}", Admin, "One model endpoint", models::show),
        delete("/v1/models/{model}", Owner, "Remove an unused model endpoint", models::remove),
        post("/v1/models/{model}/test", Admin, "Send one small request to a model endpoint", models::test),
        post("/v1/models/{model}/default", Owner, "Make a model endpoint the default", models::set_default),
        get("/v1/tokens", Member, "The caller's tokens; an owner sees all", tokens::list),
        post("/v1/tokens", Owner, "Make a token for a person", tokens::create),
        delete("/v1/tokens/{id}", Member, "Revoke a token: one's own, or as an owner any", tokens::revoke),
        post(
            "/v1/tokens/{id}/rotate",
            Member,
            "Replace a token by a fresh one; `current` for the caller's",
            tokens::rotate,
        ),
        post("/v1/config/reload", Owner, "Read the settings and the policy again", settings::reload),
        get("/openapi.json", Member, "This document", openapi::document),
        get("/metrics", Member, "Metrics for Prometheus, without data of persons", health::metrics),
        open_to_all("/healthz", "Liveness of the host", health::healthz),
        open_to_all("/readyz", "Readiness of the host for messages", health::readyz),
    ]
}
