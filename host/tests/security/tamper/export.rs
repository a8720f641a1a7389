//! Detection of changes in an export, by both verifiers.
//!
//! The tests share one ledger and start no host. See `stored`.

use super::{Ledger, MutableEntry, chain, head_of, middle, rehash, sign, verifier_script};
use ed25519_dalek::SigningKey;
use ironclaw_contract::canonical;
use ironclaw_ledger::{check, head};
use ironclaw_operator::SignedHead;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn both_verifiers_accept_an_intact_rotated_ledger() {
    let ledger = Ledger::shared();
    let key = head_of(ledger.export.lines().last().expect("a line")).expect("a head").key;
    let (code, said) = ledger.verdict(&ledger.export, Some(&ledger.heads), Some(&key));
    let entries = ledger.export.lines().filter(|line| MutableEntry::of(line).is_some()).count();
    assert_eq!(code, 0, "{said}");
    assert!(said.starts_with(&format!("ok {entries} entries\n   chains 3, outside heads ")), "{said}");
    let kept = head::all(&ledger.heads).expect("a directory").len();
    assert!(kept > 3 && said.contains(&format!("outside heads {kept}\n")), "{said}");
    let own = ledger.host.ctl(&["--json", "audit", "verify"]).ok().json();
    assert_eq!((&own["entries"], &own["chains"], &own["heads"]), (&entries.into(), &3.into(), &kept.into()), "{own}");
    let archives: String = ["000000000000".to_owned(), format!("{:012}", chain(&ledger.lines(), 1).0 - 1)]
        .iter()
        .map(|first| {
            std::fs::read_to_string(ledger.host.home.join(format!("ledger/chain-{first}.ndjson"))).expect("an archive")
        })
        .collect();
    assert!(ledger.export.starts_with(&archives), "an export begins with the archives, byte for byte");
}

