//! The import rules between the crates, and between the modules of the host: downward only.
//!
//! Reads the sources as text and compiles none of them; tests may import any module. The tables come first: a new import that they do
//! not allow is a mistake, or it gets a line with its reason. See `docs/architecture.md`.

mod crates;
mod map;
pub(crate) mod source;

use crates::{CRATES, Crate, OURS};
use source::{Source, read, sources, workspace};
use std::collections::BTreeSet;

/// Modules whose children have layers of their own.
const ROOMS: &[&str] = &["inbound", "outbound", "turns"];

/// The modules of the host, lowest layer first. A module imports from the layers below its own.
const LAYERS: &[&[&str]] = &[
    &["refusal", "toml_file", "observe", "tables", "shutdown"],
    &["tools", "approval", "maintenance"],
    &["secrets", "registry"],
    &["turns::items", "turns::memories", "turns::turn", "preflight", "packages", "quota"],
    &["turns::calls", "session", "record", "latch"],
    &["turns::context", "turns::budget", "inbound::channel"],
    &["inbound::identity", "inbound::routing", "inbound::inbox", "outbound::delivery", "open_turns"],
    &["gateway"],
    &["error", "worker"],
    &["model_socket", "outbound::accept", "outbound::receipts", "outbound::dispatch", "retention_worker"],
    &["pipeline"],
    &["runtime"],
    &["changes"],
    &["emergency_stop"],
    &["api", "key_rotation"],
    &["config", "audit", "daemon", "command", "main", "lib", "inbound", "outbound", "turns"],
];

/// Imports within a layer, each with its reason. An unused line fails too.
const BESIDE: &[(&str, &str, &str)] = &[
    ("registry", "secrets", "a model endpoint names the secret that holds its key"),
    ("inbound::routing", "inbound::identity", "only what is authenticated is routed"),
    ("inbound::inbox", "inbound::identity", "only what is authenticated is recorded"),
    ("inbound::inbox", "inbound::routing", "only what is routed is recorded"),
    ("worker", "error", "a closed record ends a worker, and every other failure of the host has it wait"),
    ("audit", "config", "the offline verifier finds the state by the same settings as the daemon"),
    ("daemon", "config", "the daemon is started with the settings that were read"),
    ("command", "audit", "the command line picks what runs"),
    ("command", "config", "the command line picks what runs"),
    ("command", "daemon", "the command line picks what runs"),
    ("main", "command", "a program is its command line"),
];

/// Proofs that a module asks for and that only layers above it or beside it can make: module, path, reason. The module may name this
/// path alone, and an unused line fails too.
const PROOFS: &[(&str, &[&str], &str)] = &[
    ("registry", &["gateway", "decide", "proof", "Approved"], "a capability changes only as people approved"),
    ("registry", &["gateway", "decide", "proof", "Authority"], "or by a command that the policy leaves to one person"),
    (
        "turns::budget",
        &["gateway", "decide", "proof", "Approved"],
        "the ceilings of an agent change only as people approved",
    ),
];

/// The crate of the host that may open a database.
const OPENS_DATABASES: &str = "host/state";

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
    for (from, to, reason) in BESIDE {
        if !used.contains(&(*from, *to)) {
            complaints.push(format!("BESIDE allows {from} → {to} ({reason}), and no module needs it: delete the line"));
        }
    }
    for (module, proof, reason) in PROOFS {
        if !used.contains(&(*module, proof[proof.len() - 1])) {
            complaints.push(format!("PROOFS allows {module} → {} ({reason}), and nothing needs it", proof.join("::")));
        }
    }
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}

