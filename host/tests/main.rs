//! The host's tests, as one program.

mod layers;
mod reserved;

/// Fixtures and helpers; no tests.
mod support {
    pub(crate) mod broken_files;
    pub(crate) mod client;
    pub(crate) mod fuse;
    pub(crate) mod git_site;
    pub(crate) mod hooks;
    pub(crate) mod host_fixture;
    pub(crate) mod issuer;
    pub(crate) mod jail_fixture;
    pub(crate) mod listed_mcp;
    pub(crate) mod local_network;
    pub(crate) mod many_schedules;
    pub(crate) mod many_sessions;
    pub(crate) mod mcp_server;
    #[path = "../../examples/model_server/server.rs"]
    #[allow(dead_code, reason = "the example program uses more of it")]
    pub(crate) mod model_server;
    pub(crate) mod needs;
    pub(crate) mod plain_browser;
    pub(crate) mod processes;
    #[path = "../../mcp/tests/it/published.rs"]
    pub(crate) mod published;
    pub(crate) mod record;
    pub(crate) mod site;
    pub(crate) mod terminal;
    pub(crate) mod tls_site;
    pub(crate) mod wal;
    pub(crate) mod webdriver;
}

/// The features of the host, through the real programs.
mod e2e {
    mod agents;
    mod allowances;
    mod attachments;
    mod bounds;
    mod browser;
    mod budget;
    pub(crate) mod calls;
    mod change_effects;
    pub(crate) mod changes;
    mod chats;
    mod command_tools;
    mod commands;
    mod configuration_audit;
    mod context_sizes;
    mod costs;
    mod declared;
    mod deliveries;
    mod destinations;
    mod everyday;
    mod explanation;
    pub(crate) mod facts;
    mod feedback;
    pub(crate) mod few_questions;
    pub(crate) mod files;
    pub(crate) mod git_push;
    mod images;
    mod inputs;
    mod local_network;
    pub(crate) mod mcp;
    mod mcp_demo;
    mod mcp_hosts;
    mod mcp_import;
    mod mcp_listings;
    mod mcp_login;
    mod mcp_login_forms;
    mod mcp_login_published;
    mod mcp_many;
    mod mcp_packages;
    mod mcp_progress;
    pub(crate) mod mcp_setup;
    mod memory;
    mod model_answers;
    mod model_recordings;
    mod model_retries;
    mod model_words;
    pub(crate) mod models;
    mod modes;
    mod mounts;
    pub(crate) mod network_commands;
    mod notifications;
    pub(crate) mod one_yes;
    mod own_sources;
    pub(crate) mod packages;
    mod packages_change;
    mod people;
    mod prepared;
    mod private_names;
    mod promises;
    mod prompts;
    mod published_tools;
    pub(crate) mod questions;
    mod receiver_policy;
    mod receivers;
    mod regressions;
    mod report;
    pub(crate) mod requests;
    mod rests_on;
    mod role_order;
    mod round;
    pub(crate) mod schedule_faults;
    mod schedules;
    mod scopes;
    pub(crate) mod skills;
    mod small_model;
    pub(crate) mod streaming;
    mod tools;
    pub(crate) mod tunnels;
    mod typed_text;
    mod versions;
    mod waiting;
    mod webhook;
}

/// The web console.
mod console {
    mod browser;
    mod plain;
    mod walls;
}

/// The security properties of the threat model.
mod security {
    mod authority;
    mod containment_check;
    mod erase;
    pub(crate) mod escape;
    mod jail;
    pub(crate) mod mcp;
    mod mcp_jail;
    mod operators;
    pub(crate) mod own_sessions;
    mod port;
    pub(crate) mod quota;
    mod quota_campaign;
    pub(crate) mod requests;
    mod secret_store;
    mod secrets;
    mod stock;
    pub(crate) mod tamper;
    mod walls;
}

/// Suites of tasks with injected instructions: what runs, what asks and what is refused.
mod autonomy {
    mod attempts;
    mod campaign;
    mod consents;
    mod elsewhere;
    mod report;
    mod stage;
    mod stand_ins;
    mod suite;
}

/// Kills, broken files, shortages and load.
mod chaos {
    mod agents_random;
    mod away_random;
    mod calls_killed;
    mod calls_random;
    pub(crate) mod changes_random;
    mod clocks;
    mod crash;
    mod failures;
    mod growth;
    mod home_files;
    pub(crate) mod kill;
    mod load;
    mod lost_record;
    pub(crate) mod month;
    mod panic_homes;
    pub(crate) mod scale;
    mod schedules;
    pub(crate) mod shortages;
    mod soak;
}

/// The work of an operator: keys, upgrades, restores, checks, the emergency stop.
mod ops {
    mod backup;
    mod blocks;
    mod deferred;
    mod doctor;
    mod file_systems;
    mod first_day;
    pub(crate) mod keys;
    mod metrics;
    mod migration;
    mod model_cli;
    mod preflight;
    mod query_plans;
    mod reload;
    mod restored;
    mod rotation;
    mod state;
    pub(crate) mod stops;
    mod test_command;
    mod uninstall;
    mod walk;
}
