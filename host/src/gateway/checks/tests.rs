//! Tests of the refusals of each kind, and of the completion of changes.

mod rooms;
mod scene;

pub(crate) use scene::{Scene, change, connect, host_policy, on_record};

use super::*;
use crate::gateway::decide::proof::{Approved, Direct};
use crate::gateway::{Origin, writers};
use crate::reach::packages;
use crate::registry::channels::{self, ChannelDraft};
use crate::registry::{AgentDraft, LOOPBACK, Role, secrets};
use crate::sessions::store::tests::{draft as empty_draft, make_owner};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, PersonId, TurnId};
use ironclaw_contract::seam::change::{
    Access, AgentRole, Change, ChangeKind, Engage, McpConfirm, McpRegister, Packages, Payload, Wiring,
};
use ironclaw_operator::ChannelKind;
use ironclaw_state::WriteTx;
use ironclaw_state::keys::{MasterKey, SecretText};
use ironclaw_store::record;
use serde_json::{Value, json};

#[test]
fn change_without_an_effect_is_refused() {
    on_record(|tx, scene| {
        for (kind, payload) in [
            (ChangeKind::Persona, json!({ "instructions": "old" })),
            (ChangeKind::EnabledTools, json!(["write_file", "read_file"])),
            (ChangeKind::Packages, json!([])),
            (ChangeKind::Wiring, json!({ "channel": "shop", "engage": "all" })),
            (ChangeKind::Wiring, json!({ "channel": "desk", "engage": "none" })),
            (ChangeKind::Permissions, json!({ "access": "everyone" })),
            (ChangeKind::Permissions, json!({ "revoke": ["chat:mia"] })),
            (ChangeKind::Mounts, json!([])),
        ] {
            scene.refused(tx, scene.by_owner(kind, payload), DenialCode::ChangeEmpty);
        }
    });
}

#[test]
fn same_packages_can_be_requested_again_to_refetch_them() {
    on_record(|tx, mut scene| {
        // A program that exists on every machine; it does not run.
        scene.host_policy.packages.npm = Some("/usr/bin/env".into());
        let wanted = Packages { npm: vec!["left-pad".to_owned()], ..Packages::default() };
        let (yes, layer) = (Approved::by_test(scene.owner), Digest::of(b"layer"));
        writers::software::set(tx, &yes, scene.clerk.id, Some((&wanted, &layer))).expect("set");
        let same = scene.by_owner(ChangeKind::Packages, json!({ "npm": ["left-pad"] }));
        let checked = scene.looked(tx, same).expect("it passes");
        assert_eq!(checked.standing.before, json!(wanted));
    });
}

#[test]
fn agent_requests_changes_for_itself_alone() {
    on_record(|tx, scene| {
        let persona = || json!({ "instructions": "new" });
        let mut foreign = scene.by_clerk(ChangeKind::Persona, persona());
        foreign.agent = Some(scene.other.id);
        scene.refused(tx, foreign, DenialCode::ChangeOfAnother);
        let mut anonymous = scene.by_clerk(ChangeKind::CreateAgent, json!({ "name": "helper" }));
        anonymous.agent = None;
        scene.refused(tx, anonymous, DenialCode::ChangeOfAnother);
        let mut missing = scene.by_owner(ChangeKind::Persona, persona());
        missing.agent = None;
        scene.refused(tx, missing, DenialCode::AgentMissing);
        let mut superfluous = scene.by_owner(ChangeKind::CreateAgent, json!({ "name": "helper" }));
        superfluous.agent = Some(scene.clerk.id);
        scene.refused(tx, superfluous, DenialCode::AgentSuperfluous);
        writers::agents::remove_agent(tx, &Approved::by_test(scene.owner), &scene.other).expect("removed");
        let mut gone = scene.by_owner(ChangeKind::Persona, persona());
        gone.agent = Some(scene.other.id);
        scene.refused(tx, gone, DenialCode::AgentGone);
        assert!(scene.looked(tx, scene.by_clerk(ChangeKind::Persona, persona())).is_ok());
    });
}

#[test]
fn unknown_tool_or_one_that_cannot_be_enabled_is_refused() {
    on_record(|tx, scene| {
        let tools = |payload| scene.by_owner(ChangeKind::EnabledTools, payload);
        scene.refused(tx, tools(json!(["read_file", "exec"])), DenialCode::ToolUnknown);
        scene.refused(tx, tools(json!(["Read_File"])), DenialCode::ToolUnknown);
        scene.refused(tx, tools(json!(["read_skill"])), DenialCode::ToolUnhandled);
        scene.refused(tx, tools(json!(["send_message"])), DenialCode::ToolUnhandled);
    });
}