#[test]
fn every_module_of_the_host_has_one_layer() {
    let modules_of = |file: &str| Source::of(file, &read(&workspace().join(file))).modules();
    let mut declared = modules_of("host/src/lib.rs");
    declared.extend(["main".to_owned(), "lib".to_owned()]);
    for room in ROOMS {
        let children = modules_of(&format!("host/src/{room}.rs"));
        declared.extend(children.into_iter().map(|child| format!("{room}::{child}")));
    }
    let placed: Vec<String> = LAYERS.iter().flat_map(|layer| layer.iter().map(|name| (*name).to_owned())).collect();
    let distinct: BTreeSet<String> = placed.iter().cloned().collect();
    assert_eq!(placed.len(), distinct.len(), "a module is in two layers");
    let homeless: Vec<_> = declared.difference(&distinct).collect();
    let gone: Vec<_> = distinct.difference(&declared).collect();
    assert!(
        homeless.is_empty() && gone.is_empty(),
        "without a layer: {homeless:?}; in LAYERS but not in lib.rs: {gone:?}"
    );
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Returns the module of the tables that a path from the root of the host names.
fn module_of(path: &[String]) -> String {
    match path {
        [] => "lib".to_owned(),
        [room, module, ..] if ROOMS.contains(&room.as_str()) => format!("{room}::{module}"),
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
        // A name that the root of the crate defines: there is none beside the modules.
        let Some(other) = layer(to) else {
            complaints.insert(format!("{}: imports crate::{to}, which is no module with a layer", source.file));
            continue;
        };
        if to == from || other < own {
            continue;
        }
        if let Some((module, proof, _)) = PROOFS.iter().find(|(module, proof, _)| *module == from && path == *proof) {
            used.insert((module, proof[proof.len() - 1]));
            continue;
        }
        match BESIDE.iter().find(|(a, b, _)| *a == from && *b == to) {
            Some((a, b, _)) if other == own => drop(used.insert((a, b))),
            _ if other == own => {
                complaints.insert(format!(
                    "{}: {from} imports {to} beside it; add a line with the reason to BESIDE, or reverse it",
                    source.file
                ));
            }
            _ => {
                complaints
                    .insert(format!("{}: {from} (layer {own}) imports {to} (layer {other}) above it", source.file));
            }
        }
    }
    complaints.into_iter().collect()
}

/// Checks the imports between the crates, and the words that a crate must not contain.
fn check_crate(owner: &Crate, source: &Source) -> Vec<String> {
    let mut complaints = BTreeSet::new();
    for path in &source.paths {
        let Some(root) = path.first().filter(|root| OURS.contains(&root.as_str())) else { continue };
        let second = path.get(1).map_or("", String::as_str);
        if root == owner.own_name {
            continue;
        }
        if root != "ironclaw_contract" {
            let is_allowed = owner.packages.contains(&root.replace('_', "-").as_str());
            // A variable or a word of the same name is no path.
            if path.len() > 1 && !is_allowed {
                complaints
                    .insert(format!("{}: {} imports {root}; nothing depends on it", source.file, owner.directory));
            }
        } else if !owner.contract.contains(&second) {
            complaints.insert(format!("{}: {} may not import {}", source.file, owner.directory, path.join("::")));
        }
    }
    for (word, reason) in owner.never {
        if source.words.contains(*word) {
            complaints.insert(format!("{}: {} never names {word}: {reason}", source.file, owner.directory));
        }
    }
    if !owner.environment {
        for path in &source.paths {
            let read = path.windows(2).any(|pair| pair[0] == "env" && (pair[1].starts_with("var") || pair[1] == "*"));
            if read {
                complaints.insert(format!("{}: {} never reads the environment", source.file, owner.directory));
            }
        }
    }
    complaints.into_iter().collect()
}

/// Checks that only `state` opens a database.
fn check_databases(source: &Source) -> Vec<String> {
    let opens = |path: &Vec<String>| path.windows(2).any(|pair| pair[0] == "Connection" && pair[1].starts_with("open"));
    if source.file.starts_with(&format!("{OPENS_DATABASES}/")) || !source.paths.iter().any(opens) {
        return Vec::new();
    }
    vec![format!("{}: opens a database; only {OPENS_DATABASES} does", source.file)]
}

/// Checks the packages of the workspace that a Cargo.toml names.
fn check_manifest(owner: &Crate, manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut complaints = Vec::new();
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        let named = OURS.iter().map(|name| name.replace('_', "-")).filter(|package| {
            let key = section.contains("dependencies") && line.split(['=', '.', ' ']).next() == Some(package);
            let table =
                line.starts_with('[') && section.contains("dependencies") && section.ends_with(package.as_str());
            let renamed = section.contains("dependencies") && line.contains(&format!("package = \"{package}\""));
            key || table || renamed
        });
        for package in named.filter(|package| !owner.packages.contains(&package.as_str())) {
            complaints.push(format!("{}/Cargo.toml: depends on {package}", owner.directory));
        }
    }
    complaints
}

/// Returns the complaints of the host's rules about one small file.
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
        assert!(complaint.contains("registry (layer 2) imports pipeline (layer 10) above it"), "{text}: {complaint:?}");
        assert!(!complaint.contains("imports api"), "{text}: {complaint:?}");
    }
    let deep = "use super::super::pipeline::Core;";
    assert!(host("host/src/registry/agents.rs", deep).contains("imports pipeline"));
    assert!(host("host/src/registry/agents.rs", "use super::pipeline;").is_empty(), "its own parent's child");
    assert!(host("host/src/registry.rs", "use crate::*;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use super::*;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use crate as everything;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use crate::unheard_of::X;").contains("unheard_of"));
    assert!(host("host/src/unheard_of.rs", "").contains("no layer"));
}

#[test]
fn import_within_a_layer_is_refused_unless_it_is_listed() {
    assert!(host("host/src/turns/turn.rs", "use crate::quota::X;").contains("turns::turn imports quota beside it"));
    assert!(
        host("host/src/inbound/identity.rs", "use crate::inbound::routing::X;").contains("beside it"),
        "listed the other way round"
    );
    assert!(host("host/src/inbound/routing.rs", "use crate::inbound::identity::X;").is_empty());
}

#[test]
fn proof_of_a_higher_layer_is_allowed_by_its_full_path_only() {
    let proof = "use crate::gateway::decide::proof::Approved;";
    assert_eq!(host("host/src/registry/mounts.rs", proof), "");
    assert_eq!(host("host/src/registry.rs", "use crate::gateway::decide::proof::{Approved, Authority};"), "");
    assert!(host("host/src/session.rs", proof).contains("imports gateway"), "another module asks for it");
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
    assert!(host("host/src/bin/other.rs", "use ironclaw_host::daemon;").contains("main imports daemon beside it"));
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
