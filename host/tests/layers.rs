//! Tests of the import rules between the crates, and between the layers of the host.
//!
//! The tests read the sources as text. Test code may import any module. An import that the tables below do not allow is a mistake, or
//! it gets a line with its reason. See `docs/architecture.md`.

mod crates;
mod map;
pub(crate) mod source;

use crates::{CRATES, Crate, WORKSPACE_CRATES};
use source::{Source, read, sources, workspace};
use std::collections::BTreeSet;

/// Modules whose children have layers of their own.
const PARENTS: &[&str] = &["inbound", "outbound", "turns"];

/// The modules of the host, lowest layer first. A module may import from lower layers.
const LAYERS: &[&[&str]] = &[
    &["refusal", "toml_file", "observe", "tables", "shutdown"],
    &["tools", "approval", "maintenance"],
    &["secrets", "registry"],
    &["turns::items", "turns::memories", "turns::turn", "preflight", "packages", "mcp_jail", "quota", "notifications"],
    &["turns::calls", "session", "record", "latch", "backup"],
    &["turns::context", "turns::budget", "inbound::channel", "inbound::scope", "jail_network"],
    &["inbound::identity", "inbound::routing", "inbound::inbox", "outbound::delivery", "open_turns"],
    &["agent_messages"],
    &["gateway"],
    &["error", "worker"],
    &["requests", "questions", "mcp", "network_command", "git_push", "skills"],
    &["executor"],
    &["model_socket", "outbound::accept", "outbound::receipts", "outbound::dispatch", "retention_worker"],
    &["pipeline"],
    &["schedules"],
    &["runtime"],
    &["changes"],
    &["emergency_stop"],
    &["api", "key_rotation"],
    &["config", "audit", "daemon", "command", "main", "lib", "inbound", "outbound", "turns"],
];

/// Permitted imports within a layer, each with its reason. The test also fails for an unused line.
const SAME_LAYER: &[(&str, &str, &str)] = &[
    ("registry", "secrets", "a model endpoint names the secret with its key"),
    ("inbound::routing", "inbound::identity", "only authenticated messages are routed"),
    ("inbound::inbox", "inbound::identity", "only authenticated messages are recorded"),
    ("inbound::inbox", "inbound::routing", "only routed messages are recorded"),
    ("worker", "error", "a worker ends if the record is closed, and waits after other errors"),
    (
        "git_push",
        "network_command",
        "a push reads the workspace in a jail of commands, for a host that is granted for them",
    ),
    ("audit", "config", "the offline verifier finds the record by the settings of the daemon"),
    ("daemon", "config", "the daemon starts with the settings"),
    ("command", "audit", "the command line starts the command"),
    ("command", "config", "the command line starts the command"),
    ("command", "daemon", "the command line starts the command"),
    ("main", "command", "the program runs its command line"),
];

/// Proofs that a module requires and that only a higher layer can make: module, path, reason. The module may name exactly this path.
/// The test also fails for an unused line.
const PROOFS: &[(&str, &[&str], &str)] = &[
    ("registry", &["gateway", "decide", "proof", "Approved"], "a capability changes only by an approved change"),
    ("registry", &["gateway", "decide", "proof", "Authority"], "or by a command that the policy permits to one person"),
    (
        "turns::budget",
        &["gateway", "decide", "proof", "Approved"],
        "the ceilings of an agent change only by an approved change",
    ),
];

/// The only crate of the host that may open a database.
const DATABASE_CRATE: &str = "host/state";

#[test]
fn every_import_is_allowed() {
    let mut complaints = Vec::new();
    let mut used = BTreeSet::new();
    for owner in CRATES {
        for (file, source) in sources(owner.directory) {
            let source = Source::of(&file, &source);
            complaints.extend(check_crate(owner, &source));
            if owner.directory == "host" {
                complaints.extend(check_layers(&source, &mut used));
            }
            if owner.directory.starts_with("host") {
                complaints.extend(check_databases(&source));
            }
        }
        let manifest = read(&workspace().join(owner.directory).join("Cargo.toml"));
        complaints.extend(check_manifest(owner, &manifest));
    }
    for (from, to, reason) in SAME_LAYER {
        if !used.contains(&(*from, *to)) {
            complaints
                .push(format!("SAME_LAYER allows {from} → {to} ({reason}), but no module needs it: delete the line"));
        }
    }
    for (module, proof, reason) in PROOFS {
        if !used.contains(&(*module, proof[proof.len() - 1])) {
            complaints.push(format!(
                "PROOFS allows {module} → {} ({reason}), but no module needs it: delete the line",
                proof.join("::")
            ));
        }
    }
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}

