//! Archives, layouts and links.

use super::*;
use std::io::Write;

/// Returns a ZIP archive of files, each with its mode; those with an even number of bytes are deflated.
fn zip(files: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let (mut out, mut central) = (Vec::new(), Vec::new());
    for (path, mode, bytes) in files {
        let mut sum = flate2::Crc::new();
        sum.update(bytes);
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).expect("deflated");
        let deflated = encoder.finish().expect("deflated");
        let (method, packed) = if bytes.len() % 2 == 0 { (8u16, deflated) } else { (0, bytes.to_vec()) };
        let at = out.len() as u32;
        let mut common = Vec::new();
        for number in [20, 0x800, method, 0, 0] {
            common.extend(number.to_le_bytes());
        }
        for number in [sum.sum(), packed.len() as u32, bytes.len() as u32] {
            common.extend(number.to_le_bytes());
        }
        common.extend((path.len() as u16).to_le_bytes());
        common.extend(0u16.to_le_bytes());
        out.extend([b"PK\x03\x04", common.as_slice(), path.as_bytes(), &packed].concat());
        central.extend([b"PK\x01\x02\x14\x03".as_slice(), &common, &[0; 6]].concat());
        central.extend((mode << 16).to_le_bytes());
        central.extend(at.to_le_bytes());
        central.extend(path.as_bytes());
    }
    let (from, length, count) = (out.len() as u32, central.len() as u32, files.len() as u16);
    out.extend(central);
    out.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count.to_le_bytes(), &count.to_le_bytes()].concat());
    out.extend([length.to_le_bytes().as_slice(), &from.to_le_bytes(), &[0, 0]].concat());
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("compressed");
    encoder.finish().expect("compressed")
}

#[test]
fn every_archive_and_layout_is_read() {
    let desk = Desk::new(&[]);
    let script = b"#!/bin/sh\n".as_slice();
    let zipped = zip(&[
        ("deck/SKILL.md", 0o100_644, PLAIN.as_bytes()),
        ("deck/scripts/run", 0o100_755, script),
        ("deck\\references\\a.md", 0, b"odd"),
        ("deck/LINK.md", 0o120_777, b"references/a.md"),
        ("deck/", 0o040_755, b""),
    ]);
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in [("./deck/SKILL.md", PLAIN.as_bytes()), ("./deck/scripts/run", script)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o755);
        builder.append_data(&mut header, path, bytes).expect("appended");
    }
    let tarred = builder.into_inner().expect("an archive");
    let twice = [gzip(&tarred[..600]), gzip(&tarred[600..])].concat();
    for (name, bytes) in
        [("a.zip", &zipped), ("a.skill", &zipped), ("a.tar", &tarred), ("a.tgz", &gzip(&tarred)), ("b.tar.gz", &twice)]
    {
        let file = desk.beside(name, bytes);
        let source = Source::open(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(source.skills(), ["deck/"], "{name}");
        let imported = source.import("deck/").unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((imported.name.as_ref(), imported.files["scripts/run"].may_run), ("notes", true), "{name}");
        if name == "a.zip" {
            assert_eq!(imported.files["references/LINK.md"].bytes, b"odd");
        }
    }
    let text = desk.beside("My Notes.md", b"# Notes\n\nSorts notes.\n");
    assert_eq!(Source::open(&text).and_then(|source| source.import("")).expect("a text").name.as_ref(), "my-notes");
    for (files, skills) in [
        (vec!["SKILL.md"], vec![""]),
        (vec!["skill.md"], vec![""]),
        (vec!["deck/SKILL.md", "README.md"], vec!["deck/"]),
        (vec!["skills/a/SKILL.md", "skills/b/SKILL.md"], vec!["skills/a/", "skills/b/"]),
        (vec![".claude/skills/a/SKILL.md", "x/y/z/SKILL.md"], vec![".claude/skills/a/", "x/y/z/"]),
        (vec!["SKILL.md", "examples/a/SKILL.md"], vec![""]),
        (vec!["SKILL.md", "skills/a/SKILL.md"], vec!["", "skills/a/"]),
        (vec!["a/SKILL.md", ".git/x/SKILL.md", "node_modules/x/SKILL.md"], vec!["a/"]),
    ] {
        let files: Vec<(&str, &str)> = files.into_iter().map(|path| (path, PLAIN)).collect();
        let desk = Desk::new(&files);
        let source = Source::open(&desk.root()).expect("a source");
        assert_eq!(source.skills(), skills);
        skills.iter().for_each(|skill| drop(source.import(skill).expect("taken over")));
    }
}

