//! Every way in which a ledger can be tampered with shows, in an export to two independent verifiers and in the record.
//!
//! The ledgers are real ones, over two rotations; what an attacker with the master key does is done with it. Next: `rotation`.

use crate::record;
use crate::stage::{NOBODY, Who, own};
use crate::world::{Build, World};
use ed25519_dalek::{Signer, SigningKey};
use ironclaw_contract::canonical;
use ironclaw_contract::ledger_entry::{GENESIS_PREV, Kind, hash};
use ironclaw_contract::operator::SignedHead;
use ironclaw_host::ledger::line::{self, Line, Parts};
use ironclaw_host::ledger::{check, head};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A home whose ledger was rotated twice, its export, and the heads that were kept outside.
struct Ledger {
    world: World,
    heads: PathBuf,
    export: String,
    key: SigningKey,
}

/// A directory for heads beside the home, which the world's user can write to.
pub(crate) fn outside(world: &World) -> PathBuf {
    let heads = world.home.parent().expect("a directory").join("heads");
    std::fs::create_dir_all(&heads).expect("made");
    if world.who == Who::Ordinary {
        own(&heads, NOBODY);
    }
    heads
}

impl Ledger {
    fn make() -> Self {
        let world = World::with(Who::Ordinary, Build::Plain, None);
        let heads = outside(&world);
        world.configure(&format!("[ledger]\nhead_every_entries = 16\nheads = \"{}\"\n", heads.display()));
        world.up();
        world.agent("a");
        for text in ["hello", "echo one", "write a.txt: x"] {
            world.say("a", text);
            if text != "hello" {
                world.ctl(&["audit", "rotate"]).ok();
            }
        }
        world.say("a", "echo two");
        world.down();
        let export = world.ctl(&["audit", "export"]).ok().stdout;
        let db = record::open(&world.home);
        let (name, wrapped): (String, Vec<u8>) = db
            .query_row("SELECT public, wrapped FROM ledger_keys", [], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("one key");
        let secret = record::master(&world.home).wrapping_key().ledger_key(&name, &wrapped).expect("it opens");
        Self { heads, export, key: SigningKey::from_bytes(&secret), world }
    }

    /// The one that all tests on exports share; nobody changes it.
    fn shared() -> &'static Self {
        static LEDGER: OnceLock<Ledger> = OnceLock::new();
        LEDGER.get_or_init(Self::make)
    }

    fn lines(&self) -> Vec<String> {
        self.export.lines().map(str::to_owned).collect()
    }

    /// What both verifiers say of a text, with heads or without; they must say the same.
    #[track_caller]
    fn both(&self, text: &str, heads: Option<&Path>, key: Option<&str>) -> (i32, String) {
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
        let perl = Command::new("perl").arg(script()).arg(&file).args(&words).output().expect("perl runs");
        let said = |output: &std::process::Output| {
            let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
            (output.status.code().unwrap_or(-1), stdout + &String::from_utf8_lossy(&output.stderr))
        };
        assert_eq!(said(&host), said(&perl), "the two verifiers disagree");
        said(&host)
    }

    /// Both verifiers refuse a text at this number, as this class.
    #[track_caller]
    fn refused(&self, lines: &[String], heads: Option<&Path>, seq: u64, class: &str) {
        let (code, said) = self.both(&(lines.join("\n") + "\n"), heads, None);
        assert_eq!(code, 1, "{said}");
        assert!(said.starts_with(&format!("bad seq {seq}: ")) && said.ends_with(&format!("({class})\n")), "{said}");
    }

    fn sign(&self, head: SignedHead) -> SignedHead {
        sign(&self.key, head)
    }
}