#[test]
fn every_module_of_the_host_has_one_layer() {
    let modules_of = |file: &str| Source::of(file, &read(&workspace().join(file))).modules();
    let mut declared = modules_of("host/src/lib.rs");
    declared.extend(["main".to_owned(), "lib".to_owned()]);
    for parent in PARENTS {
        let children = modules_of(&format!("host/src/{parent}.rs"));
        declared.extend(children.into_iter().map(|child| format!("{parent}::{child}")));
    }
    let placed: Vec<String> = LAYERS.iter().flat_map(|layer| layer.iter().map(|name| (*name).to_owned())).collect();
    let distinct: BTreeSet<String> = placed.iter().cloned().collect();
    assert_eq!(placed.len(), distinct.len(), "a module is in two layers");
    let unplaced: Vec<_> = declared.difference(&distinct).collect();
    let missing: Vec<_> = distinct.difference(&declared).collect();
    assert!(
        unplaced.is_empty() && missing.is_empty(),
        "without a layer: {unplaced:?}; in LAYERS but not in lib.rs: {missing:?}"
    );
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Returns the module of the tables to which a path from the root of the host belongs.
fn module_of(path: &[String]) -> String {
    match path {
        [] => "lib".to_owned(),
        [parent, module, ..] if PARENTS.contains(&parent.as_str()) => format!("{parent}::{module}"),
        [module, ..] => module.clone(),
    }
}

/// Checks the imports inside the host.
fn check_layers(source: &Source, used: &mut BTreeSet<(&'static str, &'static str)>) -> Vec<String> {
    let from = &module_of(&source.module);
    let Some(own) = layer(from) else { return vec![format!("{}: {from} has no layer", source.file)] };
    let mut complaints = BTreeSet::new();
    for path in source.crate_imports() {
        let to = &module_of(&path);
        // The root of the crate defines no names except modules.
        let Some(other) = layer(to) else {
            complaints.insert(format!("{}: imports crate::{to}, which has no layer", source.file));
            continue;
        };
        if to == from || other < own {
            continue;
        }
        if let Some((module, proof, _)) = PROOFS.iter().find(|(module, proof, _)| *module == from && path == *proof) {
            used.insert((module, proof[proof.len() - 1]));
            continue;
        }
        match SAME_LAYER.iter().find(|(a, b, _)| *a == from && *b == to) {
            Some((a, b, _)) if other == own => drop(used.insert((a, b))),
            _ if other == own => {
                complaints.insert(format!(
                    "{}: {from} imports {to} of its own layer: reverse the import, or add a line with the reason to SAME_LAYER",
                    source.file
                ));
            }
            _ => {
                complaints
                    .insert(format!("{}: {from} (layer {own}) imports {to} of the higher layer {other}", source.file));
            }
        }
    }
    complaints.into_iter().collect()
}

/// Checks the imports between the crates, and the words that a crate must not contain.
fn check_crate(owner: &Crate, source: &Source) -> Vec<String> {
    let mut complaints = BTreeSet::new();
    for path in &source.paths {
        let Some(root) = path.first().filter(|root| WORKSPACE_CRATES.contains(&root.as_str())) else { continue };
        let second = path.get(1).map_or("", String::as_str);
        if root == owner.own_name {
            continue;
        }
        if root != "ironclaw_contract" {
            let is_allowed = owner.packages.contains(&root.replace('_', "-").as_str());
            // A single word of this name may be a variable.
            if path.len() > 1 && !is_allowed {
                complaints
                    .insert(format!("{}: {} imports {root}: no crate may depend on it", source.file, owner.directory));
            }
        } else if !owner.contract.contains(&second) {
            complaints.insert(format!("{}: {} may not import {}", source.file, owner.directory, path.join("::")));
        }
    }
    for (word, reason) in owner.never {
        if source.words.contains(*word) {
            complaints.insert(format!("{}: {} must not name {word}: {reason}", source.file, owner.directory));
        }
    }
    if !owner.environment {
        for path in &source.paths {
            let read = path.windows(2).any(|pair| pair[0] == "env" && (pair[1].starts_with("var") || pair[1] == "*"));
            if read {
                complaints.insert(format!("{}: {} must not read the environment", source.file, owner.directory));
            }
        }
    }
    complaints.into_iter().collect()
}

/// Checks that only `state` opens a database.
fn check_databases(source: &Source) -> Vec<String> {
    let opens = |path: &Vec<String>| path.windows(2).any(|pair| pair[0] == "Connection" && pair[1].starts_with("open"));
    if source.file.starts_with(&format!("{DATABASE_CRATE}/")) || !source.paths.iter().any(opens) {
        return Vec::new();
    }
    vec![format!("{}: opens a database: only {DATABASE_CRATE} may", source.file)]
}

/// Checks the packages of the workspace that a Cargo.toml names.
fn check_manifest(owner: &Crate, manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut complaints = Vec::new();
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        let named = WORKSPACE_CRATES.iter().map(|name| name.replace('_', "-")).filter(|package| {
            let key = section.contains("dependencies") && line.split(['=', '.', ' ']).next() == Some(package);
            let table =
                line.starts_with('[') && section.contains("dependencies") && section.ends_with(package.as_str());
            let renamed = section.contains("dependencies") && line.contains(&format!("package = \"{package}\""));
            key || table || renamed
        });
        for package in named.filter(|package| !owner.packages.contains(&package.as_str())) {
            complaints.push(format!("{}/Cargo.toml: must not depend on {package}", owner.directory));
        }
    }
    complaints
}

