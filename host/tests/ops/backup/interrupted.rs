//! Backups and restores on full and mounted disks, and killed ones.
//!
//! A refused or killed command loses nothing, and the next one succeeds. See the module above for complete ones.

use super::{back_up, beside, code, new_host, set_mode, text};
use crate::chaos::shortages::SmallDisk;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::needs::needs_root;
use std::io::Write;
use std::path::PathBuf;

#[test]
fn full_disk_leaves_neither_a_backup_nor_a_home() {
    needs_root();
    let mut host = new_host();
    host.up();
    host.agent("a");
    let file = back_up(&host, "b.backup");
    host.down();
    let key = beside(&host, "key");
    std::fs::copy(host.home.join("master.key"), &key).expect("copied");
    // The home moves to a disk with room for little more than itself.
    let disk = SmallDisk::under(&mut host, "size=3m").expect("root can mount a file system");
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(&disk.0).expect("read").flatten().map(|e| e.file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let target = disk.0.join("new.backup");
    assert_eq!(code(&host.ctl(&["--json", "backup", "create", text(&target)])), "disk_full");
    let replace = ["--json", "backup", "restore", text(&file), "--key-file", text(&key), "--replace", "--yes"];
    let mut filler = std::fs::File::create(disk.0.join("filler")).expect("made");
    while filler.write_all(&[1; 64 * 1024]).is_ok() {}
    // The restore begins, and the record does not fit.
    let length = filler.metadata().expect("open").len();
    filler.set_len(length - 128 * 1024).expect("cut");
    assert_eq!(code(&host.ctl(&replace)), "disk_full");
    std::fs::remove_file(disk.0.join("filler")).expect("removed");
    assert_eq!(names(), before);
    host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn full_target_and_full_scratch_are_refused_by_code() {
    needs_root();
    let mut host = new_host();
    let disk = SmallDisk::at(beside(&host, "media"), "size=256k").expect("root can mount a file system");
    host.up();
    host.agent("a");
    host.say("a", "hello");
    let earlier = disk.0.join("earlier.backup");
    std::fs::write(&earlier, "an earlier backup").expect("written");
    let create = |host: &TestHost| host.ctl(&["--json", "backup", "create", text(&earlier), "--force"]);
    let file = back_up(&host, "b.backup");
    assert_eq!(code(&create(&host)), "disk_full", "the host runs");
    host.down();
    assert_eq!(code(&create(&host)), "disk_full", "no host runs");
    assert_eq!(std::fs::read_to_string(&earlier).expect("kept"), "an earlier backup");
    let verify = |host: &TestHost| host.ctl(&["--json", "backup", "verify", text(&file)]);
    host.set_env("TMPDIR", disk.0.to_str());
    assert_eq!(code(&verify(&host)), "disk_full");
    assert_eq!(std::fs::read_dir(&disk.0).expect("read").count(), 1, "nothing remains on the disk");
    host.set_env("TMPDIR", None);
    verify(&host).ok();
}
fn kill_at(host: &mut TestHost, point: &str, command: &[&str]) {
    host.set_env("IRONCLAW_FAILPOINT", Some(point));
    assert_ne!(host.ctl(command).code, 0, "{point}");
    host.set_env("IRONCLAW_FAILPOINT", None);
}

#[test]
fn killed_backup_leaves_no_copy_of_the_record() {
    let mut host = TestHost::own(Build::Failpoints);
    let path = beside(&host, "b.backup");
    let hidden = |host: &TestHost| {
        let names = std::fs::read_dir(&host.home).expect("read").flatten().map(|entry| entry.file_name());
        names.filter(|name| name.as_encoded_bytes().starts_with(b".state.db.backup")).count()
    };
    kill_at(&mut host, "backup_copied", &["backup", "create", text(&path)]);
    assert!(!path.exists() && hidden(&host) > 0);
    host.up();
    assert_eq!(hidden(&host), 0, "the start removes it");
    host.ctl(&["backup", "create", text(&path)]).ok();
    assert_eq!(hidden(&host), 0);
}

#[test]
fn killed_restore_loses_nothing_and_is_repeated() {
    let mut host = TestHost::own(Build::Failpoints).started_with("a");
    assert!(host.say("a", "my name is Ada").contains("Ada"));
    let file = back_up(&host, "b.backup");
    host.down();
    std::fs::write(host.home.join("later"), "").expect("written");
    let parent = host.home.parent().expect("a directory").to_owned();
    let beside = |part: &str| {
        let names = std::fs::read_dir(&parent).expect("read").flatten().map(|entry| entry.file_name());
        let names = names.map(|name| name.into_string().expect("UTF-8")).filter(|name| name.contains(part));
        names.map(|name| parent.join(name)).collect::<Vec<_>>()
    };
    let restore = ["backup", "restore", text(&file), "--replace", "--yes"];
    for (point, is_placed) in [("restore_staged", false), ("restore_named", false), ("restore_placed", true)] {
        kill_at(&mut host, point, &restore);
        // The present home, or the restored one with the former one beside it.
        assert_eq!(host.home.join("later").exists(), !is_placed, "{point}");
        host.ctl(&["audit", "verify"]).ok();
        host.ctl(&restore).ok();
        assert!(beside(".restoring.").is_empty(), "{point}");
        let former = beside("before-restore");
        assert!(former.iter().any(|home| home.join("later").exists()), "{point}: {former:?}");
        for former in former {
            std::fs::remove_dir_all(former).expect("removed");
        }
        std::fs::write(host.home.join("later"), "").expect("written");
    }
    host.up();
    assert!(host.say("a", "what is my name").contains("Ada"));
}

#[test]
fn mounted_home_is_restored_within_itself() {
    needs_root();
    let mut host = new_host();
    host.up();
    host.agent("a");
    assert!(host.say("a", "my name is Ada").contains("Ada"));
    let file = back_up(&host, "b.backup");
    host.down();
    let disk = SmallDisk::at(beside(&host, "mounted"), "size=64m").expect("root can mount a file system");
    set_mode(&disk.0, 0o700);
    let all = host.home.join(".");
    let copied = std::process::Command::new("cp").arg("-a").args([&all, &disk.0]).status();
    assert!(copied.is_ok_and(|status| status.success()));
    host.home = disk.0.clone();
    std::fs::write(host.home.join("later"), "").expect("written");
    let restored = host.ctl(&["--json", "backup", "restore", text(&file), "--replace", "--yes"]).ok().json();
    let former = PathBuf::from(restored["former"].as_str().expect("the former home"));
    assert!(former.starts_with(&host.home) && former.join("later").exists() && former.join("state.db").exists());
    assert!(!host.home.join("later").exists());
    host.up();
    assert!(host.say("a", "what is my name").contains("Ada"));
}
