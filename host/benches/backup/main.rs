//! The times of a backup and of its verification with 1 GiB in a workspace, compared with `cp` and `sha256sum` of the same files.
//!
//! Asserts no time: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;
#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;

use figures::{Report, Samples};
use host_fixture::TestHost;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Bytes in the workspace.
const BYTES: usize = 1 << 30;
/// Sizes of its files, each with a name for the report.
const SIZES: [(usize, &str); 2] = [(1 << 20, "1 MiB"), (16 << 10, "16 KiB")];
/// Files of one directory.
const IN_DIRECTORY: usize = 256;
/// Samples of each measurement.
const TIMES: usize = 3;

fn main() {
    let mut report = Report::default();
    for (bytes, name) in SIZES {
        measure(&mut report, bytes, name);
    }
    report.print();
}

/// Makes a host with one conversation, whose workspace has files of this size.
fn host(bytes: usize) -> TestHost {
    let user =
        if nix::unistd::geteuid().is_root() { jail_fixture::HostUser::Root } else { jail_fixture::HostUser::Ordinary };
    let host = TestHost::with(user, host_fixture::Build::Plain, None);
    host.up();
    host.agent("a");
    host.say("a", "hello");
    let workspace = host.session_directory().join("workspace");
    let mut content = vec![0; bytes];
    for number in 0..BYTES / bytes {
        let directory = workspace.join((number / IN_DIRECTORY).to_string());
        fs::create_dir_all(&directory).expect("made");
        // No two files are equal, and none can be compressed.
        fastrand::Rng::with_seed(number as u64).fill(&mut content);
        fs::write(directory.join(format!("{number}.bin")), &content).expect("written");
    }
    host
}

fn measure(report: &mut Report, bytes: usize, name: &str) {
    let host = host(bytes);
    let workspace = host.session_directory().join("workspace");
    let beside = |name: &str| host.home.with_file_name(name);
    let (copy, backup) = (beside("copy"), beside("b.backup"));
    let text = backup.to_str().expect("UTF-8");
    // Everything is in the page cache and on the disk, as for the later samples.
    run(Command::new("sync"));
    hash(&workspace);
    let [mut copied, mut hashed, mut running, mut stopped, mut verified] = std::array::from_fn(|_| Samples::default());
    // Alternating, so that a slow minute of the machine affects all.
    for _ in 0..TIMES {
        copied.push(seconds(|| {
            run(Command::new("cp").args(["-r"]).args([&workspace, &copy]));
            run(Command::new("sync").arg("-f").arg(&copy));
        }));
        fs::remove_dir_all(&copy).expect("removed");
        hashed.push(seconds(|| hash(&workspace)));
        running.push(seconds(|| drop(host.ctl(&["backup", "create", text, "--force"]).ok())));
        host.down();
        stopped.push(seconds(|| drop(host.ctl(&["backup", "create", text, "--force"]).ok())));
        verified.push(seconds(|| drop(host.ctl(&["backup", "verify", text]).ok())));
        host.up();
    }
    host.down();
    let size = fs::metadata(&backup).expect("made").len() as f64 / BYTES as f64;
    report.times(&format!("copy_{bytes}"), &format!("files of {name}: cp -r, sync -f"), &copied);
    report.times(&format!("hash_{bytes}"), "… sha256sum", &hashed);
    report.times(&format!("running_{bytes}"), "… backup create, the host runs", &running);
    report.times(&format!("stopped_{bytes}"), "… backup create, no host runs", &stopped);
    report.times(&format!("verify_{bytes}"), "… backup verify", &verified);
    report.ratio(&format!("running_to_copy_{bytes}"), "… create, running / cp", running.p50() / copied.p50());
    report.ratio(&format!("stopped_to_copy_{bytes}"), "… create, stopped / cp", stopped.p50() / copied.p50());
    report.ratio(&format!("running_to_hash_{bytes}"), "… create, running / sha256sum", running.p50() / hashed.p50());
    let sum = copied.p50() + hashed.p50();
    report.ratio(&format!("verify_to_copy_{bytes}"), "… verify / cp", verified.p50() / copied.p50());
    report.ratio(&format!("verify_to_hash_{bytes}"), "… verify / sha256sum", verified.p50() / hashed.p50());
    report.ratio(&format!("verify_to_both_{bytes}"), "… verify / (cp and sha256sum)", verified.p50() / sum);
    report.ratio(&format!("size_{bytes}"), "… bytes of the backup / 1 GiB", size);
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}

/// Hashes every file in a directory with one process.
fn hash(directory: &Path) {
    let script = "find \"$1\" -type f -print0 | xargs -0 -n 100000 sha256sum";
    run(Command::new("bash").args(["-c", script, "hash"]).arg(directory).stdout(Stdio::null()));
}

fn run(mut command: impl std::borrow::BorrowMut<Command>) {
    let status = command.borrow_mut().status();
    assert!(status.is_ok_and(|status| status.success()), "{:?}", command.borrow());
}