#[test]
fn flipped_bit_is_detected() {
    let ledger = Ledger::shared();
    let (at, seq) = middle(&ledger.lines());
    for (place, class) in [("\"type\":\"", "broken"), ("\"data\":{\"at\":1", "broken"), ("\"hash\":\"", "broken")] {
        let mut lines = ledger.lines();
        let offset = lines[at].find(place).expect("it is there") + place.len();
        let mut bytes = lines[at].clone().into_bytes();
        bytes[offset] ^= 1;
        lines[at] = String::from_utf8(bytes).expect("still text");
        ledger.check_refused(&lines, None, seq, class);
    }
    // A change of the canonical data, with the same change of the readable data.
    let mut lines = ledger.lines();
    let mut entry = MutableEntry::of(&lines[at]).expect("an entry");
    entry.data = entry.data.replacen("\"at\":1", "\"at\":2", 1);
    lines[at] = entry.line();
    ledger.check_refused(&lines, None, seq, "broken");
    // At any byte of the export: no flipped bit is accepted, and the verifier names no earlier entry.
    let bytes = ledger.export.as_bytes();
    for at in (0..bytes.len()).step_by(101) {
        let mut changed = bytes.to_vec();
        changed[at] ^= 4;
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        let before = ledger.export.lines().take(line).filter(|line| MutableEntry::of(line).is_some()).count() as u64;
        match check::export(changed.as_slice(), &BTreeSet::new()) {
            Err(check::Error::Bad(bad)) => {
                let known = bad.seq.expect("a number");
                assert!(known == 0 || known + 1 >= before, "byte {at}: {bad}, but {before} entries precede it");
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

#[test]
fn swapped_entries_are_detected() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    lines.swap(at, at + 1);
    ledger.check_refused(&lines, None, seq, "broken");
    // Swapped, with corrected sequence numbers.
    let (mut one, mut two) =
        (MutableEntry::of(&lines[at]).expect("one"), MutableEntry::of(&lines[at + 1]).expect("two"));
    std::mem::swap(&mut one.seq, &mut two.seq);
    (lines[at], lines[at + 1]) = (one.line(), two.line());
    ledger.check_refused(&lines, None, seq, "broken");
    // Swapped, with all later hashes recomputed.
    rehash(&mut lines, at);
    let end = head_of(&lines[chain(&lines, 1).1]).expect("a head").seq;
    ledger.check_refused(&lines, None, end, "rewritten");
}

#[test]
fn inserted_entry_is_detected() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    let mut forged = MutableEntry::of(&lines[at]).expect("an entry");
    forged.data = forged.data.replacen("{\"at\":", "{\"also\":true,\"at\":", 1);
    forged.chain_after(&MutableEntry::of(&lines[at - 1]).expect("an entry").hash);
    lines.insert(at, forged.line());
    ledger.check_refused(&lines, None, seq + 1, "broken");
    // Inserted, with all later entries of the chain renumbered and recomputed.
    let end = chain(&lines, 1).1;
    for line in &mut lines[at + 1..end] {
        let mut entry = MutableEntry::of(line).expect("an entry");
        entry.seq += 1;
        *line = entry.line();
    }
    rehash(&mut lines, at);
    let signed = head_of(&lines[end]).expect("a head").seq;
    ledger.check_refused(&lines, None, signed + 1, "rewritten");
}

#[test]
fn deleted_entry_is_detected() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    lines.remove(at);
    ledger.check_refused(&lines, None, seq, "broken");
    let end = chain(&lines, 1).1;
    for line in &mut lines[at..end] {
        let mut entry = MutableEntry::of(line).expect("an entry");
        entry.seq -= 1;
        *line = entry.line();
    }
    rehash(&mut lines, at);
    let signed = head_of(&lines[end]).expect("a head").seq;
    ledger.check_refused(&lines, None, signed, "truncated");
    // Removal of a whole chain.
    let mut lines = ledger.lines();
    let (first, head) = chain(&lines, 1);
    let missing = MutableEntry::of(&lines[first]).expect("a genesis").seq;
    lines.drain(first..=head);
    ledger.check_refused(&lines, None, missing, "broken");
    let mut lines = ledger.lines();
    lines.drain(..first);
    ledger.check_refused(&lines, None, 0, "broken");
}

#[test]
fn truncated_tail_is_detected() {
    let ledger = Ledger::shared();
    let whole = ledger.lines();
    let last = MutableEntry::of(&whole[whole.len() - 2]).expect("an entry").seq;
    // First without the final head, then with missing entries before the head.
    ledger.check_refused(&whole[..whole.len() - 1], None, last + 1, "truncated");
    ledger.check_refused(&whole[..whole.len() - 4], None, last - 2, "truncated");
    let mut lines = whole.clone();
    lines.drain(whole.len() - 3..whole.len() - 1);
    ledger.check_refused(&lines, None, last - 1, "truncated");
    // A cut at the end of a chain leaves no gap. Only a head outside reveals it.
    let (_, head) = chain(&whole, 1);
    let (code, said) = ledger.verdict(&(whole[..=head].join("\n") + "\n"), None, None);
    assert_eq!(code, 0, "{said}");
    ledger.check_refused(
        &whole[..=head],
        Some(&ledger.heads),
        head_of(&whole[head]).expect("a head").seq + 1,
        "truncated",
    );
    // The key of the host can sign a shorter end. A head outside still reveals the cut.
    let end = MutableEntry::of(&whole[whole.len() - 4]).expect("an entry");
    let shorter = SignedHead { seq: end.seq, hash: end.hash, ..head_of(&whole[whole.len() - 1]).expect("a head") };
    let mut lines = whole[..whole.len() - 3].to_vec();
    lines.push(serde_json::to_string(&ledger.sign(shorter)).expect("a head"));
    assert_eq!(ledger.verdict(&(lines.join("\n") + "\n"), None, None).0, 0, "the limit that the threat model names");
    ledger.check_refused(&lines, Some(&ledger.heads), end.seq + 1, "truncated");
}

/// Makes another valid ledger: changes the entries from line `from`, recomputes every hash, and signs the heads with `key`.
fn rewritten(lines: &mut [String], from: usize, key: &SigningKey) {
    for line in &mut lines[from..] {
        if let Some(mut entry) = MutableEntry::of(line) {
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
            let mut genesis = MutableEntry::of(&lines[begin]).expect("a genesis");
            let mut data: Value = serde_json::from_str(&genesis.data).expect("JSON");
            data["continues_from"]["hash"] = MutableEntry::of(&lines[begin - 2]).expect("an entry").hash.into();
            data["continues_from"]["archive"] = canonical::Digest::of(before.as_bytes()).to_string().into();
            data["ledger"] = ledger.clone().into();
            genesis.data = canonical::to_string(&data);
            lines[begin] = genesis.line();
        }
        rehash(lines, begin);
        if begin == 0 {
            ledger = MutableEntry::of(&lines[0]).expect("a genesis").hash;
        }
        let last = MutableEntry::of(&lines[end - 1]).expect("an entry");
        let head = SignedHead { hash: last.hash, ledger: ledger.clone(), ..head_of(&lines[end]).expect("a head") };
        lines[end] = serde_json::to_string(&sign(key, head)).expect("a head");
        (before, begin) = (begin, end + 1);
    }
}

#[test]
fn full_rewrite_is_detected() {
    let ledger = Ledger::shared();
    // Without a key, the signature of the head is missing.
    let mut lines = ledger.lines();
    let mut genesis = MutableEntry::of(&lines[0]).expect("a genesis");
    genesis.data = genesis.data.replacen("\"at\":1", "\"at\":2", 1);
    lines[0] = genesis.line();
    rehash(&mut lines, 0);
    ledger.check_refused(&lines, None, 0, "rewritten");
    // With a foreign key, the ledger is valid in itself. The known key or a head outside reveals the change.
    let mut lines = ledger.lines();
    rewritten(&mut lines, 0, &SigningKey::from_bytes(&[9; 32]));
    let text = lines.join("\n") + "\n";
    assert_eq!(ledger.verdict(&text, None, None).0, 0, "the limit that the threat model names");
    let key = head_of(ledger.export.lines().last().expect("a line")).expect("a head").key;
    let (code, said) = ledger.verdict(&text, None, Some(&key));
    assert!(code == 1 && said.starts_with("bad seq 0: ") && said.ends_with("(rewritten)\n"), "{said}");
    ledger.check_refused(&lines, Some(&ledger.heads), 0, "rewritten");
    // With the key of the host, only a head outside reveals the change.
    let mut lines = ledger.lines();
    rewritten(&mut lines, 0, &ledger.key);
    assert_eq!(ledger.verdict(&(lines.join("\n") + "\n"), None, None).0, 0, "the limit that the threat model names");
    ledger.check_refused(&lines, Some(&ledger.heads), 0, "rewritten");
    // If only later entries change, the verifier names the first head that does not match.
    let mut lines = ledger.lines();
    let (from, _) = middle(&lines);
    rewritten(&mut lines, from, &ledger.key);
    let since = MutableEntry::of(&lines[from]).expect("an entry").seq;
    let kept = head::all(&ledger.heads).expect("a directory");
    let first =
        kept.iter().filter_map(|kept| kept.head.as_ref()).map(|head| head.seq).filter(|seq| *seq >= since).min();
    ledger.check_refused(&lines, Some(&ledger.heads), first.expect("a head after it"), "rewritten");
}

#[test]
fn fork_is_detected() {
    let ledger = Ledger::shared();
    let heads = tempfile::tempdir().expect("a directory");
    let keep = |head: &SignedHead| head::keep(heads.path(), head).expect("kept");
    let mut lines = ledger.lines();
    let (first, end) = chain(&lines, 2);
    let original = head_of(&lines[end]).expect("a head");
    keep(&original);
    // The fork has the same beginning, another end and one more entry. The host signed both, as if two copies of a home ran.
    let from = first + 2;
    rewritten(&mut lines, from, &ledger.key);
    let mut more = MutableEntry::of(&lines[end - 1]).expect("an entry");
    more.seq += 1;
    more.chain_after(&MutableEntry::of(&lines[end - 1]).expect("an entry").hash);
    let longer = ledger.sign(SignedHead { seq: more.seq, hash: more.hash.clone(), ..original.clone() });
    lines[end] = more.line();
    lines.push(serde_json::to_string(&longer).expect("a head"));
    assert_eq!(ledger.verdict(&(lines.join("\n") + "\n"), None, None).0, 0, "the fork alone is valid");
    ledger.check_refused(&lines, Some(heads.path()), original.seq, "rewritten");
    keep(&longer);
    ledger.check_refused(&lines, Some(heads.path()), original.seq, "forked");
    // Two entries in one file follow the same entry.
    let mut lines = ledger.lines();
    let mut other = MutableEntry::of(&lines[end - 1]).expect("an entry");
    other.data = other.data.replacen("\"at\":1", "\"at\":2", 1);
    other.chain_after(&MutableEntry::of(&lines[end - 2]).expect("an entry").hash);
    lines.insert(end, other.line());
    ledger.check_refused(&lines, None, original.seq + 1, "broken");
    // Heads of another ledger in the same directory are ignored.
    let foreign = SignedHead { ledger: "ab".repeat(32), ..original };
    std::fs::remove_file(heads.path().join(head::file_name(&longer))).expect("removed");
    keep(&sign(&SigningKey::from_bytes(&[9; 32]), foreign));
    let (code, said) = ledger.verdict(&ledger.export, Some(heads.path()), None);
    assert!(code == 0 && said.contains("outside heads 1\n") && said.contains("1 heads of other ledgers"), "{said}");
}

#[test]
fn replayed_rotation_is_detected() {
    let ledger = Ledger::shared();
    let lines = ledger.lines();
    let ((first, head), (_, last)) = (chain(&lines, 0), chain(&lines, 1));
    let next = |at: usize| head_of(&lines[at]).expect("a head").seq + 1;
    let old = &lines[first..=head];
    // The old chain is repeated after itself, replaces the next chain, and replaces the live chain.
    ledger.check_refused(&[&lines[..=head], old, &lines[head + 1..]].concat(), None, next(head), "replayed");
    ledger.check_refused(&[&lines[..=head], old, &lines[last + 1..]].concat(), None, next(head), "replayed");
    ledger.check_refused(&[&lines[..=last], old].concat(), None, next(last), "replayed");
}

#[test]
fn gap_in_sequence_numbers_is_detected() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    let end = chain(&lines, 1).1;
    for line in &mut lines[at..end] {
        let mut entry = MutableEntry::of(line).expect("an entry");
        entry.seq += 1;
        *line = entry.line();
    }
    rehash(&mut lines, at);
    ledger.check_refused(&lines, None, seq, "broken");
}