#[test]
fn wiring_of_unknown_or_own_channel_or_bad_pattern_is_refused() {
    on_record(|tx, scene| {
        let wiring = |channel: &str, pattern: &str| {
            scene.by_owner(ChangeKind::Wiring, json!({ "channel": channel, "engage": "pattern", "pattern": pattern }))
        };
        scene.refused(tx, wiring("nothing", "x"), DenialCode::ChannelUnknown);
        scene.refused(tx, wiring("loopback", "x"), DenialCode::ChannelOwn);
        for bad in ["(", "a{1000}{1000}{10}", "(?=x)", "[z-a]"] {
            scene.refused(tx, wiring("shop", bad), DenialCode::PatternMalformed);
        }
        let checked = scene.looked(tx, wiring("shop", "^!clerk")).expect("a pattern");
        assert_eq!(checked.standing.before, json!({ "channel": "shop", "engage": "all" }));
        let facts = &checked.standing.facts["channels"]["shop"];
        assert_eq!(facts["heard_by"]["name"], "clerk", "{facts}");
    });
}

#[test]
fn permissions_for_unknown_or_duplicate_person_are_refused() {
    on_record(|tx, scene| {
        let grant = |identities: &[&str]| {
            let grant: Vec<_> =
                identities.iter().map(|identity| json!({ "identity": identity, "role": "admin" })).collect();
            scene.by_owner(ChangeKind::Permissions, json!({ "grant": grant }))
        };
        scene.refused(tx, grant(&["mia"]), DenialCode::IdentityMalformed);
        scene.refused(tx, grant(&["chat:Mia"]), DenialCode::IdentityUnlinked);
        scene.refused(tx, grant(&["chat:mi"]), DenialCode::IdentityUnlinked);
        scene.refused(tx, grant(&["chat:mia", "mail:mia"]), DenialCode::PersonTwice);
        let both = json!({ "grant": [{ "identity": "chat:mia", "role": "admin" }], "revoke": ["mail:mia"] });
        scene.refused(tx, scene.by_owner(ChangeKind::Permissions, both), DenialCode::PersonTwice);
        let checked = scene.looked(tx, grant(&["chat:mia"])).expect("linked");
        assert_eq!(checked.standing.before, json!({ "access": "everyone", "revoke": ["chat:mia"] }));
        let fact = &checked.standing.facts["identities"]["chat:mia"];
        assert_eq!(*fact, json!({ "person": scene.member.to_string(), "name": "Mia" }));
    });
}

#[test]
fn new_agent_gets_only_grants_that_its_creator_has() {
    on_record(|tx, scene| {
        let by_clerk = |payload| scene.by_clerk(ChangeKind::CreateAgent, payload);
        let by_owner = |payload| scene.by_owner(ChangeKind::CreateAgent, payload);
        for bad in ["Helper", "1st", "a b", "ag\u{e9}nt"] {
            scene.refused(tx, by_owner(json!({ "name": bad })), DenialCode::AgentName);
        }
        scene.refused(tx, by_owner(json!({ "name": "clerk" })), DenialCode::AgentExists);
        scene.refused(tx, by_owner(json!({ "name": "h", "members": ["chat:unlinked"] })), DenialCode::IdentityUnlinked);
        let none = json!({ "name": "h", "wirings": [{ "channel": "shop", "engage": "none" }] });
        scene.refused(tx, by_owner(none), DenialCode::WiringNone);
        let all = json!({ "channel": "shop", "engage": "all" });
        scene.refused(tx, by_owner(json!({ "name": "h", "wirings": [all, all] })), DenialCode::WiringTwice);

        let tool = json!({ "name": "h", "enabled_tools": ["remember"] });
        scene.refused(tx, by_clerk(tool.clone()), DenialCode::CreateAgentGrants);
        let channel = json!({ "name": "h", "wirings": [{ "channel": "desk", "engage": "all" }] });
        scene.refused(tx, by_clerk(channel.clone()), DenialCode::CreateAgentGrants);
        let member = json!({ "name": "h", "members": ["chat:mia"] });
        assert!(scene.looked(tx, by_clerk(member.clone())).is_ok(), "the clerk is for everyone");
        writers::roles::set_access(tx, &Approved::by_test(scene.owner), &scene.clerk, Access::Members).expect("set");
        scene.refused(tx, by_clerk(member.clone()), DenialCode::CreateAgentGrants);
        let own = json!({ "name": "h", "enabled_tools": ["read_file"], "wirings": [all] });
        assert!(scene.looked(tx, by_clerk(own)).is_ok());
        for payload in [tool, channel, member] {
            assert!(scene.looked(tx, by_owner(payload.clone())).is_ok(), "{payload}");
            let mut by_member = by_owner(payload);
            by_member.requester = Requester::Person(scene.member);
            scene.refused(tx, by_member, DenialCode::CreateAgentGrants);
        }
    });
}

