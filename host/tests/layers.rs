//! Tests of the import rules between the crates, and between the rooms of the host.
//!
//! The tests read the sources as text. Test code may import any module. `host/src/lib.rs` lists the rooms, lowest first; a room imports
//! only from lower rooms. See `docs/architecture.md`.

mod crates;
mod documents;
mod map;
pub(crate) mod source;

use crates::{CRATES, Crate, WORKSPACE_CRATES};
use source::{Source, read, sources, workspace};
use std::collections::BTreeSet;

/// The only crate of the host that may open a database.
const DATABASE_CRATE: &str = "host/state";

#[test]
fn every_import_is_allowed() {
    let mut complaints = Vec::new();
    for owner in CRATES {
        for (file, source) in sources(owner.directory) {
            let source = Source::of(&file, &source);
            complaints.extend(check_crate(owner, &source));
            if owner.directory == "host" {
                complaints.extend(check_rooms(&source));
            }
            if owner.directory.starts_with("host") {
                complaints.extend(check_databases(&source));
            }
        }
        let manifest = read(&workspace().join(owner.directory).join("Cargo.toml"));
        complaints.extend(check_manifest(owner, &manifest));
    }
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}

#[test]
fn each_member_of_the_workspace_has_its_rules() {
    let manifest = read(&workspace().join("Cargo.toml"));
    let (_, members) = manifest.split_once("members = [").expect("the members");
    let (members, _) = members.split_once(']').expect("their end");
    let members: BTreeSet<&str> = members.split('"').skip(1).step_by(2).collect();
    assert_eq!(members, CRATES.iter().map(|owner| owner.directory).collect());
    let names: BTreeSet<&str> = CRATES.iter().map(|owner| owner.own_name).collect();
    assert_eq!(names, WORKSPACE_CRATES.iter().copied().collect());
}

#[test]
fn host_has_at_most_twelve_rooms() {
    let rooms = rooms();
    assert!(rooms.len() <= ROOMS_MAX, "a further room needs a decision record: {rooms:?}");
    assert_eq!(rooms.iter().collect::<BTreeSet<_>>().len(), rooms.len(), "a room is listed twice");
}

/// The most rooms of the host.
const ROOMS_MAX: usize = 12;

/// Returns the rooms of the host, lowest first, as `lib.rs` lists them.
fn rooms() -> Vec<String> {
    let source = read(&workspace().join("host/src/lib.rs"));
    let names = source.lines().filter_map(|line| {
        line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").strip_prefix("mod ")?.split_once(';')
    });
    names.map(|(name, _)| name.to_owned()).collect()
}

/// Returns the floor of a module at the root of the host. The program and the root of the crate stand on top.
fn floor(rooms: &[String], module: &str) -> Option<usize> {
    match module {
        "main" | "lib" => Some(rooms.len()),
        room => rooms.iter().position(|name| name == room),
    }
}

/// Checks the imports inside the host.
fn check_rooms(source: &Source) -> Vec<String> {
    let rooms = rooms();
    let from = source.module.first().map_or("lib", String::as_str);
    let Some(own) = floor(&rooms, from) else { return vec![format!("{}: {from} is no room", source.file)] };
    let mut complaints = BTreeSet::new();
    for path in source.crate_imports() {
        let to = path.first().map_or("lib", String::as_str);
        match floor(&rooms, to) {
            // The root of the crate defines no names except rooms.
            None => drop(complaints.insert(format!("{}: imports crate::{to}, which is no room", source.file))),
            Some(other) if to != from && other >= own => {
                complaints
                    .insert(format!("{}: {from} (floor {own}) imports {to} of the higher floor {other}", source.file));
            }
            Some(_) => {}
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
    let mut complaints = check_rooms(&source);
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
        "use crate::runtime;",
        "use crate::runtime::Core;",
        "pub use crate :: runtime :: Core ;",
        "use ::ironclaw_host::runtime::Core;",
        "fn f() { let x = crate::runtime::accept(1); }",
        "fn f(x: &dyn Fn(crate::runtime::Core) -> u8) {}",
        "fn f() -> Vec<crate::runtime::Core> { Vec::<crate::runtime::Core>::new() }",
        "macro_rules! m { () => { $crate::runtime::x() } }",
        "use super::runtime::Core;",
        "mod inner { use super::super::runtime; }",
        "mod inner { fn f() { super::super::runtime::x() } }",
        "fn f() { let c = '\"'; } use crate::runtime;",
        "fn f<'a>(x: &'a str) {} use crate::runtime; // it's",
        "const T: &str = r#\"a \" b\"#; use crate::runtime;",
        "const T: char = '\\''; use crate::runtime;",
        "#[cfg(test)] mod tests { use crate::api; } use crate::runtime;",
        "#[cfg(test)] use crate::api; use crate::runtime;",
    ] {
        let complaint = host("host/src/registry.rs", text);
        assert!(
            complaint.contains("registry (floor 0) imports runtime of the higher floor 7"),
            "{text}: {complaint:?}"
        );
        assert!(!complaint.contains("imports api"), "{text}: {complaint:?}");
    }
    for text in
        ["use crate::{registry, runtime::{self, Core}};", "use crate::{registry::{Class, Error as E}, runtime};"]
    {
        assert!(host("host/src/turns/turn.rs", text).contains("imports runtime of the higher floor 7"), "{text}");
    }
    let deep = "use super::super::runtime::Core;";
    assert!(host("host/src/registry/agents.rs", deep).contains("imports runtime"));
    assert!(host("host/src/registry/agents.rs", "use super::runtime;").is_empty(), "a module of its own parent");
    assert!(host("host/src/registry.rs", "use crate::*;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use super::*;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use crate as everything;").contains("crate::*"));
    assert!(host("host/src/registry.rs", "use crate::unknown_module::X;").contains("unknown_module"));
    assert!(host("host/src/unknown_module.rs", "").contains("is no room"));
}

#[test]
fn downward_imports_and_plain_mentions_are_allowed() {
    for text in [
        "use crate::registry::{self, Agent}; use ironclaw_state::Tx;",
        "use crate::turns::turn::X; use super::super::registry; mod inner { use super::Y; }",
        "//! See crate::runtime::Core.\n/* crate::runtime /* nested */ crate::api */",
        "const T: &str = \"crate::runtime \\\" crate::api\"; const U: &[u8] = br##\"crate::api\"# \"##;",
        "pub(crate) fn f() {} pub(crate) struct S;",
        "#[cfg(test)]\nmod tests { use crate::runtime::X; fn f() { rusqlite::Connection::open(1); } }",
        "#[test]\nfn t() { crate::runtime::x(); }",
    ] {
        assert_eq!(host("host/src/turns/turn.rs", text), "", "{text}");
    }
    assert_eq!(host("host/src/turns/turn/tests.rs", "use crate::runtime::X;"), "");
    assert_eq!(host("host/src/main.rs", "use ironclaw_host::runtime;"), "");
    assert_eq!(host("host/src/bin/other.rs", "use ironclaw_host::daemon;"), "");
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
        (sandbox, "use ironclaw_operator::NewAgent;"),
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
        (host, "use ironclaw_contract::{ids::CallId, seam::inbound::InboundWriter}; fn f() { std::env::var(\"X\") }"),
        (host, "use ironclaw_operator::Run;"),
        (
            sandbox,
            "use ironclaw_contract::{canonical, ids::CallId, seam::inbound::InboundReader}; use ironclaw_sandbox::launch;",
        ),
        (sandbox, "// InboundWriter is the host's, operator too\nfn f() { std::env::args() }"),
        (ironctl, "use ironclaw_operator::{self as operator, Run};"),
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
