//! Jails that were made ahead: what they hold, when they exist, and when they are thrown away.
//!
//! `containment_check` makes the attempts of the self-test in such a jail. See `host/examples/jail_driver/stock.rs`, which runs the
//! scenarios, and `jail` for the death of a launcher or a host.

use crate::support::jail_fixture::{HostUser, JailFixture, host_users};
use ironclaw_jail::launcher::STOCK;
use serde_json::{Value, json};

/// Sessions in the fast tier. `.ci/long` sets `IRONCLAW_STOCKED`.
const SESSIONS: &str = "100";

#[test]
fn jail_from_stock_holds_nothing_of_another_session() {
    let sessions = std::env::var("IRONCLAW_STOCKED").unwrap_or_else(|_| SESSIONS.to_owned());
    for user in host_users() {
        let fixture = JailFixture::new(user);
        let mut command = fixture.command("stock-traces", None);
        command.env("IRONCLAW_STOCKED", &sessions);
        let result: Value = crate::support::jail_fixture::answer(command);
        assert_eq!(result["found"], json!([]), "{user:?}");
        assert_eq!(result["from_stock"], result["sessions"], "{user:?}");
        assert!(result["sessions"].as_u64() >= sessions.parse().ok(), "{user:?}: {result}");
        // Root may read the memory of every process.
        let looked_into = result["looked_into"].as_u64().unwrap_or_default();
        assert!(
            user == HostUser::Ordinary || Some(looked_into) == result["sessions"].as_u64().map(|n| 2 * n),
            "{result}"
        );
    }
}

#[test]
fn damaged_stock_is_replaced_by_a_jail_on_demand() {
    for user in host_users() {
        let result = JailFixture::new(user).play("stock-damaged");
        let expected = json!({ "killed": STOCK, "from_stock": false, "faults": null, "again": STOCK });
        assert_eq!(result, expected, "{user:?}");
    }
}

#[test]
fn stock_is_made_after_a_launch_and_wakes_no_process() {
    for user in host_users() {
        let result = JailFixture::new(user).play("stock-quiet");
        assert_eq!(result, json!({ "before_first": 0, "stock": STOCK, "quiet": true, "woke": true }), "{user:?}");
    }
}

#[test]
fn jail_shows_a_mount_that_is_newer_than_the_stock() {
    // Only root can mount a file system.
    if !host_users().contains(&HostUser::Root) {
        return;
    }
    let result = JailFixture::new(HostUser::Root).play("stock-mounted");
    assert_eq!(result, json!({ "stock": STOCK, "from_stock": false, "shown": true }));
}