/// Returns the complaints about one file with this text in the host.
fn host(file: &str, text: &str) -> String {
    let source = Source::of(file, text);
    let mut complaints = check_layers(&source, &mut BTreeSet::new());
    complaints.extend(check_databases(&source));
    complaints.extend(check_crate(&CRATES[1], &source));
    complaints.join("\n")
}

fn other(number: usize, text: &str) -> String {
    check_crate(&CRATES[number], &Source::of(&format!("{}/src/x.rs", CRATES[number].directory), text)).join("\n")
}

#[test]
fn upward_import_is_found_in_every_notation() {
    for text in [
        "use crate::pipeline;",
        "use crate::pipeline::Core;",
        "use crate::{tools, pipeline::{self, Core}};",
        "use crate::{tools::{Class, Error as E}, pipeline};",
        "pub use crate :: pipeline :: Core ;",
        "use ::ironclaw_host::pipeline::Core;",
        "fn f() { let x = crate::pipeline::accept(1); }",
        "fn f(x: &dyn Fn(crate::pipeline::Core) -> u8) {}",
        "fn f() -> Vec<crate::pipeline::Core> { Vec::<crate::pipeline::Core>::new() }",
        "macro_rules! m { () => { $crate::pipeline::x() } }",
        "use super::pipeline::Core;",
        "mod inner { use super::super::pipeline; }",
        "mod inner { fn f() { super::super::pipeline::x() } }",
        "fn f() { let c = '\"'; } use crate::pipeline;",
        "fn f<'a>(x: &'a str) {} use crate::pipeline; // it's",
        "const T: &str = r#\"a \" b\"#; use crate::pipeline;",
        "const T: char = '\\''; use crate::pipeline;",
        "#[cfg(test)] mod tests { use crate::api; } use crate::pipeline;",
        "#[cfg(test)] use crate::api; use crate::pipeline;",
    ] {
        let complaint = host("host/src/registry.rs", text);
        assert!(
            complaint.contains("registry (layer 2) imports pipeline of the higher layer 13"),
            "{text}: {complaint:?}"
        );
        assert!(!complaint.contains("imports api"), "{text}: {complaint:?}");
    }
    let deep = "use super::super::pipeline::Core;";
    assert!(host("host/src/registry/agents.rs", deep).contains("imports pipeline"));
    assert!(host("host/src/registry/agents.rs", "use super::pipeline;").is_empty(), "a module of its own parent");
    assert!(host("host/src/registry.rs", "use crate::*;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use super::*;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use crate as everything;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use crate::unknown_module::X;").contains("unknown_module"));
    assert!(host("host/src/unknown_module.rs", "").contains("no layer"));
}

#[test]
fn import_within_a_layer_is_refused_unless_it_is_listed() {
    assert!(
        host("host/src/turns/turn.rs", "use crate::quota::X;").contains("turns::turn imports quota of its own layer")
    );
    assert!(
        host("host/src/inbound/identity.rs", "use crate::inbound::routing::X;").contains("of its own layer"),
        "the table allows only the opposite import"
    );
    assert!(host("host/src/inbound/routing.rs", "use crate::inbound::identity::X;").is_empty());
}

#[test]
fn proof_of_a_higher_layer_is_allowed_by_its_full_path_only() {
    let proof = "use crate::gateway::decide::proof::Approved;";
    assert_eq!(host("host/src/registry/mounts.rs", proof), "");
    assert_eq!(host("host/src/registry.rs", "use crate::gateway::decide::proof::{Approved, Authority};"), "");
    assert!(host("host/src/session.rs", proof).contains("imports gateway"), "the table names another module");
    for other in ["use crate::gateway;", "use crate::gateway::decide::proof;", "use crate::gateway::decide::proof::*;"]
    {
        assert!(host("host/src/registry.rs", other).contains("imports gateway"), "{other}");
    }
}

