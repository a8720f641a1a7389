//! Verifies a package of 1,000 files and 50 MB with its signature, beside `sha256sum` over the same files.
//!
//! `cargo bench -p ironclaw-skill --features author --bench package` prints both times, their ratio and the greatest memory. It fails if the
//! ratio is over 2.

#![allow(clippy::print_stdout, reason = "a bench prints its numbers")]

use ironclaw_skill::Package;
use ironclaw_skill::author::{self, SecretKey};
use ironclaw_skill::signature::PublicKey;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 1_000;
const FILE_BYTES: usize = 50_000;
const ROUNDS: usize = 7;
const RATIO_MAX: f64 = 2.0;
const WORK: &str = "PACKAGE_BENCH_WORK";

fn main() {
    // A child measures, so that the memory of packing does not count.
    if let Ok(work) = std::env::var(WORK) {
        return measure(Path::new(&work));
    }
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    let own = std::env::current_exe().expect("this program has a path");
    let measured = Command::new(own).env(WORK, work.path()).status().expect("this program runs again");
    assert!(measured.success(), "the ratio is over {RATIO_MAX}");
}

fn prepare(work: &Path) {
    let source = work.join("source");
    fs::create_dir_all(source.join("assets")).expect("made");
    fs::write(source.join("skill.toml"), "name = \"large\"\nversion = \"1.0.0\"\n").expect("written");
    fs::write(source.join("SKILL.md"), "---\nname: large\ndescription: Is large.\n---\n").expect("written");
    for number in 0..FILES {
        let mut state = number as u64 + 1;
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
        let bytes: Vec<u8> = random.take(FILE_BYTES).collect();
        fs::write(source.join(format!("assets/{number}")), bytes).expect("written");
    }
    let packed = author::pack(&source).expect("packed");
    let pair = author::generate_key(None).expect("a key");
    let secret = SecretKey::parse(&pair.secret, None).expect("a secret key");
    for (form, is_legacy) in [("prehashed", false), ("legacy", true)] {
        let signature = author::sign(packed.as_slice(), &secret, "skill large 1.0.0", is_legacy).expect("signed");
        fs::write(work.join(form), signature).expect("written");
    }
    fs::write(work.join("large.skill"), packed).expect("written");
    fs::write(work.join("key.pub"), pair.public).expect("written");
}

fn measure(work: &Path) {
    let read = |name: &str| fs::read_to_string(work.join(name)).expect(name);
    let key = PublicKey::parse(&read("key.pub")).expect("a key");
    let file = work.join("large.skill");
    let program = median(|| {
        let files = format!("{}/source/assets/*", work.display());
        let sums = Command::new("sh").args(["-c", &format!("sha256sum {files}")]).stdout(Stdio::null()).status();
        assert!(sums.expect("sha256sum runs").success());
    });
    println!("sha256sum                 {:7.1} ms", program.as_secs_f64() * 1e3);
    let mut is_fast = true;
    let signature = read("prehashed");
    let own = median(|| drop(Package::read_signed(&file, &signature, &key).expect("verified")));
    let ratio = own.as_secs_f64() / program.as_secs_f64();
    is_fast &= ratio <= RATIO_MAX;
    println!(
        "verify                    {:7.1} ms, ratio {ratio:.2}, at most {} KiB",
        own.as_secs_f64() * 1e3,
        peak_kib()
    );
    let package = Package::read(&file).expect("a package");
    let unpacked = work.join("unpacked");
    Package::unpack(&file, &unpacked).expect("unpacked");
    let tree = median(|| package.manifest.verify_tree(&unpacked).expect("the same files"));
    let ratio = tree.as_secs_f64() / program.as_secs_f64();
    is_fast &= ratio <= RATIO_MAX;
    println!("verify the unpacked files {:7.1} ms, ratio {ratio:.2}", tree.as_secs_f64() * 1e3);
    let signature = read("legacy");
    let own = median(|| drop(Package::read_signed(&file, &signature, &key).expect("verified")));
    println!("verify in the legacy form {:7.1} ms, at most {} KiB", own.as_secs_f64() * 1e3, peak_kib());
    std::process::exit(i32::from(!is_fast));
}

fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = std::iter::repeat_with(|| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    })
    .take(ROUNDS)
    .collect();
    times.sort();
    times[ROUNDS / 2]
}

/// Returns the greatest resident memory of this process.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel reports it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
