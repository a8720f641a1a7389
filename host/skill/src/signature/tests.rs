use super::*;
use proptest::prelude::*;

const KEY: &str = include_str!("../../tests/data/minisign.pub");
/// By `minisign -S` of Debian, 0.11.
const PREHASHED: &str = include_str!("../../tests/data/prehashed.minisig");
/// By `minisign -S -l` of Debian, 0.11.
const LEGACY: &str = include_str!("../../tests/data/legacy.minisig");

fn message() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/message.txt")
}

#[test]
fn both_forms_of_minisign_are_verified() {
    let key = PublicKey::parse(KEY).expect("a key");
    assert_eq!(key.id, "2736D8DE5B918A39");
    assert_eq!(PublicKey::parse(&key.text).expect("its line alone"), key);
    for signature in [PREHASHED, LEGACY] {
        assert_eq!(key_id(signature).expect("a signature"), key.id);
        let comment = verify(&message(), signature, &key).expect("by this key");
        assert_eq!(comment, "skill notes 1.2.0");
        let name = |name: &str| name.parse::<Name>().expect("a name");
        assert!(check_comment(&comment, &name("notes"), &Version::new(1, 2, 0)).is_ok());
        for (other, version) in [("note", Version::new(1, 2, 0)), ("notes", Version::new(1, 2, 1))] {
            assert!(matches!(check_comment(&comment, &name(other), &version), Err(Error::Comment { .. })));
        }
    }
}

#[test]
fn signature_over_other_bytes_or_comment_does_not_match() {
    let key = PublicKey::parse(KEY).expect("a key");
    let directory = tempfile::tempdir().expect("a directory");
    let other = directory.path().join("other");
    std::fs::write(&other, "a skill of a test.\n").expect("written");
    for signature in [PREHASHED, LEGACY] {
        assert!(matches!(verify(&other, signature, &key), Err(Error::Signature(_))));
        let comment = signature.replace("notes 1.2.0", "notes 1.3.0");
        assert!(matches!(verify(&message(), &comment, &key), Err(Error::Signature(_))));
        let mut stranger = key.clone();
        stranger.id = "0000000000000000".to_owned();
        assert!(matches!(verify(&message(), signature, &stranger), Err(Error::Signature(_))));
    }
    let swapped: Vec<&str> = PREHASHED.lines().collect();
    let legacy: Vec<&str> = LEGACY.lines().collect();
    let mixed = format!("{}\n{}\n{}\n{}\n", swapped[0], swapped[1], swapped[2], legacy[3]);
    assert!(matches!(verify(&message(), &mixed, &key), Err(Error::Signature(_))));
}

#[test]
fn text_that_is_no_signature_or_key_is_refused() {
    let long = format!("{PREHASHED}{}", "x".repeat(TEXT_BYTES_MAX));
    let more = format!("{PREHASHED}more\n");
    let less: String = PREHASHED.lines().take(3).collect::<Vec<_>>().join("\n");
    for text in ["", "untrusted comment: x", KEY, &long, &more, &less] {
        assert!(matches!(key_id(text), Err(Error::Unsigned(_))), "{text:?}");
    }
    for text in
        ["", "RWQ", PREHASHED, "untrusted comment: x\n", &KEY.replace("RWQ", "RUQ"), &KEY.replace("RWQ5", "AAA5")]
    {
        assert!(matches!(PublicKey::parse(text), Err(Error::Unsigned(_))), "{text:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}", at in 0usize..300, byte in any::<char>()) {
        let key = PublicKey::parse(KEY).expect("a key");
        let _ = (key_id(&text), PublicKey::parse(&text));
        let mut damaged: Vec<char> = PREHASHED.chars().collect();
        let at = at % damaged.len();
        damaged[at] = byte;
        let _ = verify(&message(), &damaged.into_iter().collect::<String>(), &key);
    }
}
