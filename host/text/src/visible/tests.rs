//! Strings and their shown forms: marks, codes, and what can be restored.

use super::*;
use proptest::prelude::*;

/// Restores a string from its shown form. Notes follow a space and never hold `U+` alone.
fn restore(shown: &str) -> String {
    let mut out = String::new();
    let mut rest = shown;
    while let Some(at) = rest.find(OPEN) {
        let end = rest.find(CLOSE).expect("a mark ends");
        let mark = &rest[at + OPEN.len_utf8()..end];
        if mark.contains("reads as") || mark.starts_with("the ") || mark.starts_with("and ") {
            // Notes come last, each after a space that the string cannot end with.
            return out + rest[..at].strip_suffix(' ').expect("a note follows a space");
        }
        out.push_str(&rest[..at]);
        match mark.strip_prefix("U+") {
            Some(code) => {
                out.push(char::from_u32(u32::from_str_radix(code, 16).expect("hex")).expect("a character"));
            }
            None => {
                let count = mark.split(' ').next().expect("a count").parse().expect("a number");
                out.push_str(&" ".repeat(count));
            }
        }
        rest = &rest[end + CLOSE.len_utf8()..];
    }
    out + rest
}

#[test]
fn full_stop_of_another_script_is_marked_in_a_name() {
    for (dot, code) in [('。', "U+3002"), ('．', "U+FF0E"), ('｡', "U+FF61")] {
        let shown = name(&format!("https://example.com{dot}evil.example/"));
        let expected = format!("\"https://example.com⟦{code}⟧evil.example/\" ⟦{code} reads as \".\"⟧");
        assert_eq!(shown, expected);
    }
    assert_eq!(line("はい。").text, "はい。", "in prose it is a full stop");
}

#[test]
fn hidden_characters_are_codes_and_all_others_stay() {
    let plain = "Zwei Wörter\n\t    eingerückt: \"Привет\" ⟦x⟧";
    assert!(matches!(without_hidden(plain), Cow::Borrowed(text) if text == plain));
    let coded = "a⟦U+200B⟧b⟦U+202E⟧c⟦U+E0041⟧⟦U+001B⟧[2J";
    assert_eq!(without_hidden("a\u{200b}b\u{202e}c\u{e0041}\u{1b}[2J"), coded);
    assert_eq!(without_hidden(coded), coded);
}

fn restore_name(shown: &str) -> String {
    let end = shown.rfind('"').expect("quotes");
    // A note may also hold quotes; the end of the name comes before the first note.
    let end = shown.find("\" ⟦").unwrap_or(end);
    restore(&shown[1..end])
}

#[test]
fn control_hidden_and_reordering_characters_are_codes() {
    for (text, shown) in [
        ("\u{1b}[2J", "\"⟦U+001B⟧[2J\""),
        ("a\tb\r\nc", "\"a⟦U+0009⟧b⟦U+000D⟧⟦U+000A⟧c\""),
        ("\u{85}\u{9b}\u{7f}", "\"⟦U+0085⟧⟦U+009B⟧⟦U+007F⟧\""),
        ("a\u{202e}b\u{2066}", "\"a⟦U+202E⟧b⟦U+2066⟧\""),
        ("a\u{200b}\u{200d}\u{feff}b", "\"a⟦U+200B⟧⟦U+200D⟧⟦U+FEFF⟧b\""),
        ("\u{e0041}\u{fe0f}\u{e0100}", "\"⟦U+E0041⟧⟦U+FE0F⟧⟦U+E0100⟧\""),
        ("\u{3164}\u{2800}\u{a0}\u{3000}", "\"⟦U+3164⟧⟦U+2800⟧⟦U+00A0⟧⟦U+3000⟧\""),
        ("\u{e000}\u{378}\u{10ffff}", "\"⟦U+E000⟧⟦U+0378⟧⟦U+10FFFF⟧\""),
        ("\u{2028}\u{2029}", "\"⟦U+2028⟧⟦U+2029⟧\""),
        ("⟦U+0041⟧", "\"⟦U+27E6⟧U+0041⟦U+27E7⟧\""),
        ("a\" would get \"b", "\"a⟦U+0022⟧ would get ⟦U+0022⟧b\""),
        (" a  b ", "\"⟦1 space⟧a  b⟦1 space⟧\""),
        ("a          b", "\"a⟦10 spaces⟧b\""),
        ("", "\"\""),
    ] {
        assert_eq!(name(text), shown);
    }
}

#[test]
fn look_alike_letters_are_codes_with_an_explanation() {
    assert_eq!(name("p\u{430}ypal"), "\"p⟦U+0430⟧ypal\" ⟦U+0430 reads as \"a\"⟧");
    assert_eq!(name("\u{430}\u{440}"), "\"⟦U+0430⟧⟦U+0440⟧\" ⟦U+0430 reads as \"a\"⟧ ⟦U+0440 reads as \"p\"⟧");
    assert_eq!(name("\u{ff41}"), "\"⟦U+FF41⟧\" ⟦U+FF41 reads as \"a\"⟧");
    assert_eq!(name("heIper"), "\"heIper\" ⟦the I is a capital i⟧");
    assert_eq!(name("paypa1"), "\"paypa1\" ⟦the 1 is a digit⟧");
    let commit = "0a1".repeat(13) + "f";
    assert_eq!(name(&format!("{commit} Ada")), format!("\"{commit} Ada\""), "a digest is read as a whole");
    assert!(name(&format!("{commit}0")).contains("is a digit"));
    assert_eq!(name("/srv\u{2215}data"), "\"/srv⟦U+2215⟧data\" ⟦U+2215 reads as \"/\"⟧");
    assert_eq!(name("\u{212a}elvin"), "\"⟦U+212A⟧elvin\" ⟦U+212A reads as \"K\"⟧");
}