#[test]
fn archives_that_leave_their_place_or_are_damaged_are_refused() {
    let desk = Desk::new(&[]);
    let good = zip(&[("SKILL.md", 0o100_644, PLAIN.as_bytes())]);
    let at = good.windows(5).position(|five| five == b"notes").unwrap_or(40);
    let mut encrypted = good.clone();
    let central = good.windows(4).position(|four| four == b"PK\x01\x02").expect("a directory");
    encrypted[central + 8] |= 1;
    let mut changed = good.clone();
    changed[at] ^= 0x55;
    let cut = good[..good.len() - 30].to_vec();
    for (name, bytes) in [
        ("up.zip", zip(&[("../SKILL.md", 0, b"x")])),
        ("windows.zip", zip(&[("..\\SKILL.md", 0, b"x")])),
        ("root.zip", zip(&[("/SKILL.md", 0, b"x")])),
        ("device.zip", zip(&[("SKILL.md", 0o020_644, b"x")])),
        ("twice.zip", zip(&[("SKILL.md", 0, b"x"), ("SKILL.md", 0, b"y")])),
        ("none.zip", zip(&[("README.md", 0, b"x")])),
        ("encrypted.zip", encrypted),
        ("changed.zip", changed),
        ("cut.zip", cut),
        ("cut.tgz", gzip(&[0; 2000])[..10].to_vec()),
        ("not.tar", vec![b'x'; 600]),
    ] {
        let file = desk.beside(name, &bytes);
        assert!(Source::open(&file).is_err(), "{name}");
    }
}

#[test]
fn links_are_followed_within_the_source_alone() {
    let desk = Desk::new(&[("skills/a/SKILL.md", PLAIN), ("shared/rules.md", "rules"), ("shared/deep/x.md", "x")]);
    desk.write("../secret", b"secret");
    let root = desk.root().join("skills/a");
    for (link, target) in [
        ("rules.md", "../../shared/rules.md".to_owned()),
        ("again.md", "rules.md".to_owned()),
        ("shared", "../../shared".to_owned()),
        ("loop", "loop".to_owned()),
        ("up", "..".to_owned()),
        ("out", "../../../secret".to_owned()),
        ("absolute", desk.0.path().join("secret").display().to_string()),
    ] {
        std::os::unix::fs::symlink(target, root.join(link)).expect("linked");
    }
    // Links to the instructions of another skill, to nowhere, and to a text.
    for (link, target) in [("b", "../a/SKILL.md"), ("c", "../gone/SKILL.md"), ("d", "../../shared/rules.md")] {
        fs::create_dir(desk.root().join("skills").join(link)).expect("made");
        std::os::unix::fs::symlink(target, desk.root().join("skills").join(link).join("SKILL.md")).expect("linked");
    }
    let source = Source::open(&desk.root()).expect("a source");
    assert_eq!(source.skills(), ["skills/a/", "skills/d/"]);
    assert_eq!(source.import("skills/d/").expect("taken over").name.as_ref(), "d");
    let imported = source.import("skills/a/").expect("taken over");
    let paths: Vec<&str> = imported.files.keys().map(String::as_str).collect();
    let expected = [
        "SKILL.md",
        "references/again.md",
        "references/rules.md",
        "references/shared/deep/x.md",
        "references/shared/rules.md",
        "skill.toml",
    ];
    assert_eq!(paths, expected);
    for link in ["loop", "up", "out", "absolute"] {
        assert!(has_remark(&imported, &format!("{link}: left out: it is a link to a place outside")), "{link}");
    }
}