#[test]
fn duplicate_entry_is_detected() {
    let ledger = Ledger::shared();
    let mut lines = ledger.lines();
    let (at, seq) = middle(&lines);
    lines.insert(at, lines[at].clone());
    ledger.check_refused(&lines, None, seq + 1, "broken");
}

#[test]
fn torn_last_line_is_detected() {
    let ledger = Ledger::shared();
    let lines = ledger.lines();
    let last = MutableEntry::of(&lines[lines.len() - 2]).expect("an entry").seq;
    let whole = ledger.export.len();
    let entry = ledger.export.rfind("{\"domain\"").expect("a head");
    for (cut, seq) in [(whole - 1, last + 1), (whole - 40, last + 1), (entry - 1, last), (entry - 30, last)] {
        let (code, said) = ledger.verdict(&ledger.export[..cut], None, None);
        assert!(code == 1 && said == format!("bad seq {seq}: the last line is torn (truncated)\n"), "{said}");
    }
}

#[test]
fn invalid_or_forged_head_is_reported() {
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
        let (code, said) = ledger.verdict(&ledger.export, Some(heads.path()), None);
        assert!(code == 1 && said.starts_with("bad: ") && said.trim_end().ends_with(why), "{said}");
    }
}

#[test]
fn independent_verifier_accepts_the_published_vectors() {
    let vectors = verifier_script().with_file_name("ledger-vectors.json");
    let output = Command::new("perl").arg(verifier_script()).arg("--vectors").arg(vectors).output().expect("perl runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.starts_with("ok ") && said.ends_with(" vectors\n"), "{said}");
}
