//! Limits of a jail with programs of the machine: no file of the host is visible in it, and its locks do not reach the machine.
//!
//! The tests use the real daemon. See `e2e::commands` for the access of a command and `e2e::mounts` for granted directories.

use crate::support::host_fixture::{Build, TestHost, copy_with_owners, wait_for};
use crate::support::jail_fixture::host_users;
use nix::fcntl::{Flock, FlockArg};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Checks that a host does not start, and returns its message.
fn refused_start(host: &TestHost) -> String {
    let answer = host.ctl(&["up", "--detach"]);
    assert_eq!(answer.code, 1, "{}{}", answer.stdout, answer.stderr);
    assert_eq!(host.pid(), None, "no host runs");
    answer.stderr
}

#[test]
fn init_and_up_refuse_a_home_below_usr() {
    let new = Path::new("/usr/ironclaw-test/home");
    let host = TestHost::new();
    let mut init = host.command("ironctl");
    let said = init.args(["--home", "/usr/ironclaw-test/home", "init"]).output().expect("ironctl runs");
    let said = (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned());
    assert!(said.0 == Some(1) && said.1.contains("/usr/ironclaw-test/home") && said.1.contains("--home"), "{said:?}");
    assert!(!new.exists() && !Path::new("/usr/ironclaw-test").exists(), "no directory was made");
    if !nix::unistd::geteuid().is_root() {
        return; // only root can make a home there
    }
    // A home below `/usr` that an earlier version made.
    for user in host_users() {
        let mut old = TestHost::with(user, Build::Plain, None);
        let below = tempfile::Builder::new().prefix("ironclaw-test").tempdir_in("/usr/local").expect("a directory");
        std::fs::set_permissions(below.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        copy_with_owners(&old.home, below.path());
        old.home = below.path().join("h");
        let said = refused_start(&old);
        assert!(said.contains(&old.home.display().to_string()) && said.contains("--home"), "{user:?}: {said}");
        // A symbolic link to it is refused too.
        let link = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(link.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        std::os::unix::fs::symlink(&old.home, link.path().join("h")).expect("a link");
        old.home = link.path().join("h");
        assert!(refused_start(&old).contains("/usr"), "{user:?}");
    }
}

#[test]
fn start_refuses_host_files_below_a_mounted_directory() {
    for (setting, name) in [
        ("[ledger]\nheads = \"/usr/local/heads\"\n", "ledger.heads"),
        ("[keys]\nmaster_key_file = \"/etc/ssl/certs/master.key\"\n", "keys.master_key_file"),
        ("[api]\nsocket = \"/usr/share/api.sock\"\n", "api.socket"),
    ] {
        let host = TestHost::new().configured(setting);
        let said = refused_start(&host);
        assert!(said.contains(name), "{setting}: {said}");
        // A key rotation writes no key there either.
        let old = host.ctl(&["key", "rotate", "master", "--keep-old", "/usr/local/old.key", "--yes"]);
        assert!(old.code == 1 && old.stderr.contains("/usr/local/old.key"), "{}", old.stderr);
        // Without the setting the host starts with the same home.
        host.configure("");
        host.up();
    }
}

#[test]
fn api_refuses_link_local_and_metadata_addresses() {
    let test_host = TestHost::new().started_with("a");
    for host in ["169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "2852039166"] {
        for scheme in ["https", "http"] {
            let url = format!("{scheme}://{host}/x");
            let channel = ["--json", "channel", "add", "webhook", "desk", "--url", &url, "--agent", "a", "--yes"];
            let model = ["--json", "model", "add", "far", "--kind", "openai", "--base-url", &url, "--no-key"];
            let model = [&model[..], &["--model", "m"]].concat();
            for (command, code) in [(&channel[..], "channel_url"), (&model[..], "url_refused")] {
                assert_eq!(test_host.ctl(command).error()["code"], code, "{url}");
            }
        }
    }
}

/// A script that holds every kind of lock on files of the machine until the file `go` exists.
const LOCKS: &str = r#"perl -e '
use Fcntl qw(:DEFAULT :flock);
my @held;
for my $path ("/usr/bin/env", "/etc/alternatives") {
  -e $path or next;
  sysopen(my $f, $path, O_RDONLY) or die "$path: $!";
  flock($f, LOCK_EX | LOCK_NB) or die "flock $path: $!";
  push @held, $f;
}
sysopen(my $f, "/usr/bin/env", O_RDONLY) or die $!;
my $lock = pack("s s x4 q q i x4", F_RDLCK, 0, 0, 0, 0);
fcntl($f, F_SETLK, $lock) or die "fcntl: $!";
open(my $note, ">", "/workspace/held") or die $!; close $note;
select(undef, undef, undef, 0.02) until -e "/workspace/go";
print "locked all\n";
'"#;

#[test]
fn file_locks_below_usr_do_not_leave_the_jail() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started();
        host.ctl(&["agent", "add", "a", "--tool", "run_command"]).ok();
        host.say("a", "hello");
        let workspace = host.session_directory().join("workspace");
        std::thread::scope(|scope| {
            let said = scope.spawn(|| host.say("a", &format!("run {}", LOCKS.replace('\n', " "))));
            wait_for("the locks or a failure", || workspace.join("held").exists() || said.is_finished());
            let locked: Vec<_> =
                ["/usr/bin/env", "/etc/alternatives"].into_iter().filter(|path| is_locked(path)).collect();
            let ranges = has_range_lock("/usr/bin/env");
            std::fs::write(workspace.join("go"), "").expect("written");
            let said = said.join().expect("no panic");
            assert!(said.contains("locked all\n[exit code 0]"), "{user:?}: {said}");
            assert_eq!((locked, ranges), (Vec::new(), false), "{user:?}: locks on the files of the machine");
        });
    }
}

fn is_locked(path: &str) -> bool {
    let Ok(file) = std::fs::File::open(path) else { return false };
    Flock::lock(file, FlockArg::LockExclusiveNonblock).is_err()
}

/// Returns whether a process holds a range lock on the file.
fn has_range_lock(path: &str) -> bool {
    let file = std::fs::File::open(path).expect("it is there");
    let mut asked = libc::flock { l_type: libc::F_WRLCK as i16, l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
    nix::fcntl::fcntl(&file, nix::fcntl::FcntlArg::F_GETLK(&mut asked)).expect("the kernel reports it");
    asked.l_type != libc::F_UNLCK as i16
}

#[test]
fn preflight_reports_the_scope_of_locks_on_programs() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None);
        let report = host.command("ironclaw-host").args(["preflight", "--json"]).output().expect("it runs");
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
        let check =
            report["checks"].as_array().expect("a list").iter().find(|check| check["name"] == "locks on programs");
        assert_eq!(
            check.map(|check| &check["found"]),
            Some(&"locks on programs hold in the jail alone".into()),
            "{report}"
        );
    }
}
