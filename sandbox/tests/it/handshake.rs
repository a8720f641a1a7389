//! The handshake of the sandbox, and its refusals.

use crate::host::{Host, LIMITS, welcome};
use ironclaw_contract::seam;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::link::FromSandbox;
use std::io::Write;

fn fatal(host: &mut Host) -> String {
    let FromSandbox::Fatal(fatal) = host.hear() else { panic!("a second hello") };
    assert_eq!(host.ended().expect_err("failed").to_string(), fatal.fatal);
    fatal.fatal
}

#[test]
fn wrong_key_is_refused_and_names_the_queue() {
    let mut host = Host::prepare();
    host.launch();
    host.say(&ironclaw_contract::seam::link::Welcome {
        key: SessionKey::new([8; 32]).to_hex().to_string(),
        ..welcome(LIMITS)
    });
    let sentence = fatal(&mut host);
    assert!(sentence.contains("inbound.db: wrong key or damaged file"), "{sentence}");
}

#[test]
fn missing_inbound_queue_is_refused() {
    let mut host = Host::prepare();
    std::fs::remove_file(host.paths.inbound_db()).expect("removed");
    host.launch();
    host.say(&welcome(LIMITS));
    assert!(fatal(&mut host).contains("inbound.db: no such file"));
}

#[test]
fn malformed_welcome_is_refused_without_quoting_it() {
    for frame in [&b"\0\0\0\x16{\"key\":\"secret\",\"x\":1}"[..], b"\0\0\0\x02{}", b"\0\0\0\x02hi"] {
        let mut host = Host::prepare();
        host.launch();
        host.link().write_all(frame).expect("written");
        assert_eq!(fatal(&mut host), "cannot finish the handshake: the welcome is malformed");
    }
    let mut host = Host::prepare();
    host.launch();
    host.say(&ironclaw_contract::seam::link::Welcome { key: "abc".into(), ..welcome(LIMITS) });
    assert_eq!(fatal(&mut host), "cannot finish the handshake: the key is not 64 hex characters");
}

#[cfg(not(feature = "failpoints"))]
#[test]
fn fail_point_is_refused_by_a_build_without_fail_points() {
    let mut host = Host::prepare();
    host.launch();
    host.say(&ironclaw_contract::seam::link::Welcome { failpoint: Some("outbound_commit".into()), ..welcome(LIMITS) });
    assert!(fatal(&mut host).contains("this build has none"));
}

#[test]
fn closed_link_before_the_welcome_ends_the_sandbox_cleanly() {
    let mut host = Host::prepare();
    let hello = host.launch();
    assert_eq!(hello.fingerprint, seam::fingerprint());
    assert_eq!(hello.version, env!("CARGO_PKG_VERSION"));
    host.close().expect("a clean end");
    assert!(!host.paths.outbound_db().exists(), "a queue was made without a key");
}

#[test]
fn first_bell_rings_after_both_queues_are_open() {
    let mut host = Host::welcomed(LIMITS);
    assert!(host.rows().is_empty());
    host.close().expect("a clean end");
}
