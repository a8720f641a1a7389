//! The forms in which servers send calls, and what becomes of them.

use super::*;

type Sent = (Option<u64>, &'static str, &'static str, &'static str);

fn finish(pieces: &[Sent], begins: bool) -> Result<Vec<(String, String)>, Fault> {
    let mut calls = CallPieces::default();
    for &(index, id, tool, arguments) in pieces {
        calls.add(Piece { index, id, tool, arguments, begins })?;
    }
    let calls = calls.finish()?;
    Ok(calls.into_iter().map(|Finished { call, .. }| (call.tool, call.arguments)).collect())
}

const A: &str = r#"{"path":"a.txt"}"#;
const B: &str = r#"{"path":"b.txt"}"#;

/// The forms of two calls of `w`, for a.txt and b.txt, in pieces.
const TWO_FILES: [(&str, &[Sent]); 23] = [
    ("as specified", &[(Some(0), "c0", "w", ""), (Some(1), "c1", "w", ""), (Some(1), "", "", B), (Some(0), "", "", A)]),
    ("one index, no id", &[(Some(0), "", "w", A), (Some(0), "", "w", B)]),
    ("one index, two ids", &[(Some(0), "c0", "w", A), (Some(0), "c1", "w", B)]),
    ("one index, one id", &[(Some(0), "c", "w", A), (Some(0), "c", "w", B)]),
    ("no index, no id", &[(None, "", "w", A), (None, "", "w", B)]),
    ("no index, one id", &[(None, "c", "w", A), (None, "c", "w", B)]),
    ("no index, two ids", &[(None, "c0", "w", A), (None, "c1", "w", B)]),
    ("two indexes, one id", &[(Some(0), "c", "w", A), (Some(1), "c", "w", B)]),
    (
        "one index, ids, in turns",
        &[
            (Some(0), "c0", "w", r#"{"path":"#),
            (Some(0), "c1", "w", r#"{"path":"#),
            (Some(0), "c0", "", r#""a.txt"}"#),
            (Some(0), "c1", "", r#""b.txt"}"#),
        ],
    ),
    (
        "indexes, no ids, in turns",
        &[
            (Some(0), "", "w", r#"{"path":"#),
            (Some(1), "", "w", r#"{"path":"#),
            (Some(1), "", "", r#""b.txt"}"#),
            (Some(0), "", "", r#""a.txt"}"#),
        ],
    ),
    (
        "one index, no ids, one after the other",
        &[
            (Some(0), "", "w", r#"{"path":"#),
            (Some(0), "", "", r#""a.txt"}"#),
            (Some(0), "", "w", r#"{"path":"#),
            (Some(0), "", "", r#""b.txt"}"#),
        ],
    ),
    (
        "name in each piece",
        &[
            (None, "", "w", ""),
            (None, "", "w", r#"{"path":"#),
            (None, "", "w", r#""a.txt"}"#),
            (None, "", "w", r#"{"path":"#),
            (None, "", "w", r#""b.txt"}"#),
        ],
    ),
    (
        "a new id in each piece",
        &[
            (Some(0), "r1", "w", r#"{"path":"#),
            (Some(0), "r2", "", r#""a.txt"}"#),
            (Some(1), "r3", "w", r#"{"path":"#),
            (Some(1), "r4", "", r#""b.txt"}"#),
        ],
    ),
    (
        "arguments that grow",
        &[
            (Some(0), "c0", "w", r#"{"pa"#),
            (Some(0), "c0", "w", r#"{"path":"a."#),
            (Some(0), "c0", "w", A),
            (Some(1), "c1", "w", "{"),
            (Some(1), "", "", B),
        ],
    ),
    (
        "whole arguments again at the end",
        &[
            (Some(0), "c0", "w", r#"{"path":"#),
            (Some(0), "", "", r#""a.txt"}"#),
            (Some(0), "c0", "w", r#"{ "path": "a.txt" }"#),
            (Some(1), "c1", "w", B),
            (Some(1), "", "", B),
        ],
    ),
    (
        "each piece twice",
        &[
            (Some(0), "c0", "w", r#"{"path":"#),
            (Some(0), "c0", "w", r#"{"path":"#),
            (Some(0), "", "", r#""a.txt"}"#),
            (Some(0), "", "", r#""a.txt"}"#),
            (Some(1), "c1", "w", B),
            (Some(1), "c1", "w", B),
        ],
    ),
    ("all calls twice", &[(None, "", "w", A), (None, "", "w", B), (None, "", "w", A), (None, "", "w", B)]),
    (
        "an id that comes late",
        &[
            (Some(0), "", "w", r#"{"path":"#),
            (Some(0), "c0", "", r#""a.txt"}"#),
            (Some(0), "", "w", r#"{"path":"#),
            (Some(0), "c1", "", r#""b.txt"}"#),
        ],
    ),
    (
        "one index, empty ids, arguments behind the names",
        &[
            (Some(0), "", "w", ""),
            (Some(0), "", "", r#"{"path":"#),
            (Some(0), "", "", r#""a.txt"}"#),
            (Some(0), "", "w", ""),
            (Some(0), "", "", r#"{"path":"#),
            (Some(0), "", "", r#""b.txt"}"#),
        ],
    ),
    (
        "no marks, arguments behind the names",
        &[
            (None, "", "w", ""),
            (None, "", "", r#"{"path":"#),
            (None, "", "", r#""a.txt"}"#),
            (None, "", "w", ""),
            (None, "", "", B),
        ],
    ),
    ("a repeated piece, once without its id", &[(Some(0), "c", "w", A), (Some(0), "", "w", B), (Some(0), "c", "w", B)]),
    ("a repeated call, once without its index", &[(Some(0), "", "w", A), (None, "", "w", B), (Some(0), "", "w", B)]),
    ("empty pieces", &[(None, "", "", ""), (Some(0), "c0", "w", A), (Some(0), "", "", ""), (Some(1), "c1", "w", B)]),
];

#[test]
fn two_files_are_two_calls_however_a_server_numbers_them() {
    let two = [("w".to_owned(), A.to_owned()), ("w".to_owned(), B.to_owned())];
    for (form, pieces) in TWO_FILES {
        assert_eq!(finish(pieces, false).as_deref(), Ok(&two[..]), "{form}");
    }
    for (form, pieces) in TWO_FILES.into_iter().filter(|(_, pieces)| pieces.len() == 2) {
        assert_eq!(finish(pieces, true).as_deref(), Ok(&two[..]), "{form}, in a whole answer");
    }
}

#[test]
fn pieces_of_one_call_are_joined_and_repetitions_left_out() {
    for (form, pieces, arguments) in [
        ("no arguments", &[(None, "", "w", "")][..], "{}"),
        ("null", &[(None, "", "w", "null")], "{}"),
        ("an empty object in front", &[(Some(0), "c", "w", "{}"), (Some(0), "", "", A)], A),
        (
            "equal texts in a value",
            &[
                (Some(0), "c", "w", r#"{"a":""#),
                (Some(0), "", "", "ha"),
                (Some(0), "", "", "ha"),
                (Some(0), "", "", "\"}"),
            ],
            r#"{"a":"haha"}"#,
        ),
        (
            "an object in a value",
            &[(Some(0), "c", "w", r#"{"a":"#), (Some(0), "", "", r#"{"a":1}"#), (Some(0), "", "", "}")],
            r#"{"a":{"a":1}}"#,
        ),
        ("the same call twice", &[(None, "", "w", A), (None, "", "w", A)], A),
        ("the same id twice", &[(Some(0), "c", "w", A), (Some(0), "c", "w", A)], A),
        ("the same chunk three times", &[(Some(0), "c", "w", A), (Some(0), "c", "w", A), (Some(0), "c", "w", A)], A),
        (
            "the last piece three times",
            &[
                (Some(0), "c", "w", r#"{"path":"#),
                (Some(0), "c", "", r#""a.txt"}"#),
                (Some(0), "c", "", r#""a.txt"}"#),
                (Some(0), "c", "", r#""a.txt"}"#),
            ],
            A,
        ),
        ("announced again behind its arguments", &[(Some(0), "", "w", A), (Some(0), "", "w", "")], A),
        ("a further end", &[(Some(0), "c", "w", A), (Some(0), "", "", "}")], A),
        ("a mark of a template", &[(Some(0), "c", "w", A), (Some(0), "", "", "<|eot_id|>")], A),
        (
            "a mark in the last piece",
            &[(Some(0), "c", "w", "{\"path\":"), (Some(0), "", "", "\"a.txt\"}}<|eom_id|>")],
            A,
        ),
        ("JSON in JSON", &[(Some(0), "c", "w", "\"{\\\"path\\\":"), (Some(0), "", "", "\\\"a.txt\\\"}\"")], A),
        (
            "a fence",
            &[(Some(0), "c", "w", "```json\n{\"path\":"), (Some(0), "", "", "\"a.txt\"}"), (Some(0), "", "", "\n```")],
            A,
        ),
        ("names with marks", &[(Some(0), "c", "functions.w", A), (Some(0), "c", " w<|channel|>commentary", A)], A),
        ("announced twice", &[(Some(0), "c", "w", ""), (Some(0), "c", "w", ""), (Some(0), "", "", A)], A),
        ("the model's own broken text", &[(Some(0), "c", "w", "{\"a\":"), (Some(0), "", "", "'x'}")], "{\"a\":'x'}"),
    ] {
        assert_eq!(finish(pieces, false), Ok(vec![("w".to_owned(), arguments.to_owned())]), "{form}");
    }
}

#[test]
fn pieces_with_two_readings_are_refused() {
    for (form, pieces) in [
        (
            "two open calls with one index",
            &[(Some(0), "c0", "w", ""), (Some(0), "c1", "r", ""), (Some(0), "", "", A)][..],
        ),
        ("two open calls without any mark", &[(None, "", "w", ""), (None, "", "r", A), (None, "", "", B)]),
        ("arguments behind whole ones", &[(Some(0), "c0", "w", A), (Some(0), "", "", B)]),
        ("a name in pieces or two calls", &[(Some(0), "c0", "w", ""), (Some(0), "c0", "r", A)]),
        ("a call without an end before another", &[(None, "", "w", r#"{"path":"#), (None, "", "r", B)]),
        (
            "parts in turns without any mark",
            &[
                (None, "", "w", r#"{"a":""#),
                (None, "", "r", r#"{"b":""#),
                (None, "", "", "1\"}"),
                (None, "", "", "2\"}"),
            ],
        ),
        ("an empty object in front, or a call", &[(Some(0), "c", "w", "{}"), (Some(0), "c", "w", A)]),
        ("empty objects in front of two", &[(Some(0), "", "w", "{}"), (Some(0), "", "r", "{}"), (Some(0), "", "", A)]),
        ("one id or two for one tool", &[(Some(0), "r1", "w", ""), (Some(0), "r2", "w", A)]),
    ] {
        assert_eq!(finish(pieces, false), Err(Fault::UnclearCalls), "{form}");
    }
    for pieces in [&[(Some(0), "c0", "", A)][..], &[(None, "c0", "w", A), (None, "c1", "", B)]] {
        assert_eq!(finish(pieces, false), Err(Fault::Malformed), "a call without a tool");
    }
}

#[test]
fn a_closed_call_gets_no_later_piece() {
    let mut calls = CallPieces::default();
    let start = |tool| Piece { index: Some(0), tool, begins: true, ..Piece::default() };
    let part = |arguments| Piece { index: Some(0), arguments, ..Piece::default() };
    calls.add(start("w")).expect("a call");
    calls.close(Some(0));
    calls.add(start("r")).expect("another call");
    calls.add(part(A)).expect("its arguments");
    calls.close(Some(0));
    let calls: Vec<_> = calls
        .finish()
        .expect("two calls")
        .into_iter()
        .map(|Finished { call, .. }| (call.tool, call.arguments))
        .collect();
    assert_eq!(calls, [("w".to_owned(), "{}".to_owned()), ("r".to_owned(), A.to_owned())]);
}

#[test]
fn a_name_in_pieces_is_joined_only_to_an_offered_one() {
    let sent = |tools: &[&str], names: &[&str]| {
        let mut calls = CallPieces::default();
        calls.offer(tools.iter().copied());
        for tool in names {
            calls.add(Piece { index: Some(0), tool, ..Piece::default() })?;
        }
        calls.add(Piece { index: Some(0), arguments: A, ..Piece::default() })?;
        let calls = calls.finish()?;
        Ok::<_, Fault>(calls.into_iter().map(|Finished { call, .. }| (call.tool, call.arguments)).collect::<Vec<_>>())
    };
    for names in [&["write_", "file"][..], &["wri", "te_", "file"]] {
        let joined = vec![("write_file".to_owned(), A.to_owned())];
        assert_eq!(sent(&["write_file", "read_file"], names), Ok(joined), "{names:?}");
    }
    for (tools, names) in [
        (&["write_file", "write_"][..], ["write_", "file"]),
        (&["write_file", "file"], ["write_", "file"]),
        (&["read_file"], ["write_", "file"]),
    ] {
        assert_eq!(sent(tools, &names), Err(Fault::UnclearCalls), "{tools:?}");
    }
}

#[test]
fn an_id_is_known_only_if_no_piece_has_another() {
    let ids = |pieces: &[(Option<u64>, &str, &str)]| {
        let mut calls = CallPieces::default();
        for &(index, id, arguments) in pieces {
            calls.add(Piece { index, id, tool: "w", arguments, begins: false }).expect("a piece");
        }
        calls.finish().expect("calls").into_iter().map(|call| call.id).collect::<Vec<_>>()
    };
    let known = |id: &str| Some(id.to_owned());
    assert_eq!(ids(&[(Some(0), "a", A), (Some(1), "b", B)]), [known("a"), known("b")]);
    assert_eq!(ids(&[(Some(0), "r1", "{\"path\":"), (Some(0), "r2", "\"a.txt\"}")]), [None]);
    assert_eq!(ids(&[(None, "", A)]), [None]);
    let long = "s".repeat(ID_BYTES_MAX);
    assert_eq!(ids(&[(None, &long, A)]), [known(&long)]);
    let mut calls = CallPieces::default();
    assert_eq!(calls.add(Piece { id: &(long + "s"), ..Piece::default() }), Err(Fault::TooLarge));
}

/// Random numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Returns the pieces of a text.
    fn pieces(&mut self, text: &str) -> Vec<String> {
        let mut pieces = vec![String::new()];
        for letter in text.chars() {
            if self.below(5) == 0 {
                pieces.push(String::new());
            }
            pieces.last_mut().expect("a piece").push(letter);
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }
}

/// A piece with texts of its own.
#[derive(Debug, Clone)]
struct Owned {
    index: Option<u64>,
    id: String,
    tool: &'static str,
    arguments: String,
}

/// Returns the pieces of random calls, as a random server numbers and repeats them.
fn random_stream(dice: &mut Dice, wanted: &[(String, String)]) -> Vec<Owned> {
    let (numbering, naming, repeats) = (dice.below(6), dice.below(3), dice.below(4) == 0);
    let mut streams = Vec::new();
    for (n, (tool, arguments)) in (0..).zip(wanted) {
        let tool = if tool == "w" { "w" } else { "r" };
        let (index, id) = match numbering {
            0 => (Some(n), format!("c{n}")),
            1 => (Some(n), String::new()),
            2 => (Some(0), format!("c{n}")),
            3 => (Some(0), String::new()),
            4 => (None, format!("c{n}")),
            _ => (None, String::new()),
        };
        let mut pieces: Vec<Owned> = Vec::new();
        if dice.below(2) == 0 {
            pieces.push(Owned { index, id: id.clone(), tool, arguments: String::new() });
        }
        for arguments in dice.pieces(arguments) {
            let is_first = pieces.is_empty();
            let tool = if is_first || naming == 1 { tool } else { "" };
            let id = if is_first || naming != 2 { id.clone() } else { String::new() };
            pieces.push(Owned { index, id, tool, arguments });
        }
        let again = pieces.last().filter(|_| repeats).cloned();
        pieces.extend(again);
        streams.push(pieces);
    }
    let has_marks = numbering < 2;
    let mut sent = Vec::new();
    while !streams.is_empty() {
        let at = if has_marks { dice.below(streams.len() as u64) as usize } else { 0 };
        sent.push(streams[at].remove(0));
        streams.retain(|pieces| !pieces.is_empty());
    }
    sent
}

#[test]
fn no_call_of_a_random_stream_gets_a_part_of_another() {
    let (mut read, seeds) = (0, 4000);
    for seed in 0..seeds {
        let mut dice = Dice(seed);
        let count = dice.below(4) + 1;
        let wanted: Vec<(String, String)> = (0..count)
            .map(|n| {
                let tool = if dice.below(3) == 0 { "r" } else { "w" };
                let depth = if dice.below(2) == 0 { r#"{"b":[1,{}]}"# } else { "\"haha\"" };
                (tool.to_owned(), format!(r#"{{"path":"{n}.txt","content":{depth}}}"#))
            })
            .collect();
        let mut calls = CallPieces::default();
        let sent = random_stream(&mut dice, &wanted);
        let added = sent.iter().try_for_each(|Owned { index, id, tool, arguments }| {
            calls.add(Piece { index: *index, id, tool, arguments, begins: false }).map(drop)
        });
        let Ok(finished) = added.and_then(|()| calls.finish()) else { continue };
        let got: Vec<_> = finished.into_iter().map(|Finished { call, .. }| (call.tool, call.arguments)).collect();
        assert!(got.iter().all(|call| wanted.contains(call)), "{seed}: {got:?} of {sent:?}");
        assert_eq!(got.len(), wanted.len(), "{seed}: {got:?} of {sent:?}");
        read += 1;
    }
    assert!(read * 10 > seeds * 8, "{read} of {seeds} are read");
}
