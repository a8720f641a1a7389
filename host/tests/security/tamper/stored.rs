//! Detection of changes in the record and in the archives of a home.
//!
//! Each test has its own ledger, because it changes the files. See `ops::rotation`.

use super::{Ledger, MutableEntry, chain, head_of};
use crate::support::record;
use ironclaw_ledger::head;
use ironclaw_operator::SignedHead;
use serde_json::Value;
use std::path::Path;

/// The sequence number and the class of damage that the verifier reports.
type Finding = (u64, &'static str);

#[test]
fn tampering_with_the_record_is_detected() {
    let ledger = Ledger::make();
    let home = ledger.host.home.clone();
    let state = home.join("state.db");
    let intact = std::fs::read(&state).expect("read");
    let live = ledger
        .lines()
        .iter()
        .filter_map(|line| MutableEntry::of(line))
        .skip_while(|e| e.seq < first_of_live(&home))
        .collect::<Vec<_>>();
    let (first, last) = (live[0].seq, live[live.len() - 1].seq);
    let seq = (first + last) / 2;
    let empty = tempfile::tempdir().expect("a directory");
    let set = |entries: &[MutableEntry]| {
        let mut sql = "DELETE FROM ledger;".to_owned();
        for MutableEntry { seq, kind, data, hash } in entries {
            let data = data.replace('\'', "''");
            sql += &format!(
                "INSERT INTO ledger (seq, type, data, hash, at) VALUES ({seq}, '{kind}', '{data}', '{hash}', 0);"
            );
        }
        sql
    };
    let at = (seq - first) as usize;
    let renumbered = |mut entries: Vec<MutableEntry>, from: usize| {
        let mut prev = String::new();
        for (number, entry) in entries.iter_mut().enumerate() {
            entry.seq = first + number as u64;
            if number >= from {
                entry.chain_after(&prev);
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
    let without: Vec<MutableEntry> = live.iter().filter(|entry| entry.seq != seq).cloned().collect();
    let twice: Vec<MutableEntry> =
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
    let ended = |entries: &[MutableEntry]| entries[entries.len() - 1].seq + 1;
    // With one entry fewer, the last head may have no entry.
    let one_less = match head_after(seq) {
        head if head == last => (last, "truncated"),
        head => (head, "rewritten"),
    };
    // Name, SQL of the change, finding with heads outside, finding without heads.
    let cases: Vec<(&str, String, Finding, Option<Finding>)> = vec![
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
        ("inserted and recomputed", set(&renumbered(twice, at)), (head_after(seq + 1), "rewritten"), None),
        ("deleted", format!("DELETE FROM ledger WHERE seq = {seq}"), (seq, "broken"), Some((seq, "broken"))),
        ("deleted and recomputed", set(&renumbered(without.clone(), at)), one_less, None),
        ("truncated", format!("DELETE FROM ledger WHERE seq > {seq}"), (seq + 1, "truncated"), None),
        ("rewritten", set(&changed(at)), (head_after(seq), "rewritten"), None),
        ("rewritten from the last genesis", set(&changed(0)), (head_after(first), "rewritten"), None),
        (
            "gap",
            format!("UPDATE ledger SET seq = seq + 1000 WHERE seq > {seq}"),
            (seq + 1, "broken"),
            Some((seq + 1, "broken")),
        ),
        (
            "replaced by the previous chain",
            {
                let lines = ledger.lines();
                let (begin, end) = chain(&lines, 1);
                let old: Vec<MutableEntry> =
                    lines[begin..end].iter().filter_map(|line| MutableEntry::of(line)).collect();
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
        let verify = |more: &[&str]| ledger.host.ctl(&[&["--json", "audit", "verify"], more].concat());
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
    // The database refuses a duplicate sequence number, and the cipher refuses a torn file.
    {
        let db = record::open(&home);
        let copy = format!("PRAGMA query_only = OFF; INSERT INTO ledger SELECT * FROM ledger WHERE seq = {seq}");
        assert!(db.execute_batch(&copy).is_err());
    }
    for torn in [intact.len() / 2 + 100, intact.len() / 2, 100] {
        std::fs::write(&state, &intact[..torn]).expect("written");
        assert_ne!(ledger.host.ctl(&["audit", "verify"]).code, 0, "torn at {torn}");
    }
    // A flipped bit in the file: the cipher refuses the page, or the page belongs to another table and the ledger is unchanged.
    let entries = |export: &str| {
        export.lines().filter(|line| MutableEntry::of(line).is_some()).map(str::to_owned).collect::<Vec<_>>()
    };
    for at in (0..intact.len()).step_by(intact.len() / 12) {
        let mut flipped = intact.clone();
        flipped[at] ^= 1;
        std::fs::write(&state, &flipped).expect("written");
        let export = ledger.host.ctl(&["audit", "export"]);
        assert!(export.code == 1 || entries(&export.stdout) == entries(&ledger.export), "byte {at}");
    }
    std::fs::write(&state, &intact).expect("written");
    ledger.host.ctl(&["audit", "verify"]).ok();
}

fn first_of_live(home: &Path) -> u64 {
    record::count(&record::open(home), "SELECT min(seq) FROM ledger") as u64
}

#[test]
fn tampering_with_the_archives_is_detected() {
    let ledger = Ledger::make();
    let home = &ledger.host.home;
    let second = chain(&ledger.lines(), 1).0 as u64 - 1;
    let [one, two] = [0, second].map(|first| home.join(format!("ledger/chain-{first:012}.ndjson")));
    let third = first_of_live(home);
    let text = [&one, &two].map(|path| std::fs::read_to_string(path).expect("read"));
    let verdict = || {
        let said = ledger.host.ctl(&["--json", "audit", "verify"]);
        let shown = said.json();
        (said.code, shown["class"].as_str().unwrap_or_default().to_owned(), shown["seq"].as_u64().unwrap_or(u64::MAX))
    };
    let bad = |class: &str, seq: u64| (1, class.to_owned(), seq);
    std::fs::remove_file(&two).expect("removed");
    assert_eq!(verdict(), bad("missing", second));
    std::fs::write(&two, &text[0]).expect("written");
    assert_eq!(verdict(), bad("replayed", second), "the second archive replaced by the first");
    std::fs::write(&two, format!("{}\n", text[1])).expect("written");
    assert_eq!(verdict(), bad("broken", third), "a line after the head");
    let cut = text[1].trim_end().rfind('\n').expect("lines") + 1;
    std::fs::write(&two, &text[1][..cut]).expect("written");
    assert_eq!(verdict(), bad("truncated", third), "without its head");
    // The host's key signs the archive again. The next chain contains the hash of the original file.
    let mut lines: Vec<String> = text[1].lines().map(str::to_owned).collect();
    let last = lines.len() - 1;
    let later = SignedHead { time: "2031-01-01T00:00:00.000Z".to_owned(), ..head_of(&lines[last]).expect("a head") };
    lines[last] = serde_json::to_string(&ledger.sign(later)).expect("a head");
    std::fs::write(&two, lines.join("\n") + "\n").expect("written");
    assert_eq!(verdict(), bad("broken", third));
    std::fs::write(&two, &text[1]).expect("written");
    // An additional archive, as if the record were from before a rotation.
    std::fs::write(home.join(format!("ledger/chain-{:012}.ndjson", third + 500)), &text[1]).expect("written");
    let (code, class, _) = verdict();
    assert_eq!((code, class.as_str()), (1, "truncated"));
}