#[test]
fn look_alikes_are_marked_where_one_is_taken_for_another() {
    let id = "per_01j9zq4w0v2m6n8p0r2t4v6x8z";
    for text in [
        "If the file is there, It's read.",
        "(In-memory) \"Items\" of the list",
        "2026-11-28T07:04:58.792Z",
        "from 2026-11-28T10:00Z to 2026-11-28t10:01:00+01:00",
        id,
        &format!("loopback:{id}"),
        &format!("{id} and {id}"),
        "E7620F1842B4E810",
        "key e7620f1842b4e810",
        "123e4567-e89b-12d3-a456-426614174000",
        "at most 10s, or 100MiB on the 1st",
        "10.1.0.1",
        "paypal",
    ] {
        assert_eq!(name(&text.replace('"', "'")), format!("\"{}\"", text.replace('"', "'")), "it is not marked");
    }
    for (text, mark) in [
        ("paypa1", "the 1 is a digit"),
        ("g00gle.com", "the 0 is a digit"),
        ("https://examp1e.com/a", "the 1 is a digit"),
        ("ask paypa1 for it", "the 1 is a digit"),
        ("desk:T0123ABC", "the 0 is a digit"),
        ("DE10O100", "the 0 is a digit"),
        ("1ogin", "the 1 is a digit"),
        ("1s.example", "the 1 is a digit"),
        ("see 1s.example", "the 1 is a digit"),
        ("Iocalhost", "the I is a capital i"),
        ("https://Iocal.example/", "the I is a capital i"),
        ("see Iocal.example now", "the I is a capital i"),
        ("mail to Ian@home.example", "the I is a capital i"),
        ("ask heIper for it", "the I is a capital i"),
        ("the paypaI account", "the I is a capital i"),
        ("loopback:per_01j9zq4w0v2m6n8p0r2t4v6x8", "the 0 is a digit"),
        ("2026-11-28T07:04:58.792Zo1", "the 1 is a digit"),
        ("E7620F1842B4E81O0", "the 0 is a digit"),
        ("p\u{430}ypal", "U+0430 reads as \"a\""),
        ("If p\u{430}ypal asks", "U+0430 reads as \"a\""),
    ] {
        let shown = name(text);
        assert!(shown.contains(&format!("{OPEN}{mark}{CLOSE}")), "{text} {shown}");
    }
}

#[test]
fn canonically_equal_texts_are_shown_differently() {
    assert_eq!(name("é"), "\"é\"");
    assert_eq!(name("e\u{301}"), "\"e⟦U+0301⟧\"");
    assert_ne!(name("\u{212b}"), name("Å"));
    assert_eq!(name("\u{958}"), "\"⟦U+0958⟧\"");
    assert_eq!(name("\u{1100}\u{1161}"), "\"\u{1100}⟦U+1161⟧\"");
}

#[test]
fn stacked_combining_marks_are_bounded() {
    let tower = format!("a{}", "\u{301}\u{330}".repeat(200));
    assert!(!name(&tower).chars().any(is_combining));
    let own = format!("\u{915}{}", "\u{93e}".repeat(50));
    assert_eq!(name(&own).chars().filter(|character| is_combining(*character)).count(), COMBINING_MAX);
    assert!(!name("\u{93e}x").chars().any(is_combining), "none sits on the quote");
}

#[test]
fn letters_of_all_scripts_are_shown_unchanged() {
    for text in
        ["müller", "Привет", "你好，世界。", "日本語", "한국어", "नमस्ते", "ภาษาไทย", "Ελλάδα", "„so“ – naja…", "👍"]
    {
        assert_eq!(line(text), Line { text: text.to_owned(), is_right_to_left: false });
    }
}

#[test]
fn right_to_left_text_is_shown_only_if_nothing_moves() {
    assert_eq!(line("שלום, עולם"), Line { text: "שלום, עולם".to_owned(), is_right_to_left: true });
    for text in ["שלום abc", "שלום 12 (3)", "a/ש/b", "שלום | "] {
        let shown = line(text);
        assert!(!shown.is_right_to_left && !shown.text.chars().any(reads_right_to_left), "{shown:?}");
    }
    assert!(!name("שלום").chars().any(reads_right_to_left));
}

fn anything() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        '⟦', '⟧', '"', ' ', '\n', '\u{1b}', '\u{202e}', '\u{430}', 'a', 'I', '1', 'U', '+', '\u{301}', '\u{93e}', 'ש',
        '|', '\u{915}', '4', 's',
    ]);
    prop::collection::vec(prop_oneof![odd, any::<char>()], 0..24).prop_map(|all| all.into_iter().collect())
}

proptest! {
    #[test]
    fn every_string_can_be_read_back(text in anything()) {
        prop_assert_eq!(restore_name(&name(&text)), text.clone());
        prop_assert_eq!(restore(&line(&text).text), text);
    }

    #[test]
    fn shown_text_has_no_control_or_hidden_character(text in anything()) {
        for character in name(&text).chars().chain(line(&text).text.chars()) {
            let seen = matches!(character, ' '..='~' | OPEN | CLOSE) || fits(&VISIBLE, character);
            prop_assert!(seen && !confusable::is_unseen(character), "{:?}", character);
        }
    }
}
