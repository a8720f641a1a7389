//! Detection of tampering with a ledger: in an export by two independent verifiers, and in the record by the host.
//!
//! The ledgers come from a real host and have two rotations. The tests use the master key only if the attacker would have it. See
//! `export`, `stored` and `ops::rotation`.

mod export;
mod stored;

use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::{HostUser, ORDINARY_UID, set_owner};
use crate::support::record;
use ed25519_dalek::{Signer, SigningKey};
use ironclaw_contract::canonical;
use ironclaw_contract::ledger_entry::{GENESIS_PREV, Kind, hash};
use ironclaw_ledger::head;
use ironclaw_ledger::line::{self, Line, Parts};
use ironclaw_operator::SignedHead;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A home whose ledger was rotated twice, with its export, its signing key and the heads outside of the home.
struct Ledger {
    host: TestHost,
    heads: PathBuf,
    export: String,
    key: SigningKey,
}

/// Makes a directory for heads beside the home. The user of the host can write to it.
pub(crate) fn outside(host: &TestHost) -> PathBuf {
    let heads = host.home.parent().expect("a directory").join("heads");
    std::fs::create_dir_all(&heads).expect("made");
    if host.user == HostUser::Ordinary {
        set_owner(&heads, ORDINARY_UID);
    }
    heads
}

impl Ledger {
    fn make() -> Self {
        let host = TestHost::with(HostUser::Ordinary, Build::Plain, None);
        let heads = outside(&host);
        host.configure(&format!("[ledger]\nhead_every_entries = 16\nheads = \"{}\"\n", heads.display()));
        host.up();
        host.agent("a");
        for text in ["hello", "echo one", "write a.txt: x"] {
            host.say("a", text);
            if text != "hello" {
                host.ctl(&["audit", "rotate"]).ok();
            }
        }
        host.say("a", "echo two");
        host.down();
        let export = host.ctl(&["audit", "export"]).ok().stdout;
        let db = record::open(&host.home);
        let (name, wrapped): (String, Vec<u8>) = db
            .query_row("SELECT public, wrapped FROM ledger_keys", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("one key");
        let secret = record::master(&host.home).wrapping_key().ledger_key(&name, &wrapped).expect("it opens");
        Self { heads, export, key: SigningKey::from_bytes(&secret), host }
    }

    /// Returns the ledger that all tests of exports share. No test changes it.
    fn shared() -> &'static Self {
        static LEDGER: OnceLock<Ledger> = OnceLock::new();
        LEDGER.get_or_init(Self::make)
    }

    fn lines(&self) -> Vec<String> {
        self.export.lines().map(str::to_owned).collect()
    }

    /// Returns the exit code and the output that both verifiers give for a text, with or without heads.
    #[track_caller]
    fn verdict(&self, text: &str, heads: Option<&Path>, key: Option<&str>) -> (i32, String) {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("ledger.ndjson");
        std::fs::write(&file, text).expect("written");
        let mut words: Vec<&str> = Vec::new();
        words.extend(heads.iter().flat_map(|heads| ["--heads", heads.to_str().expect("UTF-8")]));
        words.extend(key.iter().flat_map(|key| ["--key", key]));
        let host = Command::new(env!("CARGO_BIN_EXE_ironclaw-host"))
            .args(["audit", "verify", "--file"])
            .arg(&file)
            .args(&words)
            .output()
            .expect("the host's program runs");
        let perl = Command::new("perl").arg(verifier_script()).arg(&file).args(&words).output().expect("perl runs");
        let said = |output: &std::process::Output| {
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.code().unwrap_or(-1), stdout + &String::from_utf8_lossy(&output.stderr))
        };
        assert_eq!(said(&host), said(&perl), "the two verifiers disagree");
        said(&host)
    }

    /// Checks that both verifiers refuse the lines at this sequence number, with this class of damage.
    #[track_caller]
    fn check_refused(&self, lines: &[String], heads: Option<&Path>, seq: u64, class: &str) {
        let (code, said) = self.verdict(&(lines.join("\n") + "\n"), heads, None);
        assert_eq!(code, 1, "{said}");
        assert!(said.starts_with(&format!("bad seq {seq}: ")) && said.ends_with(&format!("({class})\n")), "{said}");
    }

    fn sign(&self, head: SignedHead) -> SignedHead {
        sign(&self.key, head)
    }
}

/// Returns the exit code and the output of the independent verifier for an export and a directory of heads.
pub(crate) fn perl(export: &Path, heads: &Path) -> (i32, String) {
    let output =
        Command::new("perl").arg(verifier_script()).arg(export).arg("--heads").arg(heads).output().expect("perl runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), said)
}

fn verifier_script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace").join("docs/verify-ledger.pl")
}

fn sign(key: &SigningKey, mut head: SignedHead) -> SignedHead {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    head.key = hex(key.verifying_key().as_bytes());
    let mut fields = serde_json::to_value(&head).expect("plain fields");
    fields.as_object_mut().expect("an object").remove("signature");
    head.signature = hex(&key.sign(&canonical::to_vec(&fields)).to_bytes());
    assert!(head::is_authentic(&head));
    head
}

/// An entry of the ledger with parts that a test can change.
#[derive(Clone)]
struct MutableEntry {
    seq: u64,
    kind: String,
    data: String,
    hash: String,
}

impl MutableEntry {
    fn of(line: &str) -> Option<Self> {
        match line::parse(line)? {
            Line::Entry(Parts { seq, kind, canonical, hash }) => {
                Some(Self { seq, kind: kind.to_owned(), data: canonical.to_owned(), hash: hash.to_owned() })
            }
            Line::Head(_) => None,
        }
    }

    fn line(&self) -> String {
        let mut line = String::new();
        line::write(&mut line, Parts { seq: self.seq, kind: &self.kind, canonical: &self.data, hash: &self.hash });
        line.trim_end().to_owned()
    }

    fn chain_after(&mut self, prev: &str) {
        let kind: Kind = self.kind.parse().expect("a kind");
        self.hash =
            hash(if kind == Kind::Genesis { GENESIS_PREV } else { prev }, self.seq, kind, &self.data).to_string();
    }
}

fn head_of(line: &str) -> Option<SignedHead> {
    match line::parse(line)? {
        Line::Head(head) => Some(*head),
        Line::Entry(_) => None,
    }
}

/// Recomputes every hash from line `from` to the end of its chain. An attacker needs no key for this.
fn rehash(lines: &mut [String], from: usize) {
    let mut prev =
        from.checked_sub(1).and_then(|at| MutableEntry::of(&lines[at])).map_or(String::new(), |entry| entry.hash);
    for line in &mut lines[from..] {
        let Some(mut entry) = MutableEntry::of(line) else { break };
        entry.chain_after(&prev);
        prev.clone_from(&entry.hash);
        *line = entry.line();
    }
}

/// Returns the positions of the first entry and of the head of a chain.
fn chain(lines: &[String], number: usize) -> (usize, usize) {
    let heads: Vec<usize> = (0..lines.len()).filter(|at| head_of(&lines[*at]).is_some()).collect();
    (if number == 0 { 0 } else { heads[number - 1] + 1 }, heads[number])
}

/// Returns the position of a line in the middle of the second chain, and the sequence number of its entry.
fn middle(lines: &[String]) -> (usize, u64) {
    let (first, head) = chain(lines, 1);
    let at = (first + head) / 2;
    (at, MutableEntry::of(&lines[at]).expect("an entry").seq)
}
