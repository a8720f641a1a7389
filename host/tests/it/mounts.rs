//! What people granted an agent, through the real daemon: its directories in tools and commands, and its packages over `/usr`.
//!
//! The grants are written into the record of a host that is down, as if they had been decided. Next: `commands`.

use crate::record;
use crate::stage::{Who, everybody};
use crate::world::{Build, World};
use ironclaw_contract::canonical::Digest;
use rusqlite::params;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A world whose agent may run commands, down, and a directory beside it for what is granted.
fn world(who: Who) -> (World, tempfile::TempDir) {
    let world = World::with(who, Build::Plain, None);
    world.up();
    let tools = ["run_command", "read_file", "write_file", "list_dir"];
    let tools: Vec<&str> = tools.iter().flat_map(|tool| ["--tool", tool]).collect();
    world.ctl(&[&["agent", "create", "a"][..], &tools].concat()).ok();
    world.down();
    let beside = tempfile::tempdir().expect("a temporary directory");
    open_to_all(beside.path());
    (world, beside)
}

/// Whoever the jail runs as shall see it.
fn open_to_all(path: &Path) {
    fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("permissions");
}

fn directory(path: PathBuf, file: &str) -> PathBuf {
    fs::create_dir_all(&path).expect("a directory");
    open_to_all(&path);
    fs::write(path.join(file), format!("this is {file}")).expect("a file");
    path
}

fn change(world: &World, sql: &str, values: &[&dyn rusqlite::ToSql]) {
    record::open_to_change(&world.home).execute(sql, values).expect("changed");
    record::give_back(world);
}

fn grant(world: &World, source: &Path, target: &str, read_only: bool) {
    let sql = "INSERT INTO agent_mounts SELECT id, ?1, ?2, ?3 FROM agents WHERE name = 'a'";
    change(world, sql, params![target, source.to_str().expect("UTF-8"), read_only]);
}

#[test]
fn what_was_granted_is_there_for_tools_and_commands_as_it_was_granted_and_nothing_beside_it() {
    for who in everybody() {
        let (world, beside) = world(who);
        grant(&world, &directory(beside.path().join("data"), "one"), "/data", true);
        grant(&world, &directory(beside.path().join("shared"), "two"), "/shared", false);
        directory(beside.path().join("secret"), "three");
        symlink("../secret/three", beside.path().join("data/link")).expect("a link");
        world.up();
        assert!(world.say("a", "read /data/one").contains("this is one"), "{who:?}");
        for (asked, why) in [
            ("read /data/link", "links are not followed"),
            ("read /data/../secret/three", "not a way to anywhere"),
            ("read /etc/passwd", "outside of /workspace and /data and /shared"),
            ("write /data/new: x", "Read-only file system"),
            ("run cat /data/link 2>&1", "No such file"),
            ("run touch /data/new 2>&1", "Read-only file system"),
            ("run ls /secret 2>&1", "No such file"),
        ] {
            let said = world.say("a", asked);
            assert!(said.contains(why), "{who:?} {asked}: {said}");
        }
        let said = world.say("a", "run cat /data/one; echo mine > /shared/mine");
        assert!(said.contains("this is one") && said.contains("[exit code 0]"), "{who:?}: {said}");
        let mine = beside.path().join("shared/mine");
        assert_eq!(fs::read_to_string(&mine).expect("written"), "mine\n", "{who:?}");
        assert!(world.say("a", "write /shared/other: yours").contains("/shared/other"), "{who:?}");
        assert_eq!(fs::read_to_string(beside.path().join("shared/other")).expect("written"), "yours", "{who:?}");
        assert!(!beside.path().join("data/new").exists(), "{who:?}");
        world.ctl(&["doctor", "--prove"]).ok();
    }
}

#[test]
fn a_source_that_is_swapped_for_a_link_or_gone_is_a_launch_that_says_so() {
    let (world, beside) = world(Who::Ordinary);
    let data = directory(beside.path().join("way/data"), "one");
    grant(&world, &data, "/data", true);
    world.up();
    assert!(world.say("a", "read /data/one").contains("this is one"));
    world.ctl(&["session", "stop", world.session()["id"].as_str().expect("an id")]).ok();
    fs::rename(beside.path().join("way"), beside.path().join("aside")).expect("renamed");
    let refused = |words: &str| {
        let answer = world.ctl(&["doctor", "--prove"]);
        assert!(answer.code == 1 && answer.stderr.contains(words), "{words}: {}{}", answer.stdout, answer.stderr);
    };
    refused("way/data for /data: No such file");
    symlink("aside", beside.path().join("way")).expect("a link");
    refused("way/data for /data, because ");
    refused("way is a symbolic link");
}

#[test]
fn packages_lie_over_the_machines_programs_and_cannot_be_written_and_without_their_layer_nothing_starts() {
    for who in everybody() {
        let (world, _beside) = world(who);
        let digest = Digest::of(b"the layer of this test");
        let agents = world.home.join("agents");
        let sql = "INSERT INTO agent_packages SELECT id, '{}', ?1, 0 FROM agents WHERE name = 'a'";
        change(&world, sql, params![digest.to_string()]);
        let agent: String = record::open(&world.home)
            .query_row("SELECT id FROM agents WHERE name = 'a'", [], |row| row.get(0))
            .expect("the agent");
        world.up();
        // A failed launch is told instead of a jail that lacks what was asked for.
        let answer = world.ctl(&["--json", "chat", "a", "run true"]);
        assert!(!answer.stdout.contains("[exit code 0]"), "{who:?}: {}", answer.stdout);
        world.down();
        let layer = agents.join(agent).join("layers").join(digest.to_string());
        let tool = directory(layer.join("usr/bin"), "of-the-layer").join("of-the-layer");
        fs::write(&tool, "#!/bin/sh\necho I am of the layer\n").expect("a tool");
        fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).expect("permissions");
        own_all(who, &agents);
        world.up();
        let session = world.session()["id"].as_str().expect("an id").to_owned();
        world.ctl(&["session", "release", &session]).ok();
        let said =
            world.say("a", "run of-the-layer; ls /usr/bin/env; touch /usr/bin/x 2>&1; echo x >> /usr/bin/of-the-layer");
        for words in ["I am of the layer\n/usr/bin/env\n", "Read-only file system", "[exit code 2]"] {
            assert!(said.contains(words), "{who:?}: {said}");
        }
        world.ctl(&["doctor", "--prove"]).ok();
    }
}

/// Gives everything below a directory to whoever runs the host.
fn own_all(who: Who, path: &Path) {
    let owner = if who == Who::Root { 0 } else { crate::stage::NOBODY };
    crate::stage::own(path, owner);
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        own_all(who, &entry.path());
    }
}