/// What the independent verifier says of an export beside a directory of heads.
pub(crate) fn perl(export: &Path, heads: &Path) -> (i32, String) {
    let output = Command::new("perl").arg(script()).arg(export).arg("--heads").arg(heads).output().expect("perl runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), said)
}

fn script() -> PathBuf {
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

/// An entry in parts that can be changed.
#[derive(Clone)]
struct Loose {
    seq: u64,
    kind: String,
    data: String,
    hash: String,
}

impl Loose {
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

    fn follow(&mut self, prev: &str) {
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

/// Computes every hash anew from line `from` on to the end of its chain, as an attacker would who has no key.
fn rehash(lines: &mut [String], from: usize) {
    let mut prev = from.checked_sub(1).and_then(|at| Loose::of(&lines[at])).map_or(String::new(), |entry| entry.hash);
    for line in &mut lines[from..] {
        let Some(mut entry) = Loose::of(line) else { break };
        entry.follow(&prev);
        prev.clone_from(&entry.hash);
        *line = entry.line();
    }
}

/// The line of the first entry of the chain of this number, and that of its head.
fn chain(lines: &[String], number: usize) -> (usize, usize) {
    let heads: Vec<usize> = (0..lines.len()).filter(|at| head_of(&lines[*at]).is_some()).collect();
    (if number == 0 { 0 } else { heads[number - 1] + 1 }, heads[number])
}

/// A line in the middle of the second chain, and the number of its entry.
fn middle(lines: &[String]) -> (usize, u64) {
    let (first, head) = chain(lines, 1);
    let at = (first + head) / 2;
    (at, Loose::of(&lines[at]).expect("an entry").seq)
}

#[test]
fn an_intact_ledger_over_two_rotations_is_accepted_by_both() {
    let ledger = Ledger::shared();
    let key = head_of(ledger.export.lines().last().expect("a line")).expect("a head").key;
    let (code, said) = ledger.both(&ledger.export, Some(&ledger.heads), Some(&key));
    let entries = ledger.export.lines().filter(|line| Loose::of(line).is_some()).count();
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with(&format!("ok {entries} entries\n   chains 3, outside heads ")), "{said}");
    let kept = head::all(&ledger.heads).expect("a directory").len();
    assert!(kept > 3 && said.contains(&format!("outside heads {kept}\n")), "{said}");
    let own = ledger.world.ctl(&["--json", "audit", "verify"]).ok().json();
    assert_eq!((&own["entries"], &own["chains"], &own["heads"]), (&entries.into(), &3.into(), &kept.into()), "{own}");
    let archives: String = ["000000000000".to_owned(), format!("{:012}", chain(&ledger.lines(), 1).0 - 1)]
        .iter()
        .map(|first| {
            std::fs::read_to_string(ledger.world.home.join(format!("ledger/chain-{first}.ndjson"))).expect("there")
        })
        .collect();
    assert!(ledger.export.starts_with(&archives), "an export begins with the archives, byte for byte");
}

#[test]
fn a_flipped_bit_shows() {
    let ledger = Ledger::shared();
    let (at, seq) = middle(&ledger.lines());
    for (place, class) in [("\"type\":\"", "broken"), ("\"data\":{\"at\":1", "broken"), ("\"hash\":\"", "broken")] {
        let mut lines = ledger.lines();
        let offset = lines[at].find(place).expect("it is there") + place.len();
        let mut bytes = lines[at].clone().into_bytes();
        bytes[offset] ^= 1;
        lines[at] = String::from_utf8(bytes).expect("still text");
        ledger.refused(&lines, None, seq, class);
    }
    // In both texts of the data, so that they agree.
    let mut lines = ledger.lines();
    let mut entry = Loose::of(&lines[at]).expect("an entry");
    entry.data = entry.data.replacen("\"at\":1", "\"at\":2", 1);
    lines[at] = entry.line();
    ledger.refused(&lines, None, seq, "broken");
    // Anywhere: nothing that is flipped is accepted, and nothing before it is blamed.
    let bytes = ledger.export.as_bytes();
    for at in (0..bytes.len()).step_by(101) {
        let mut changed = bytes.to_vec();
        changed[at] ^= 4;
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        let before = ledger.export.lines().take(line).filter(|line| Loose::of(line).is_some()).count() as u64;
        match check::export(changed.as_slice(), &BTreeSet::new()) {
            Err(check::Error::Bad(bad)) => {
                let known = bad.seq.expect("a number");
                assert!(known == 0 || known + 1 >= before, "byte {at}: {bad}, but {before} entries stand before it");
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

#[test]
fn two_swapped_entries_show() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    lines.swap(at, at + 1);
    ledger.refused(&lines, None, seq, "broken");
    // With the numbers put right.
    let (mut one, mut two) = (Loose::of(&lines[at]).expect("one"), Loose::of(&lines[at + 1]).expect("two"));
    std::mem::swap(&mut one.seq, &mut two.seq);
    (lines[at], lines[at + 1]) = (one.line(), two.line());
    ledger.refused(&lines, None, seq, "broken");
    // And every hash that follows.
    rehash(&mut lines, at);
    let end = head_of(&lines[chain(&lines, 1).1]).expect("a head").seq;
    ledger.refused(&lines, None, end, "rewritten");
}

#[test]
fn an_inserted_entry_shows() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    let mut made_up = Loose::of(&lines[at]).expect("an entry");
    made_up.data = made_up.data.replacen("{\"at\":", "{\"also\":true,\"at\":", 1);
    made_up.follow(&Loose::of(&lines[at - 1]).expect("an entry").hash);
    lines.insert(at, made_up.line());
    ledger.refused(&lines, None, seq + 1, "broken");
    // With everything behind it moved and computed anew, up to the end of the chain.
    let end = chain(&lines, 1).1;
    for line in &mut lines[at + 1..end] {
        let mut entry = Loose::of(line).expect("an entry");
        entry.seq += 1;
        *line = entry.line();
    }
    rehash(&mut lines, at);
    let signed = head_of(&lines[end]).expect("a head").seq;
    ledger.refused(&lines, None, signed + 1, "rewritten");
}

#[test]
fn a_deleted_entry_shows() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    lines.remove(at);
    ledger.refused(&lines, None, seq, "broken");
    let end = chain(&lines, 1).1;
    for line in &mut lines[at..end] {
        let mut entry = Loose::of(line).expect("an entry");
        entry.seq -= 1;
        *line = entry.line();
    }
    rehash(&mut lines, at);
    let signed = head_of(&lines[end]).expect("a head").seq;
    ledger.refused(&lines, None, signed, "truncated");
    // A whole chain of them.
    let mut lines = ledger.lines();
    let (first, head) = chain(&lines, 1);
    let missing = Loose::of(&lines[first]).expect("a genesis").seq;
    lines.drain(first..=head);
    ledger.refused(&lines, None, missing, "broken");
    let mut lines = ledger.lines();
    lines.drain(..first);
    ledger.refused(&lines, None, 0, "broken");
}

#[test]
fn a_truncated_tail_shows() {
    let ledger = Ledger::shared();
    let whole = ledger.lines();
    let last = Loose::of(&whole[whole.len() - 2]).expect("an entry").seq;
    // Without the head behind it, and with entries missing in front of it.
    ledger.refused(&whole[..whole.len() - 1], None, last + 1, "truncated");
    ledger.refused(&whole[..whole.len() - 4], None, last - 2, "truncated");
    let mut lines = whole.clone();
    lines.drain(whole.len() - 3..whole.len() - 1);
    ledger.refused(&lines, None, last - 1, "truncated");
    // At the end of a chain nothing is missing to be seen: only a head that was kept outside tells.
    let (_, head) = chain(&whole, 1);
    let (code, said) = ledger.both(&(whole[..=head].join("\n") + "\n"), None, None);
    assert_eq!(code, 0, "{said}");
    ledger.refused(&whole[..=head], Some(&ledger.heads), head_of(&whole[head]).expect("a head").seq + 1, "truncated");
    // With the host's own key a new end can be signed. The head outside still tells.
    let end = Loose::of(&whole[whole.len() - 4]).expect("an entry");
    let shorter = SignedHead { seq: end.seq, hash: end.hash, ..head_of(&whole[whole.len() - 1]).expect("a head") };
    let mut lines = whole[..whole.len() - 3].to_vec();
    lines.push(serde_json::to_string(&ledger.sign(shorter)).expect("a head"));
    assert_eq!(ledger.both(&(lines.join("\n") + "\n"), None, None).0, 0, "the limit that the threat model names");
    ledger.refused(&lines, Some(&ledger.heads), end.seq + 1, "truncated");
}

/// Another ledger, whole in itself: each entry of the live chain changed, everything computed and signed anew by `key`.
fn rewritten(lines: &mut [String], from: usize, key: &SigningKey) {
    for line in &mut lines[from..] {
        if let Some(mut entry) = Loose::of(line) {
            entry.data = entry.data.replacen("\"at\":1", "\"at\":2", 1);
            let named = canonical::parse(entry.data.as_bytes(), canonical::Limits::bytes(1 << 20)).expect("JSON");
            if let Some(Value::String(old)) = named.get("key") {
                let public: String = key.verifying_key().as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                entry.data = entry.data.replace(old.as_str(), &public);
            }
            *line = entry.line();
        }
    }
    let (mut before, mut begin, mut ledger) = (0, 0, String::new());
    while begin < lines.len() {
        let end = (begin..lines.len()).find(|at| head_of(&lines[*at]).is_some()).expect("a head");
        if begin > 0 {
            let before = lines[before..begin].join("\n") + "\n";
            let mut genesis = Loose::of(&lines[begin]).expect("a genesis");
            let mut data: Value = serde_json::from_str(&genesis.data).expect("JSON");
            data["continues_from"]["hash"] = Loose::of(&lines[begin - 2]).expect("an entry").hash.into();
            data["continues_from"]["archive"] = canonical::Digest::of(before.as_bytes()).to_string().into();
            data["ledger"] = ledger.clone().into();
            genesis.data = canonical::to_string(&data);
            lines[begin] = genesis.line();
        }
        rehash(lines, begin);
        if begin == 0 {
            ledger = Loose::of(&lines[0]).expect("a genesis").hash;
        }
        let last = Loose::of(&lines[end - 1]).expect("an entry");
        let head = SignedHead { hash: last.hash, ledger: ledger.clone(), ..head_of(&lines[end]).expect("a head") };
        lines[end] = serde_json::to_string(&sign(key, head)).expect("a head");
        (before, begin) = (begin, end + 1);
    }
}

#[test]
fn a_full_rewrite_shows() {
    let ledger = Ledger::shared();
    // Without a key: nobody signs it.
    let mut lines = ledger.lines();
    let mut genesis = Loose::of(&lines[0]).expect("a genesis");
    genesis.data = genesis.data.replacen("\"at\":1", "\"at\":2", 1);
    lines[0] = genesis.line();
    rehash(&mut lines, 0);
    ledger.refused(&lines, None, 0, "rewritten");
    // With a key of one's own: by itself it is a ledger like any other, and who knows the key or holds a head sees it.
    let mut lines = ledger.lines();
    rewritten(&mut lines, 0, &SigningKey::from_bytes(&[9; 32]));
    let text = lines.join("\n") + "\n";
    assert_eq!(ledger.both(&text, None, None).0, 0, "the limit that the threat model names");
    let key = head_of(ledger.export.lines().last().expect("a line")).expect("a head").key;
    let (code, said) = ledger.both(&text, None, Some(&key));
    assert!(code == 1 && said.starts_with("bad seq 0: ") && said.ends_with("(rewritten)\n"), "{said}");
    ledger.refused(&lines, Some(&ledger.heads), 0, "rewritten");
    // With the host's own key.
    let mut lines = ledger.lines();
    rewritten(&mut lines, 0, &ledger.key);
    assert_eq!(ledger.both(&(lines.join("\n") + "\n"), None, None).0, 0, "the limit that the threat model names");
    ledger.refused(&lines, Some(&ledger.heads), 0, "rewritten");
    // Only what came late: the first head that does not fit is named.
    let mut lines = ledger.lines();
    let (from, _) = middle(&lines);
    rewritten(&mut lines, from, &ledger.key);
    let since = Loose::of(&lines[from]).expect("an entry").seq;
    let kept = head::all(&ledger.heads).expect("a directory");
    let first =
        kept.iter().filter_map(|kept| kept.head.as_ref()).map(|head| head.seq).filter(|seq| *seq >= since).min();
    ledger.refused(&lines, Some(&ledger.heads), first.expect("a head after it"), "rewritten");
}

#[test]
fn a_fork_shows() {
    let ledger = Ledger::shared();
    let heads = tempfile::tempdir().expect("a directory");
    let keep = |head: &SignedHead| head::keep(heads.path(), head).expect("kept");
    let mut lines = ledger.lines();
    let (first, end) = chain(&lines, 2);
    let original = head_of(&lines[end]).expect("a head");
    keep(&original);
    // The same beginning, another end, one entry longer; both signed by the host, as two copies of a home would.
    let from = first + 2;
    rewritten(&mut lines, from, &ledger.key);
    let mut more = Loose::of(&lines[end - 1]).expect("an entry");
    more.seq += 1;
    more.follow(&Loose::of(&lines[end - 1]).expect("an entry").hash);
    let longer = ledger.sign(SignedHead { seq: more.seq, hash: more.hash.clone(), ..original.clone() });
    lines[end] = more.line();
    lines.push(serde_json::to_string(&longer).expect("a head"));
    assert_eq!(ledger.both(&(lines.join("\n") + "\n"), None, None).0, 0, "alone, neither shows");
    ledger.refused(&lines, Some(heads.path()), original.seq, "rewritten");
    keep(&longer);
    ledger.refused(&lines, Some(heads.path()), original.seq, "forked");
    // In one file: two entries that follow the same one.
    let mut lines = ledger.lines();
    let mut other = Loose::of(&lines[end - 1]).expect("an entry");
    other.data = other.data.replacen("\"at\":1", "\"at\":2", 1);
    other.follow(&Loose::of(&lines[end - 2]).expect("an entry").hash);
    lines.insert(end, other.line());
    ledger.refused(&lines, None, original.seq + 1, "broken");
    // Heads of another ledger in the same directory are not mixed up with it.
    let stranger = SignedHead { ledger: "ab".repeat(32), ..original };
    std::fs::remove_file(heads.path().join(head::file_name(&longer))).expect("removed");
    keep(&sign(&SigningKey::from_bytes(&[9; 32]), stranger));
    let (code, said) = ledger.both(&ledger.export, Some(heads.path()), None);
    assert!(code == 0 && said.contains("outside heads 1\n") && said.contains("1 heads of other ledgers"), "{said}");
}

#[test]
fn a_replayed_rotation_shows() {
    let ledger = Ledger::shared();
    let lines = ledger.lines();
    let ((first, head), (_, last)) = (chain(&lines, 0), chain(&lines, 1));
    let next = |at: usize| head_of(&lines[at]).expect("a head").seq + 1;
    let old = &lines[first..=head];
    // Behind itself, in place of the chain after it, and in place of the live one.
    ledger.refused(&[&lines[..=head], old, &lines[head + 1..]].concat(), None, next(head), "replayed");
    ledger.refused(&[&lines[..=head], old, &lines[last + 1..]].concat(), None, next(head), "replayed");
    ledger.refused(&[&lines[..=last], old].concat(), None, next(last), "replayed");
}

#[test]
fn a_gap_shows() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    let end = chain(&lines, 1).1;
    for line in &mut lines[at..end] {
        let mut entry = Loose::of(line).expect("an entry");
        entry.seq += 1;
        *line = entry.line();
    }
    rehash(&mut lines, at);
    ledger.refused(&lines, None, seq, "broken");
}

#[test]
fn a_duplicate_shows() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    lines.insert(at, lines[at].clone());
    ledger.refused(&lines, None, seq + 1, "broken");
}

#[test]
fn a_torn_last_line_shows() {
    let ledger = Ledger::shared();
    let lines = ledger.lines();
    let last = Loose::of(&lines[lines.len() - 2]).expect("an entry").seq;
    let whole = ledger.export.len();
    let entry = ledger.export.rfind("{\"domain\"").expect("a head");
    for (cut, seq) in [(whole - 1, last + 1), (whole - 40, last + 1), (entry - 1, last), (entry - 30, last)] {
        let (code, said) = ledger.both(&ledger.export[..cut], None, None);
        assert!(code == 1 && said == format!("bad seq {seq}: the last line is torn (truncated)\n"), "{said}");
    }
}

#[test]
fn a_head_that_is_none_or_not_ours_is_named() {
    let ledger = Ledger::shared();
    let heads = tempfile::tempdir().expect("a directory");
    let good = head_of(ledger.export.lines().last().expect("a line")).expect("a head");
    let forged = sign(&SigningKey::from_bytes(&[9; 32]), good.clone());
    let moved = SignedHead { seq: good.seq - 1, ..good };
    for (text, why) in [
        (serde_json::to_string(&forged).expect("a head"), "with a key that this ledger does not name (head)"),
        (serde_json::to_string(&moved).expect("a head"), "is not that of its key (head)"),
        ("{}".to_owned(), "is no head (head)"),
    ] {
        std::fs::write(heads.path().join("a.json"), text).expect("written");
        let (code, said) = ledger.both(&ledger.export, Some(heads.path()), None);
        assert!(code == 1 && said.starts_with("bad: ") && said.trim_end().ends_with(why), "{said}");
    }
}

#[test]
fn the_independent_verifier_agrees_with_the_published_vectors() {
    let vectors = script().with_file_name("ledger-vectors.json");
    let output = Command::new("perl").arg(script()).arg("--vectors").arg(vectors).output().expect("perl runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.starts_with("ok ") && said.ends_with(" vectors\n"), "{said}");
}

/// The number that is named, and the class.
type Shows = (u64, &'static str);

#[test]
fn tampering_with_the_record_itself_shows() {
    let ledger = Ledger::make();
    let home = ledger.world.home.clone();
    let state = home.join("state.db");
    let intact = std::fs::read(&state).expect("read");
    let live = ledger
        .lines()
        .iter()
        .filter_map(|line| Loose::of(line))
        .skip_while(|e| e.seq < first_of_live(&home))
        .collect::<Vec<_>>();
    let (first, last) = (live[0].seq, live[live.len() - 1].seq);
    let seq = (first + last) / 2;
    let empty = tempfile::tempdir().expect("a directory");
    let set = |entries: &[Loose]| {
        let mut sql = "DELETE FROM ledger;".to_owned();
        for Loose { seq, kind, data, hash } in entries {
            let data = data.replace('\'', "''");
            sql += &format!(
                "INSERT INTO ledger (seq, type, data, hash, at) VALUES ({seq}, '{kind}', '{data}', '{hash}', 0);"
            );
        }
        sql
    };
    let at = (seq - first) as usize;
    let renumbered = |mut entries: Vec<Loose>, from: usize| {
        let mut prev = String::new();
        for (number, entry) in entries.iter_mut().enumerate() {
            entry.seq = first + number as u64;
            if number >= from {
                entry.follow(&prev);
            }
            prev.clone_from(&entry.hash);
        }
        entries
    };
    let changed = |from: usize| {
        let mut entries = live.clone();
        for entry in &mut entries[from..] {
            entry.data = entry.data.replacen("\"at\":1", "\"at\":2", 1);
        }
        renumbered(entries, from)
    };
    let without: Vec<Loose> = live.iter().filter(|entry| entry.seq != seq).cloned().collect();
    let twice: Vec<Loose> =
        live.iter().flat_map(|entry| vec![entry.clone(); if entry.seq == seq { 2 } else { 1 }]).collect();
    let swap = format!(
        "UPDATE ledger SET seq = -1 WHERE seq = {seq}; UPDATE ledger SET seq = {seq} WHERE seq = {0}; UPDATE ledger SET seq = {0} WHERE seq = -1;",
        seq + 1
    );
    let head_after = |seq: u64| {
        let kept = head::all(&ledger.heads).expect("a directory");
        kept.iter()
            .filter_map(|kept| kept.head.as_ref())
            .map(|head| head.seq)
            .filter(|head| *head >= seq)
            .min()
            .expect("a head")
    };
    let ended = |entries: &[Loose]| entries[entries.len() - 1].seq + 1;
    // With one entry less, the last head has none.
    let one_less = match head_after(seq) {
        head if head == last => (last, "truncated"),
        head => (head, "rewritten"),
    };
    // What is changed, and what shows: with the heads that were kept outside, and without any.
    let cases: Vec<(&str, String, Shows, Option<Shows>)> = vec![
        (
            "flipped",
            format!("UPDATE ledger SET data = replace(data, '\"at\":1', '\"at\":2') WHERE seq = {seq}"),
            (seq, "broken"),
            Some((seq, "broken")),
        ),
        (
            "another type",
            format!("UPDATE ledger SET type = 'BOOT' WHERE seq = {seq}"),
            (seq, "broken"),
            Some((seq, "broken")),
        ),
        ("swapped", swap, (seq, "broken"), Some((seq, "broken"))),
        ("inserted", set(&renumbered(twice.clone(), usize::MAX)), (seq + 1, "broken"), Some((seq + 1, "broken"))),
        ("inserted, and computed anew", set(&renumbered(twice, at)), (head_after(seq + 1), "rewritten"), None),
        ("deleted", format!("DELETE FROM ledger WHERE seq = {seq}"), (seq, "broken"), Some((seq, "broken"))),
        ("deleted, and computed anew", set(&renumbered(without.clone(), at)), one_less, None),
        ("truncated", format!("DELETE FROM ledger WHERE seq > {seq}"), (seq + 1, "truncated"), None),
        ("rewritten", set(&changed(at)), (head_after(seq), "rewritten"), None),
        ("rewritten from the last genesis", set(&changed(0)), (head_after(first), "rewritten"), None),
        (
            "a gap",
            format!("UPDATE ledger SET seq = seq + 1000 WHERE seq > {seq}"),
            (seq + 1, "broken"),
            Some((seq + 1, "broken")),
        ),
        (
            "the chain before it once more",
            {
                let lines = ledger.lines();
                let (begin, end) = chain(&lines, 1);
                let old: Vec<Loose> = lines[begin..end].iter().filter_map(|line| Loose::of(line)).collect();
                assert_eq!(ended(&old), first);
                set(&old)
            },
            (first, "truncated"),
            None,
        ),
        ("emptied", "DELETE FROM ledger".to_owned(), (first, "truncated"), Some((first, "truncated"))),
    ];
    for (name, sql, with_heads, without) in cases {
        {
            let db = record::open(&home);
            db.execute_batch(&format!("PRAGMA query_only = OFF; BEGIN; {sql}; COMMIT;")).expect(name);
        }
        let verify = |more: &[&str]| ledger.world.ctl(&[&["--json", "audit", "verify"], more].concat());
        let said = verify(&[]);
        let shown = if said.stdout.is_empty() { Value::Null } else { said.json() };
        assert_eq!(
            (said.code, &shown["class"], &shown["seq"]),
            (1, &with_heads.1.into(), &with_heads.0.into()),
            "{name}: {}{}",
            said.stdout,
            said.stderr
        );
        let said = verify(&["--heads", empty.path().to_str().expect("UTF-8")]);
        match without {
            Some((seq, class)) => {
                let shown = said.json();
                assert_eq!(
                    (said.code, &shown["class"], &shown["seq"]),
                    (1, &class.into(), &seq.into()),
                    "{name}: {shown}"
                );
            }
            None => drop(said.ok()),
        }
        std::fs::write(&state, &intact).expect("written");
    }
    // A second entry of the same number is refused by the database, and a torn file by the cipher.
    {
        let db = record::open(&home);
        let copy = format!("PRAGMA query_only = OFF; INSERT INTO ledger SELECT * FROM ledger WHERE seq = {seq}");
        assert!(db.execute_batch(&copy).is_err());
    }
    for torn in [intact.len() / 2 + 100, intact.len() / 2, 100] {
        std::fs::write(&state, &intact[..torn]).expect("written");
        assert_ne!(ledger.world.ctl(&["audit", "verify"]).code, 0, "torn at {torn}");
    }
    // A bit of the file itself: the cipher refuses the page, and where the ledger is on another, it is what it was.
    let entries =
        |export: &str| export.lines().filter(|line| Loose::of(line).is_some()).map(str::to_owned).collect::<Vec<_>>();
    for at in (0..intact.len()).step_by(intact.len() / 12) {
        let mut flipped = intact.clone();
        flipped[at] ^= 1;
        std::fs::write(&state, &flipped).expect("written");
        let export = ledger.world.ctl(&["audit", "export"]);
        assert!(export.code == 1 || entries(&export.stdout) == entries(&ledger.export), "byte {at}");
    }
    std::fs::write(&state, &intact).expect("written");
    ledger.world.ctl(&["audit", "verify"]).ok();
}

fn first_of_live(home: &Path) -> u64 {
    record::count(&record::open(home), "SELECT min(seq) FROM ledger") as u64
}

#[test]
fn tampering_with_the_archives_shows() {
    let ledger = Ledger::make();
    let home = &ledger.world.home;
    let second = chain(&ledger.lines(), 1).0 as u64 - 1;
    let [one, two] = [0, second].map(|first| home.join(format!("ledger/chain-{first:012}.ndjson")));
    let third = first_of_live(home);
    let text = [&one, &two].map(|path| std::fs::read_to_string(path).expect("read"));
    let verdict = || {
        let said = ledger.world.ctl(&["--json", "audit", "verify"]);
        let shown = said.json();
        (said.code, shown["class"].as_str().unwrap_or_default().to_owned(), shown["seq"].as_u64().unwrap_or(u64::MAX))
    };
    let bad = |class: &str, seq: u64| (1, class.to_owned(), seq);
    std::fs::remove_file(&two).expect("removed");
    assert_eq!(verdict(), bad("missing", second));
    std::fs::write(&two, &text[0]).expect("written");
    assert_eq!(verdict(), bad("replayed", second), "the first in place of the second");
    std::fs::write(&two, format!("{}\n", text[1])).expect("written");
    assert_eq!(verdict(), bad("broken", third), "a line behind its head");
    let cut = text[1].trim_end().rfind('\n').expect("lines") + 1;
    std::fs::write(&two, &text[1][..cut]).expect("written");
    assert_eq!(verdict(), bad("truncated", third), "without its head");
    // Signed anew by the host's own key: the chain after it says which file it continues from.
    let mut lines: Vec<String> = text[1].lines().map(str::to_owned).collect();
    let last = lines.len() - 1;
    let later = SignedHead { time: "2031-01-01T00:00:00.000Z".to_owned(), ..head_of(&lines[last]).expect("a head") };
    lines[last] = serde_json::to_string(&ledger.sign(later)).expect("a head");
    std::fs::write(&two, lines.join("\n") + "\n").expect("written");
    assert_eq!(verdict(), bad("broken", third));
    std::fs::write(&two, &text[1]).expect("written");
    // The record as it was before a rotation, beside the archive that came of it.
    std::fs::write(home.join(format!("ledger/chain-{:012}.ndjson", third + 500)), &text[1]).expect("written");
    let (code, class, _) = verdict();
    assert_eq!((code, class.as_str()), (1, "truncated"));
}
