//! Tests of the parser of events, with each stream cut at every place.

use super::*;

const EVENT_BYTES_MAX: usize = 1 << 20;

fn read(pieces: &[&[u8]]) -> Vec<Event> {
    let mut events = Events::new(EVENT_BYTES_MAX);
    pieces.iter().for_each(|piece| events.push(piece).expect("small"));
    std::iter::from_fn(|| events.pop()).collect()
}

fn event(name: &str, data: &str) -> Event {
    Event { name: name.to_owned(), data: data.into() }
}

/// Returns the events of a whole stream, whether it broke off, and the number of skipped lines; the same for every cut.
fn whole(stream: &str) -> (Vec<(String, String)>, bool, u64) {
    let read = |pieces: &[&[u8]]| {
        let mut events = Events::new(EVENT_BYTES_MAX);
        pieces.iter().for_each(|piece| events.push(piece).expect("small"));
        let is_cut = events.finish();
        let text = |event: Event| (event.name, String::from_utf8(event.data).expect("text"));
        (std::iter::from_fn(|| events.pop()).map(text).collect(), is_cut, events.skipped_lines())
    };
    let stream = stream.as_bytes();
    let at_once = read(&[stream]);
    for at in 0..stream.len() {
        assert_eq!(read(&[&stream[..at], &stream[at..]]), at_once, "cut at {at}");
    }
    at_once
}

#[test]
fn events_are_the_same_however_the_stream_is_cut() {
    let stream =
        "\u{feff}data: a\r\n\r\n: ping\nevent: x\ndata:b\ndata: \u{e9}\n\ndata\r\rid: 7\n\ndata: cut".as_bytes();
    let whole = [event("", "a"), event("x", "b\n\u{e9}"), event("", "")];
    assert_eq!(read(&[stream]), whole);
    assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), whole);
    for at in 0..stream.len() {
        assert_eq!(read(&[&stream[..at], &stream[at..]]), whole, "cut at {at}");
    }
}

#[test]
fn event_without_an_end_is_too_large() {
    for start in [&b""[..], b"data: ", b"data: a\n", b": ", b"{", b"data: {\"a\":\n"] {
        let mut events = Events::new(EVENT_BYTES_MAX);
        events.push(start).expect("small");
        events.push(&vec![b'x'; EVENT_BYTES_MAX - start.len()]).expect("within the limit");
        // The limit does not count the ends of lines.
        assert_eq!(events.push(b"xxx"), Err(TooLarge));
    }
    let mut events = Events::new(8).with_texts(64);
    events.push(format!("{{\"a\":\"{}\"}}\n", "x".repeat(40)).as_bytes()).expect("a whole answer");
    assert_eq!(events.pop().map(|event| event.data.len()), Some(48));
    assert_eq!(events.push(b"data: 456"), Err(TooLarge));
}

#[test]
fn odd_streams_give_the_same_events() {
    let two = ["{\"a\":1}", "{\"b\":\"}\"}"];
    for (stream, skipped) in [
        ("data: {\"a\":1}\n\ndata: {\"b\":\"}\"}\n\n", 0),
        // The last event without a blank line, and without an end of its line.
        ("data: {\"a\":1}\n\ndata: {\"b\":\"}\"}\n", 0),
        ("data: {\"a\":1}\n\ndata: {\"b\":\"}\"}", 0),
        // One end of a line between the events, of each kind.
        ("data: {\"a\":1}\ndata: {\"b\":\"}\"}\n", 0),
        ("data: {\"a\":1}\rdata: {\"b\":\"}\"}\r", 0),
        ("data: {\"a\":1}\r\ndata: {\"b\":\"}\"}\r\n", 0),
        ("id: 1\ndata: {\"a\":1}\nid: 2\ndata: {\"b\":\"}\"}\nretry: 3\n", 0),
        // JSON in several lines of data.
        ("data: {\"a\":\ndata: 1}\n\ndata: {\"b\":\"}\"}\n\n", 0),
        // JSON texts without events: one a line, one behind the other, over several lines.
        ("{\"a\":1}\n{\"b\":\"}\"}\n", 0),
        ("{\"a\":1}{\"b\":\"}\"}", 0),
        (" \r\n\n{\"a\":1}\n\n\n{\"b\":\"}\"}", 0),
        ("\u{feff}{\"a\":1} {\"b\":\"}\"}", 0),
        // Foreign lines.
        ("ping\n\ndata: {\"a\":1}\npong\n\ndata: {\"b\":\"}\"}\n\n", 2),
        (": hello\n\n:\n\ndata: {\"a\":1}\n\n{\"b\":\"}\"}", 0),
        ("DATA:{\"a\":1}\n\n  data : {\"b\":\"}\"}\n\n", 0),
        ("data: data: {\"a\":1}\n\ndata:data:{\"b\":\"}\"}\n\n", 0),
        // A text that never ends, before the stream.
        ("{oh\ndata: {\"a\":1}\n\ndata: {\"b\":\"}\"}\n\n", 1),
    ] {
        let (events, is_cut, lines) = whole(stream);
        let squeezed: Vec<String> = events.into_iter().map(|(_, data)| data.replace('\n', "")).collect();
        assert_eq!((&squeezed[..], is_cut, lines), (&two.map(str::to_owned)[..], false, skipped), "{stream:?}");
    }
    let pretty = "{\n  \"a\": [\n    1\n  ]\n}\n";
    assert_eq!(whole(pretty).0.len(), 1);
}

#[test]
fn names_and_text_data_are_kept() {
    let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
    let stream = "event: a\ndata: {}\nevent: b\ndata: {}\n\ndata: ping\ndata: {}\ndata: [DONE]\nerror: {\"x\":1}\n";
    let expected = [
        pair("a", "{}"),
        pair("b", "{}"),
        pair("", "ping"),
        pair("", "{}"),
        pair("", "[DONE]"),
        pair("error", "{\"x\":1}"),
    ];
    assert_eq!(whole(stream).0, expected);
}

#[test]
fn stream_that_breaks_off_says_so() {
    for stream in ["data: {\"a\":", "{\"a\":1", "data: {}\n\n{\"a\":[", "data: {\"a\":\"}"] {
        assert!(whole(stream).1, "{stream}");
    }
    let mut events = Events::new(64);
    events.push(b"<html>\n<title>Bad Gateway</title>\n").expect("small");
    assert!(!events.finish());
    assert_eq!((events.skipped(), events.skipped_lines()), (&b"<html>\n<title>Bad Gateway</title>\n"[..], 2));
}