#[test]
fn server_that_would_leak_secrets_or_is_malformed_is_refused() {
    on_record(|tx, scene| {
        let server = |name: &str, url: &str, tools: Value, headers: Value| {
            let payload = json!({ "name": name, "url": url, "tools": tools, "headers": headers });
            scene.by_owner(ChangeKind::McpRegister, payload)
        };
        let tools = || json!([{ "name": "read" }]);
        for bad in [
            "http://mcp.example/",
            "http://10.0.0.1/",
            "http://localhost.example/",
            "ftp://mcp.example/",
            "https://user:word@mcp.example/",
            "https://mcp.example/#x",
            "mcp.example",
        ] {
            scene.refused(tx, server("files", bad, tools(), json!([])), DenialCode::McpUrl);
        }
        let good = "https://mcp.example";
        scene.refused(tx, server("Files", good, tools(), json!([])), DenialCode::McpName);
        for long in ["a__b", "a_", &"x".repeat(33)] {
            scene.refused(tx, server(long, good, tools(), json!([])), DenialCode::McpName);
        }
        for (command, code) in [
            (json!(["server --stdio"]), DenialCode::McpCommand),
            (json!(["sh", "-c", "server"]), DenialCode::McpCommand),
            (json!(["no-such-server"]), DenialCode::McpProgram),
        ] {
            let payload = json!({ "name": "files", "command": command });
            scene.refused(tx, scene.by_owner(ChangeKind::McpRegister, payload), code);
        }
        let gone = json!({ "name": "files", "remove": true });
        scene.refused(tx, scene.by_owner(ChangeKind::McpRegister, gone), DenialCode::McpServerUnknown);
        scene.refused(tx, server("files", good, json!([{ "name": "a\u{7}b" }]), json!([])), DenialCode::McpToolName);
        assert!(scene.looked(tx, server("files", good, json!([{ "name": "späte post" }]), json!([]))).is_ok());
        let header =
            |name: &str, secret: &str, scheme: &str| json!([{ "name": name, "secret": secret, "scheme": scheme }]);
        let with = |headers| server("files", good, tools(), headers);
        scene.refused(tx, with(header("a b", "token", "Bearer")), DenialCode::McpHeader);
        scene.refused(tx, with(header("Host", "token", "Bearer")), DenialCode::McpHeader);
        scene.refused(tx, with(header("Authorization", "token", "Bearer x")), DenialCode::McpHeader);
        scene.refused(tx, with(header("Authorization", "nothing", "Bearer")), DenialCode::SecretUnknown);
        scene.refused(tx, with(header("Authorization", "A Value!", "Bearer")), DenialCode::SecretName);
        assert!(scene.looked(tx, server("files", "http://127.0.0.1:9/mcp", tools(), json!([]))).is_ok());
        let checked = scene.looked(tx, with(header("Authorization", "secret:token", "Bearer"))).expect("good");
        let payload: Value = checked.proposed.change.payload().into();
        assert_eq!(payload["url"], "https://mcp.example/");
        assert_eq!(payload["headers"], header("authorization", "token", "Bearer"));
    });
}

