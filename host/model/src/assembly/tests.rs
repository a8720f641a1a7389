//! Outputs that are put together from pieces, and what a watcher sees meanwhile.

use super::*;

fn piece<'a>(tool: &'a str, arguments: &'a str) -> Piece<'a> {
    Piece { tool, arguments, ..Piece::default() }
}

#[test]
fn too_large_output_ends_with_the_first_excess_piece() {
    let draft = PartialAnswer::default();
    let mut assembly = Assembly::new(&draft);
    assembly.words(&"a".repeat(BODY_BYTES_MAX)).expect("exactly");
    assert_eq!(assembly.words("a"), Err(Fault::TooLarge));
    assert_eq!(draft.watch().borrow().text.len(), BODY_BYTES_MAX);
    let mut assembly = Assembly::new(&draft);
    let many = (0..=128)
        .try_for_each(|index| assembly.call(Piece { index: Some(index), tool: "a", ..Piece::default() }).map(drop));
    assert_eq!(many, Err(Fault::TooLarge));
}

#[test]
fn thoughts_in_tags_are_neither_words_nor_draft() {
    for (pieces, thought) in [
        (&["<thi", "nk>I gre", "et.</thi", "nk>\n", "\nHello", " there."][..], "I greet."),
        (&["I greet.\n</think>", "\n\nHello there."], "I greet."),
        (&["Hello there."], ""),
    ] {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        pieces.iter().for_each(|piece| assembly.words(piece).expect("small"));
        assembly.ends(End::Whole);
        let output = assembly.finish().expect("an output");
        assert_eq!((output.text.as_str(), output.reasoning.as_str()), ("Hello there.", thought));
        assert_eq!(draft.watch().borrow().text, "Hello there.");
    }
    let draft = PartialAnswer::default();
    let mut assembly = Assembly::new(&draft);
    assembly.words("<think>never closed").expect("small");
    assert_eq!(draft.watch().borrow().text, "");
    assembly.ends(End::Length);
    assert_eq!(assembly.finish(), Err(Fault::Truncated), "thoughts alone are no answer");
}

#[test]
fn an_end_that_cuts_an_output_short_is_kept() {
    let draft = PartialAnswer::default();
    for (first, fault) in [(End::Length, Fault::Truncated), (End::Withheld, Fault::Withheld)] {
        for then in [End::Whole, End::Length, End::Withheld] {
            for ends in [[first, then], [End::Whole, first]] {
                let mut assembly = Assembly::new(&draft);
                assembly.call(piece("write_file", "{}")).expect("small");
                ends.into_iter().for_each(|end| assembly.ends(end));
                assert_eq!(assembly.finish(), Err(fault), "{ends:?}");
            }
        }
    }
}

#[test]
fn answer_without_an_end_or_with_half_a_call_is_no_output() {
    let draft = PartialAnswer::default();
    let with = |end, words: &str, tool: &str| {
        let mut assembly = Assembly::new(&draft);
        assembly.words(words).expect("small");
        if !tool.is_empty() {
            assembly.call(piece(tool, "{")).expect("small");
        }
        assembly.end = end;
        assembly.finish()
    };
    assert_eq!(with(None, "hello", ""), Err(Fault::Cut));
    assert_eq!(with(None, "", ""), Err(Fault::Closed));
    assert_eq!(with(Some(End::Length), "", "write_file"), Err(Fault::Truncated));
    assert_eq!(with(Some(End::Length), " ", ""), Err(Fault::Truncated));
    assert_eq!(with(Some(End::Withheld), "", ""), Err(Fault::Withheld));
    assert_eq!(with(Some(End::Withheld), "hello", "write_file"), Err(Fault::Withheld));
    let cut = |end| with(Some(end), "hello", "").map(|output| (output.text, output.cut));
    assert_eq!(cut(End::Withheld), Ok(("hello".to_owned(), Some(Cut::Withheld))));
    assert_eq!(cut(End::Length), Ok(("hello".to_owned(), Some(Cut::Length))));
    let long = with(Some(End::Withheld), &"é".repeat(BODY_BYTES_MAX / 2), "").expect("words").text;
    assert!(long.len() + Cut::Withheld.mark().len() <= BODY_BYTES_MAX, "the mark fits");
    assert_eq!(with(Some(End::Whole), "", "").expect("empty"), Output::default());
}

#[test]
fn answer_out_of_time_keeps_its_words_and_no_half_call() {
    let draft = PartialAnswer::default();
    let with = |words: &str, tool: &str| {
        let mut assembly = Assembly::new(&draft);
        assembly.words(words).expect("small");
        if !tool.is_empty() {
            assembly.call(piece(tool, "{}")).expect("small");
        }
        assembly.unfinished()
    };
    let output = with("It was", "").expect("words");
    assert_eq!((output.text.as_str(), output.calls.len(), output.cut), ("It was", 0, Some(Cut::Time)));
    assert_eq!(with(" \n", ""), None);
    assert_eq!(with("I write.", "write_file"), None);
}

#[test]
fn texts_of_blocks_grow_for_themselves() {
    for (pieces, text) in [
        // A block that grows, behind one whose words are equal.
        (
            &[(0, "Hello there. "), (1, "Hello "), (1, "Hello there"), (1, "Hello there, again.")][..],
            "Hello there. Hello there, again.",
        ),
        (
            &[(0, "I have to think about it"), (0, "I have to think about it once."), (1, "Yes.")],
            "I have to think about it once.Yes.",
        ),
        (&[(0, "Hello "), (0, "there, reader."), (0, "Hello there, reader.")], "Hello there, reader."),
        (&[(0, "Hello there, reader. "), (1, "Hello there, reader. ")], "Hello there, reader. Hello there, reader. "),
        (&[(0, "<think>I gre"), (0, "<think>I greet.</think>Hel"), (0, "<think>I greet.</think>Hello.")], "Hello."),
    ] {
        let draft = PartialAnswer::default();
        let mut assembly = Assembly::new(&draft);
        for (block, piece) in pieces {
            assembly.piece_of_block(Some(*block), piece).expect("small");
        }
        assembly.ends(End::Whole);
        let output = assembly.finish().expect("an output");
        assert_eq!(output.text, text);
        assert_eq!(draft.watch().borrow().text, text, "the draft has the same words");
        assert!(output.reasoning.is_empty() || output.reasoning == "I greet.", "{}", output.reasoning);
    }
}

#[test]
fn draft_that_waits_for_a_thought_has_the_answer_alone() {
    let draft = PartialAnswer::default();
    let mut assembly = Assembly::new(&draft).waiting_for_thought(true);
    for (piece, shown) in [("I greet.\n", ""), ("</think>\n\n", ""), ("Hello ", "Hello "), ("there.", "Hello there.")] {
        assembly.words(piece).expect("small");
        assert_eq!(draft.watch().borrow().text, shown);
    }
    assembly.ends(End::Whole);
    let output = assembly.finish().expect("an output");
    assert_eq!((output.text.as_str(), output.reasoning.as_str()), ("Hello there.", "I greet."));
    assert!(output.begins_in_thought);
}