#[test]
fn downward_imports_and_plain_mentions_are_allowed() {
    for text in [
        "use crate::registry::{self, Agent}; use ironclaw_state::Tx;",
        "use crate::turns::turn::X; use super::super::tools; mod inner { use super::Y; }",
        "//! See crate::pipeline::Core.\n/* crate::pipeline /* nested */ crate::api */",
        "const T: &str = \"crate::pipeline \\\" crate::api\"; const U: &[u8] = br##\"crate::api\"# \"##;",
        "pub(crate) fn f() {} pub(crate) struct S;",
        "#[cfg(test)]\nmod tests { use crate::pipeline::X; fn f() { rusqlite::Connection::open(1); } }",
        "#[test]\nfn t() { crate::pipeline::x(); }",
    ] {
        assert_eq!(host("host/src/turns/turn.rs", text), "", "{text}");
    }
    assert_eq!(host("host/src/turns/turn/tests.rs", "use crate::pipeline::X;"), "");
    assert_eq!(host("host/src/main.rs", "use ironclaw_host::pipeline;"), "");
    assert!(
        host("host/src/bin/other.rs", "use ironclaw_host::daemon;").contains("main imports daemon of its own layer")
    );
}

#[test]
fn only_state_opens_a_database() {
    for text in [
        "fn f() { rusqlite::Connection::open(path) }",
        "use rusqlite::Connection; fn f() { Connection::open_with_flags(path, flags) }",
        "fn f() { Connection::open_in_memory() }",
    ] {
        for file in ["host/src/registry.rs", "host/ledger/src/lib.rs"] {
            assert_eq!(check_databases(&Source::of(file, text)).len(), 1, "{file}: {text}");
        }
        assert!(check_databases(&Source::of("host/state/src/opening.rs", text)).is_empty(), "{text}");
    }
}

#[test]
fn crate_imports_only_what_the_table_allows() {
    let [contract, host, sandbox, ironctl] = [0, 1, 2, 3];
    for (owner, text) in [
        (contract, "use ironclaw_state::Tx;"),
        (contract, "fn f() { ironctl::run() }"),
        (contract, "fn f() { std::env::var(\"HOME\") }"),
        (contract, "use std::env::{args, var_os};"),
        (contract, "use std::env; fn f() { env::vars() }"),
        (host, "use ironclaw_sandbox::agent::Agent;"),
        (host, "use ironclaw_contract::seam::inbound::InboundReader;"),
        (sandbox, "use ironclaw_contract::operator::NewAgent;"),
        (sandbox, "use ironclaw_contract::{ids, ledger_entry};"),
        (sandbox, "use ironclaw_contract::*;"),
        (sandbox, "use ironclaw_contract as c;"),
        (sandbox, "use ironclaw_contract::seam::inbound::{InboundReader, InboundWriter as W};"),
        (sandbox, "use ironclaw_contract::seam::outbound; fn f(x: outbound::OutboundReader) {}"),
        (sandbox, "use std::env::*;"),
        (ironctl, "use ironclaw_contract::seam::limits;"),
        (ironctl, "fn f() -> ironclaw_contract::canonical::Digest {}"),
        (ironctl, "use ironclaw_host::daemon;"),
    ] {
        assert!(!other(owner, text).is_empty(), "{text}");
    }
    for (owner, text) in [
        (host, "use ironclaw_contract::{operator::Run, seam::inbound::InboundWriter}; fn f() { std::env::var(\"X\") }"),
        (
            sandbox,
            "use ironclaw_contract::{canonical, ids::CallId, seam::inbound::InboundReader}; use ironclaw_sandbox::launch;",
        ),
        (sandbox, "// InboundWriter is the host's, operator too\nfn f() { std::env::args() }"),
        (ironctl, "use ironclaw_contract::operator::{self, Run};"),
    ] {
        assert_eq!(other(owner, text), "", "{text}");
    }
}

#[test]
fn no_crate_depends_on_host_or_sandbox() {
    let [contract, host, sandbox, ironctl] = [0, 1, 2, 3].map(|number| &CRATES[number]);
    for (owner, manifest) in [
        (contract, "[dependencies]\nironclaw-host.workspace = true"),
        (contract, "[dev-dependencies]\nironclaw-sandbox = { path = \"../sandbox\" }"),
        (host, "[dev-dependencies]\nironclaw-sandbox = { path = \"../sandbox\" }"),
        (sandbox, "[target.'cfg(unix)'.dependencies.ironclaw-host]\npath = \"../host\""),
        (ironctl, "[build-dependencies]\nhost = { package = \"ironclaw-host\", path = \"../host\" }"),
    ] {
        assert_eq!(check_manifest(owner, manifest).len(), 1, "{manifest}");
    }
    let own = "[package]\nname = \"ironclaw-host\"\n[dependencies]\nironclaw-contract = { workspace = true }\n# ironclaw-sandbox";
    assert!(check_manifest(host, own).is_empty());
}