#[test]
fn login_at_an_unsafe_issuer_is_refused() {
    on_record(|tx, scene| {
        let server = |url: &str, oauth: Value| {
            let payload = json!({ "name": "files", "url": url, "oauth": oauth });
            scene.by_owner(ChangeKind::McpRegister, payload)
        };
        let (far, near) = ("https://mcp.example/", "http://127.0.0.1:9/mcp");
        let issuer = |issuer: &str| json!({ "issuer": issuer });
        for (url, oauth) in [
            (far, issuer("http://login.example")),
            (far, issuer("http://127.0.0.1:9")),
            (far, issuer("https://169.254.169.254")),
            (far, issuer("https://user:word@login.example")),
            (far, issuer("https://login.example?tenant=1")),
            (far, issuer("https://login.example#tenant")),
            (far, issuer("login.example")),
            (far, json!({ "issuer": "https://login.example", "scopes": ["read write"] })),
            (far, json!({ "issuer": "https://login.example", "client_id": "a\u{202e}b" })),
            (far, json!({ "issuer": "https://login.example", "client_secret": "token" })),
        ] {
            scene.refused(tx, server(url, oauth), DenialCode::McpOauth);
        }
        let both = json!({
            "name": "files",
            "url": far,
            "oauth": issuer("https://login.example"),
            "headers": [{ "name": "Authorization", "secret": "token" }],
        });
        scene.refused(tx, scene.by_owner(ChangeKind::McpRegister, both), DenialCode::McpOauth);
        assert!(scene.looked(tx, server(near, issuer("http://127.0.0.1:10"))).is_ok());
        let checked = scene.looked(tx, server(far, json!({ "issuer": "https://login.example", "scopes": ["b", "a"] })));
        let payload: Value = checked.expect("good").proposed.change.payload().into();
        assert_eq!(payload["oauth"], json!({ "issuer": "https://login.example", "scopes": ["a", "b"] }));
        for (given, stored) in [
            ("HTTPS://Login.example:443/", "https://login.example"),
            ("https://login.example/Tenant/", "https://login.example/Tenant/"),
            ("https://login.example/#s256-unannounced", "https://login.example#s256-unannounced"),
        ] {
            let checked = scene.looked(tx, server(far, issuer(given))).expect("good");
            assert_eq!(Value::from(checked.proposed.change.payload())["oauth"], issuer(stored), "one form of each");
        }
    });
}

/// Confirms these tools of the server `files`, which is in the catalogue.
pub(in crate::gateway) fn confirm(tx: &mut WriteTx<'_>, scene: &Scene, tools: &[&str]) {
    let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let tools = tools.iter().map(tool).collect();
    let listing = registry::mcp::listing::Listing { era: "session".to_owned(), tools, ..Default::default() };
    registry::mcp::record_listing(tx, "files", &listing).expect("noted");
    let confirmed = McpConfirm { server: "files".to_owned(), digest: listing.digest(), manifest: None };
    writers::mcp::confirm(tx, &Approved::by_test(scene.owner), &confirmed, &std::collections::BTreeMap::new())
        .expect("confirmed");
}

#[test]
fn confirmation_with_wrong_digest_or_manifest_is_refused() {
    on_record(|tx, scene| {
        let confirmation = |digest: Digest, manifest: Option<&str>| {
            let mut payload = json!({ "server": "files", "digest": digest });
            payload["manifest"] = manifest.into();
            scene.by_owner(ChangeKind::McpConfirm, payload)
        };
        let none = Digest::of(b"");
        scene.refused(tx, confirmation(none, None), DenialCode::McpServerUnknown);
        let server = McpRegister {
            name: "files".to_owned(),
            url: Some("https://mcp.example/".to_owned()),
            ..McpRegister::default()
        };
        writers::mcp::register(tx, &Approved::by_test(scene.owner), &server, None, &[]).expect("room");
        scene.refused(tx, confirmation(none, None), DenialCode::McpUnseen);
        confirm(tx, &scene, &["read"]);
        let tools = vec![json!({ "name": "read", "inputSchema": { "type": "object" }, "description": "other" })];
        let listing = registry::mcp::listing::Listing { era: "session".to_owned(), tools, ..Default::default() };
        assert!(registry::mcp::record_listing(tx, "files", &listing).expect("noted"), "it differs");
        scene.refused(tx, confirmation(none, None), DenialCode::McpDigest);
        let unlisted = "[[tool]]\nname = \"write\"\nclass = \"read\"\nreach = \"outside\"\neffect = \"writes\"\n";
        scene.refused(tx, confirmation(listing.digest(), Some(unlisted)), DenialCode::McpManifest);
        let odd = registry::mcp::listing::Listing {
            tools: vec![json!({ "name": "read", "inputSchema": { "type": "array" } })],
            ..listing.clone()
        };
        assert!(scene.looked(tx, confirmation(listing.digest(), None)).is_ok());
        registry::mcp::record_listing(tx, "files", &odd).expect("noted");
        scene.refused(tx, confirmation(odd.digest(), None), DenialCode::McpListing);
    });
}

