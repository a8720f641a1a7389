//! What a jail with programs must not show or hold, through the real daemon: the host's own files, and locks on the machine's.
//!
//! Next: `commands`, for what a command reaches; `mounts`, for what people granted.

use crate::stage::everybody;
use crate::world::{Build, World, copy_as_is};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Starts a host that must not start; gives what it said.
fn refused_start(world: &World) -> String {
    let answer = world.ctl(&["up", "--detach"]);
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    assert_eq!(world.pid(), None, "no host runs");
    answer.stderr
}

#[test]
fn a_home_below_usr_is_refused_by_init_and_up() {
    let new = Path::new("/usr/ironclaw-test/home");
    let world = World::new();
    let mut init = world.command("ironctl");
    let said = init.args(["--home", "/usr/ironclaw-test/home", "init"]).output().expect("ironctl runs");
    let said = (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned());
    assert!(said.0 == Some(1) && said.1.contains("/usr/ironclaw-test/home") && said.1.contains("--home"), "{said:?}");
    assert!(!new.exists() && !Path::new("/usr/ironclaw-test").exists(), "nothing was made");
    if !nix::unistd::geteuid().is_root() {
        return; // only root can put a home there
    }
    // One that an earlier version made.
    for who in everybody() {
        let mut old = World::with(who, Build::Plain, None);
        let below = tempfile::Builder::new().prefix("ironclaw-test").tempdir_in("/usr/local").expect("a directory");
        std::fs::set_permissions(below.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        copy_as_is(&old.home, below.path());
        old.home = below.path().join("h");
        let said = refused_start(&old);
        assert!(said.contains(&old.home.display().to_string()) && said.contains("--home"), "{who:?}: {said}");
        // A link does not hide it.
        let link = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(link.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        std::os::unix::fs::symlink(&old.home, link.path().join("h")).expect("a link");
        old.home = link.path().join("h");
        assert!(refused_start(&old).contains("/usr"), "{who:?}");
    }
}

#[test]
fn own_files_below_a_shown_directory_stop_the_start() {
    for (setting, name) in [
        ("[ledger]\nheads = \"/usr/local/heads\"\n", "ledger.heads"),
        ("[keys]\nmaster_key_file = \"/etc/ssl/certs/master.key\"\n", "keys.master_key_file"),
        ("[api]\nsocket = \"/usr/share/api.sock\"\n", "api.socket"),
    ] {
        let world = World::new();
        world.configure(setting);
        let said = refused_start(&world);
        assert!(said.contains(name), "{setting}: {said}");
        // Nor does a rotation put a key there.
        let old = world.ctl(&["key", "rotate", "master", "--keep-old", "/usr/local/old.key"]);
        assert!(old.code == 1 && old.stderr.contains("/usr/local/old.key"), "{}", old.stderr);
        // Without the setting the same home starts.
        world.configure("");
        world.up();
    }
}

#[test]
fn the_api_refuses_link_local_and_metadata_addresses() {
    let world = World::new();
    world.up();
    world.agent("a");
    for host in ["169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "2852039166"] {
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://{host}/x");
            let channel = ["--json", "channel", "add", "webhook", "desk", "--url", &url, "--agent", "a"];
            let model = ["--json", "model", "add", "far", "--kind", "openai", "--base-url", &url, "--model", "m"];
            for (command, code) in [(&channel[..], "channel_url"), (&model[..], "url_refused")] {
                let answer = world.ctl(command);
                let said: serde_json::Value = serde_json::from_str(&answer.stderr).expect(&answer.stderr);
                assert_eq!((answer.code, said["error"]["code"].as_str()), (1, Some(code)), "{url}: {said}");
            }
        }
    }
}
