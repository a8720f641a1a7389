use super::*;
use crate::archive::BLOCK_BYTES;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;

const SKILL: &str = "---\nname: notes\ndescription: Sorts notes.\n---\nRead the notes.\n";

/// One file of an archive in a test.
struct Given<'a> {
    path: &'a str,
    mode: u32,
    bytes: &'a [u8],
}

fn given<'a>(path: &'a str, bytes: &'a [u8]) -> Given<'a> {
    Given { path, mode: 0o644, bytes }
}

fn header(path: &str, mode: u32, bytes: u64, change: impl Fn(&mut tar::Header)) -> [u8; BLOCK_BYTES] {
    let mut header = tar::Header::new_ustar();
    // Written directly: the setter refuses `..`.
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_mode(mode);
    header.set_size(bytes);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_entry_type(tar::EntryType::Regular);
    change(&mut header);
    header.set_cksum();
    *header.as_bytes()
}

fn add(archive: &mut Vec<u8>, file: &Given<'_>, change: impl Fn(&mut tar::Header)) {
    archive.extend(header(file.path, file.mode, file.bytes.len() as u64, change));
    archive.extend(file.bytes);
    archive.resize(archive.len().next_multiple_of(BLOCK_BYTES), 0);
}

fn manifest(files: &[Given<'_>]) -> String {
    let files = files.iter().map(|file| (file.path.to_owned(), Digest::of(file.bytes))).collect();
    let (name, version) = ("notes".parse().expect("a name"), semver::Version::new(1, 0, 0));
    Manifest { name, version, grants: Default::default(), needs: Default::default(), files }.to_toml()
}

/// Returns an archive with `SKILL.md` and these files, which its manifest names.
fn archive(files: &[Given<'_>]) -> Vec<u8> {
    let named: Vec<Given<'_>> =
        files.iter().map(|file| given(file.path, file.bytes)).chain([given(INSTRUCTIONS, SKILL.as_bytes())]).collect();
    with_manifest(&manifest(&named), files)
}

fn with_manifest(manifest: &str, files: &[Given<'_>]) -> Vec<u8> {
    let mut archive = body(manifest, files);
    archive.extend([0; 2 * BLOCK_BYTES]);
    archive
}

/// Returns an archive without its end.
fn body(manifest: &str, files: &[Given<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    add(&mut archive, &given(MANIFEST, manifest.as_bytes()), |_| ());
    add(&mut archive, &given(INSTRUCTIONS, SKILL.as_bytes()), |_| ());
    files.iter().for_each(|file| add(&mut archive, file, |_| ()));
    archive
}

fn refusal(archive: &[u8]) -> String {
    Package::read_from(archive).expect_err("refused").to_string()
}

#[test]
fn archive_is_read_and_unpacked_with_its_modes() {
    let bytes = archive(&[
        Given { path: "references/a/b.md", mode: 0o644, bytes: b"text" },
        Given { path: "scripts/run", mode: 0o755, bytes: &[7; 1500] },
    ]);
    let package = Package::read_from(bytes.as_slice()).expect("a package");
    assert_eq!((package.bytes, package.digest), (bytes.len() as u64, Digest::of(&bytes)));
    assert_eq!((package.description.as_str(), package.instructions.as_str()), ("Sorts notes.", "Read the notes.\n"));
    let directory = tempfile::tempdir().expect("a directory");
    let (file, into) = (directory.path().join("notes.skill"), directory.path().join("out"));
    std::fs::write(&file, &bytes).expect("written");
    assert_eq!(Package::unpack(&file, &into).expect("unpacked"), package);
    assert!(matches!(Package::unpack(&file, &into), Err(Error::Io { .. })), "the directory is there");
    for (path, mode) in
        [("skill.toml", 0o444), ("references/a/b.md", 0o444), ("scripts/run", 0o555), ("scripts", 0o755)]
    {
        let found = std::fs::metadata(into.join(path)).expect(path).permissions().mode();
        assert_eq!(found & 0o7777, mode, "{path}");
    }
    package.manifest.verify_tree(&into).expect("the same bytes");
}

#[test]
fn tree_with_other_files_or_bytes_is_refused() {
    let bytes = archive(&[given("references/a.md", b"text")]);
    let package = Package::read_from(bytes.as_slice()).expect("a package");
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 6] = [
        ("skill.toml does not name it", |root| std::fs::write(root.join("references/b.md"), "b").expect("written")),
        ("another digest", |root| {
            std::fs::remove_file(root.join("references/a.md")).expect("removed");
            std::fs::write(root.join("references/a.md"), "texT").expect("written");
        }),
        ("is missing", |root| std::fs::remove_file(root.join("references/a.md")).expect("removed")),
        ("a link", |root| std::os::unix::fs::symlink("/etc/passwd", root.join("references/l")).expect("linked")),
        ("another manifest", |root| {
            let text = std::fs::read_to_string(root.join(MANIFEST)).expect("read").replace("1.0.0", "1.0.1");
            std::fs::remove_file(root.join(MANIFEST)).expect("removed");
            std::fs::write(root.join(MANIFEST), text).expect("written");
        }),
        ("not in scripts", |root| std::fs::create_dir(root.join("bin")).expect("made")),
    ];
    for (what, damage) in damages {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, into) = (directory.path().join("a"), directory.path().join("out"));
        std::fs::write(&file, &bytes).expect("written");
        Package::unpack(&file, &into).expect("unpacked");
        damage(&into);
        let error = package.manifest.verify_tree(&into).expect_err(what).to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn entry_that_no_package_has_is_refused_by_name() {
    use tar::EntryType;
    type Change = fn(&mut tar::Header);
    let changes: [(&str, Change); 17] = [
        ("a hard link", |header| header.set_entry_type(EntryType::Link)),
        ("a link", |header| header.set_entry_type(EntryType::Symlink)),
        ("a device", |header| header.set_entry_type(EntryType::Char)),
        ("a device", |header| header.set_entry_type(EntryType::Block)),
        ("a directory", |header| header.set_entry_type(EntryType::Directory)),
        ("a pipe", |header| header.set_entry_type(EntryType::Fifo)),
        ("a sparse file", |header| header.set_entry_type(EntryType::GNUSparse)),
        ("GNU tar", |header| header.set_entry_type(EntryType::GNULongName)),
        ("pax", |header| header.set_entry_type(EntryType::XHeader)),
        ("pax", |header| header.set_entry_type(EntryType::XGlobalHeader)),
        ("an unknown type", |header| header.set_entry_type(EntryType::new(b'Z'))),
        ("form ustar", |header| header.as_mut_bytes()[257..265].copy_from_slice(b"ustar  \0")),
        ("set-uid", |header| header.set_mode(0o4755)),
        ("neither 0644 nor 0755", |header| header.set_mode(0o666)),
        ("more than a path", |header| header.set_uid(1000)),
        ("more than a path", |header| header.set_mtime(1)),
        ("more than a path", |header| header.as_mut_bytes()[157] = b'x'),
    ];
    for (what, change) in changes {
        let file = given("scripts/a", b"");
        let mut bytes = body(&manifest(&[given("scripts/a", b""), given(INSTRUCTIONS, SKILL.as_bytes())]), &[]);
        add(&mut bytes, &file, change);
        bytes.extend([0; 2 * BLOCK_BYTES]);
        assert!(refusal(&bytes).contains(what), "{what}: {}", refusal(&bytes));
    }
    for (path, what) in [
        ("../x", "leaves the package"),
        ("scripts/../../x", "leaves the package"),
        ("/etc/passwd", "absolute"),
        ("scripts/\u{202e}hs", "reorders"),
        ("scripts/a\nb", "controls"),
        ("bin/a", "not in scripts"),
    ] {
        let mut bytes = body(&manifest(&[given(INSTRUCTIONS, SKILL.as_bytes())]), &[given(path, b"")]);
        bytes.extend([0; 2 * BLOCK_BYTES]);
        assert!(refusal(&bytes).contains(what), "{what}: {}", refusal(&bytes));
    }
}

#[test]
fn archive_with_other_files_than_named_is_refused() {
    let (a, b) = (given("scripts/a", b"one"), given("scripts/b", b"two"));
    let skill = given(INSTRUCTIONS, SKILL.as_bytes());
    let both = manifest(&[given("scripts/a", b"one"), given("scripts/b", b"two"), skill]);
    let only = manifest(&[given("scripts/a", b"one"), given(INSTRUCTIONS, SKILL.as_bytes())]);
    for (what, bytes) in [
        ("it is missing", with_manifest(&both, &[given("scripts/a", b"one")])),
        ("does not name it", with_manifest(&only, &[given("scripts/a", b"one"), given("scripts/b", b"two")])),
        ("another digest", with_manifest(&only, &[given("scripts/a", b"onE")])),
        ("there twice", with_manifest(&only, &[given("scripts/a", b"one"), given("scripts/a", b"one")])),
        ("not in order", with_manifest(&both, &[b, a])),
        ("by case", with_manifest(&only, &[given("scripts/a", b"one"), given("scripts/A", b"one")])),
        ("another digest", with_manifest(&manifest(&[given(INSTRUCTIONS, b"other")]), &[])),
        ("does not name it", with_manifest(&manifest(&[]), &[])),
        ("name is notes", with_manifest(&only.replace("name = \"notes\"", "name = \"other\""), &[])),
    ] {
        assert!(refusal(&bytes).contains(what), "{what}: {}", refusal(&bytes));
    }
}

#[test]
fn archive_that_is_cut_or_has_a_tail_is_refused() {
    let bytes = archive(&[given("scripts/a", b"one")]);
    for end in [0, 1, 511, 512, 700, bytes.len() - 1024, bytes.len() - 512, bytes.len() - 1] {
        assert!(refusal(&bytes[..end]).contains("ends too early"), "{end}");
    }
    let tail = [bytes.as_slice(), &[0; 512]].concat();
    assert!(refusal(&tail).contains("after the end"));
    let mut padding = bytes.clone();
    let at = padding.len() - 3 * BLOCK_BYTES + 100;
    padding[at] = 1;
    assert!(refusal(&padding).contains("between the end of the file"));
    let mut end = bytes.clone();
    *end.last_mut().expect("bytes") = 1;
    assert!(refusal(&end).contains("the end of the archive is damaged"));
    for file in [MANIFEST, INSTRUCTIONS] {
        let mut bytes = Vec::new();
        add(&mut bytes, &given(file, b"x"), |_| ());
        assert!(Package::read_from(bytes.as_slice()).is_err());
    }
}

#[test]
fn too_large_archive_is_refused_while_it_is_read() {
    struct Counted<'a>(Box<dyn Read + 'a>, &'a std::cell::Cell<u64>);
    impl Read for Counted<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let got = self.0.read(into)?;
            self.1.set(self.1.get() + got as u64);
            Ok(got)
        }
    }
    let read = std::cell::Cell::new(0);
    let text = manifest(&[given("assets/a", b""), given(INSTRUCTIONS, SKILL.as_bytes())]);
    let mut bytes = body(&text, &[]);
    bytes.extend(header("assets/a", 0o644, crate::PACKAGE_BYTES_MAX, |_| ()));
    let endless = Counted(Box::new(bytes.as_slice().chain(std::io::repeat(7))), &read);
    assert!(matches!(Package::read_from(endless), Err(Error::TooLarge(_))));
    assert!(read.get() < 1024 * 1024, "a size that is too large is refused before its bytes");
    for (file, bytes) in [(MANIFEST, MANIFEST_BYTES_MAX + 1), (INSTRUCTIONS, INSTRUCTIONS_BYTES_MAX + 1)] {
        let mut archive = Vec::new();
        if file == INSTRUCTIONS {
            add(&mut archive, &given(MANIFEST, text.as_bytes()), |_| ());
        }
        archive.extend(header(file, 0o644, bytes, |_| ()));
        let endless = archive.as_slice().chain(std::io::repeat(b'x'));
        assert!(matches!(Package::read_from(endless), Err(Error::TooLarge(_))));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(noise in prop::collection::vec(any::<u8>(), 0..2000), at in 0usize..4000, byte in any::<u8>()) {
        prop_assert!(Package::read_from(noise.as_slice()).is_err());
        let mut bytes = archive(&[given("scripts/a", b"one")]);
        let at = at % bytes.len();
        let is_other = bytes[at] != byte;
        bytes[at] = byte;
        let outcome = Package::read_from(bytes.as_slice());
        // No digest in the archive covers skill.toml: the signature does.
        prop_assert!(outcome.is_err() || !is_other || (BLOCK_BYTES..2 * BLOCK_BYTES).contains(&at));
    }
}