#[test]
fn access_to_unknown_server_or_undeclared_tool_is_refused() {
    on_record(|tx, scene| {
        let access = |payload| scene.by_owner(ChangeKind::McpAccess, payload);
        scene.refused(tx, access(json!({ "server": "files" })), DenialCode::McpServerUnknown);
        let Change::McpRegister(server) = change(
            ChangeKind::McpRegister,
            json!({ "name": "files", "url": "https://mcp.example/", "tools": [{ "name": "write" }, { "name": "read" }] }),
        ) else {
            panic!("another kind")
        };
        writers::mcp::register(tx, &Approved::by_test(scene.owner), &server, None, &[]).expect("room");
        scene.refused(tx, access(json!({ "server": "files" })), DenialCode::McpUnconfirmed);
        confirm(tx, &scene, &["read", "write"]);
        scene.refused(tx, access(json!({ "server": "files", "tools": ["erase"] })), DenialCode::McpToolUnknown);
        scene.refused(tx, access(json!({ "server": "files", "tools": [] })), DenialCode::ChangeEmpty);
        let checked = scene.looked(tx, access(json!({ "server": "files" }))).expect("known");
        let payload: Value = checked.proposed.change.payload().into();
        assert_eq!(payload, json!({ "server": "files", "tools": ["read", "write"] }), "spelt out, in one order");
        assert_eq!(checked.standing.before, json!({ "server": "files", "tools": [] }));
        assert_eq!(checked.standing.facts["servers"]["files"]["at"], "https://mcp.example/");
    });
}

#[test]
fn completed_change_is_completed_to_itself() {
    on_record(|tx, mut scene| {
        // The machine may have no package manager.
        scene.host_policy.packages.npm = Some("/usr/bin/env".into());
        scene.host_policy.packages.pip = Some("/usr/bin/env".into());
        for (kind, payload) in [
            (ChangeKind::EnabledTools, json!(["write_file", "list_dir", "read_file"])),
            (ChangeKind::Packages, json!({ "npm": ["b", "a"], "pypi": ["c"] })),
            (ChangeKind::Schedule, json!({ "prompt": "p", "every": "1d from 2090-01-01T08:00", "zone": "UTC" })),
            (ChangeKind::CreateAgent, json!({ "name": "h", "enabled_tools": ["write_file", "read_file"] })),
            (ChangeKind::McpRegister, json!({ "name": "s", "url": "HTTPS://X.example", "tools": [{ "name": "a" }] })),
        ] {
            let first = scene.looked(tx, scene.by_owner(kind, payload)).expect("good");
            let again = scene.looked(tx, first.proposed.clone()).expect("still good");
            assert_eq!(again.proposed.change, first.proposed.change);
            assert_eq!(again.standing, first.standing);
        }
    });
}

#[test]
fn another_meaning_of_a_name_changes_the_facts() {
    on_record(|tx, scene| {
        let proposed =
            scene.by_owner(ChangeKind::Permissions, json!({ "grant": [{ "identity": "chat:mia", "role": "member" }] }));
        let first = scene.looked(tx, proposed.clone()).expect("good").standing;
        let mia = registry::find_person(tx, "Mia").expect("read").expect("there");
        let olga = registry::find_person(tx, "Olga").expect("read").expect("there");
        let identity = "chat:mia".parse().expect("an identity");
        registry::people::unlink(tx, &mia, &identity, scene.owner).expect("hers");
        registry::people::link(tx, &olga, &identity, scene.owner).expect("free");
        let read = |tx: &ReadTx<'_>, change: &Change| {
            current_settings::read(tx, &scene.host_policy, change, Some(&scene.clerk)).expect("read")
        };
        assert_ne!(read(tx, &proposed.change), first);

        let wiring = scene.by_owner(ChangeKind::Wiring, json!({ "channel": "desk", "engage": "all" }));
        let first = scene.looked(tx, wiring.clone()).expect("good").standing;
        connect(tx, "desk", &scene.other, scene.owner);
        assert_ne!(read(tx, &wiring.change), first);
    });
}

#[test]
fn granted_role_is_part_of_the_comparison() {
    on_record(|tx, scene| {
        writers::roles::set(tx, &Approved::by_test(scene.owner), scene.clerk.id, scene.member, Some(AgentRole::Member))
            .expect("set");
        let same = json!({ "grant": [{ "identity": "mail:mia", "role": "member" }] });
        scene.refused(tx, scene.by_owner(ChangeKind::Permissions, same), DenialCode::ChangeEmpty);
        let more = json!({ "access": "members", "grant": [{ "identity": "mail:mia", "role": "member" }] });
        assert!(scene.looked(tx, scene.by_owner(ChangeKind::Permissions, more)).is_ok());
    });
}
