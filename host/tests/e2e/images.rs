//! Tests of images that a person sends: the blocks in a request, the words in their place, and the bytes that a model gets.
//!
//! A model server on loopback records the requests. See `files` for the workspace and `prompts` for the text of a prompt.

use crate::e2e::files::shared_directory;
use crate::e2e::streaming;
use crate::ops::stops::text;
use crate::support::client::Raw;
use crate::support::hooks::{add_shop, receipt};
use crate::support::host_fixture::TestHost;
use crate::support::model_server::{Act, Api, Seen, Server};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ironclaw_model::image::{IMAGE_TOKENS, IMAGES_MAX};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Returns a content that is a PNG by its first bytes.
fn png(name: &str) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n", name.as_bytes()].concat()
}

/// Returns the images of a request: media type and base64.
fn images(seen: &Seen) -> Vec<(String, String)> {
    let messages = seen.body["messages"].as_array().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    let image = |block: &Value| match seen.api {
        Api::Chat => {
            let url = block["image_url"]["url"].as_str()?.strip_prefix("data:")?;
            let (kind, data) = url.split_once(";base64,")?;
            Some((kind.to_owned(), data.to_owned()))
        }
        Api::Messages => {
            let source = &block["source"];
            assert!(block["type"] != "image" || source["type"] == "base64", "{block}");
            Some((source["media_type"].as_str()?.to_owned(), source["data"].as_str()?.to_owned()))
        }
    };
    blocks.filter_map(image).collect()
}

fn shown(bytes: &[u8]) -> (String, String) {
    ("image/png".to_owned(), STANDARD.encode(bytes))
}

fn last(server: &Server) -> Seen {
    server.seen().pop().expect("a request")
}

/// Sends a message with a file of this name and content.
fn send(host: &TestHost, directory: &Path, name: &str, bytes: &[u8]) -> Value {
    let path = directory.join(name);
    fs::write(&path, bytes).expect("written");
    host.ctl(&["--json", "chat", "a", "look", "--file", &path.display().to_string()]).ok().json()
}

#[test]
fn image_reaches_a_model_that_takes_images_unchanged() {
    let own = shared_directory();
    for kind in ["openai", "anthropic"] {
        let server = Server::start(|_| Act::Say("A bird.".to_owned()));
        let host = streaming::new_host("", &server, kind, &["--images"]);
        let model = host.ctl(&["--json", "model", "list"]).ok().json();
        assert_eq!((&model[0]["name"], &model[0]["images"]), (&json!("m"), &json!(true)), "{model}");
        let bird = png("bird");
        send(&host, own.path(), "bird.png", &bird);
        let first = last(&server);
        assert_eq!(images(&first), [shown(&bird)], "{kind}");
        let words = first.body.to_string();
        assert!(
            words.contains("This image is in the workspace as inbox/bird.png")
                && words.contains("bird.png\\\" follows")
        );

        host.say("a", "and now?");
        let second = last(&server);
        assert_eq!(images(&second), [shown(&bird)], "{kind}: later prompts repeat it");
        let content = |seen: &Seen| {
            let at = usize::from(kind == "openai");
            let mut blocks = seen.body["messages"][at]["content"].as_array().expect("blocks").clone();
            blocks.iter_mut().for_each(|block| drop(block.as_object_mut().expect("a block").remove("cache_control")));
            blocks
        };
        assert_eq!(content(&first), content(&second), "{kind}: the beginning is the same");

        // The agent may change its files at any moment. Its file is another image, so no model gets it in the name of the person.
        fs::write(host.session_directory().join("workspace/inbox/bird.png"), png("cat")).expect("written");
        host.say("a", "and then?");
        let third = last(&server);
        assert!(images(&third).is_empty(), "{kind}");
        assert!(third.body.to_string().contains("its file was changed or removed"), "{kind}");
    }
}

#[test]
fn model_without_images_reads_that_the_image_is_a_file() {
    let own = shared_directory();
    let server = Server::start(|_| Act::Say("I see no images.".to_owned()));
    let host = streaming::new_host("", &server, "openai", &[]);
    send(&host, own.path(), "bird.png", &png("bird"));
    let seen = last(&server);
    let words = seen.conversation().pop().expect("a message").1;
    assert!(words.contains("the image \"inbox/bird.png\" is a file in /workspace"), "{words}");
    assert!(images(&seen).is_empty() && !seen.body.to_string().contains("base64"));

    // A file that only has the name of an image is one for the workspace.
    send(&host, own.path(), "text.png", b"\x89 no image");
    let words = last(&server).conversation().pop().expect("a message").1;
    assert!(words.contains("text.png") && !words.contains("the image \"inbox/text.png\""), "{words}");
}

#[test]
fn images_are_bounded_and_counted_in_the_ceilings() {
    let own = shared_directory();
    let server = Server::start(|_| Act::Say("Noted.".to_owned()));
    let host = streaming::new_host("", &server, "openai", &["--images"]);
    host.say("a", "hello");
    let booked = {
        host.ctl(&["agent", "set", "a", "--tokens-per-day", "1"]).ok();
        assert_eq!(host.chat("a", "without an image")["notice"], true);
        host.entries("budget.refused").pop().expect("a refusal")["data"]["needed"].as_u64().expect("tokens")
    };
    let asked = server.seen().len();
    assert_eq!(send(&host, own.path(), "0.png", &png("0"))["notice"], true);
    let needed = host.entries("budget.refused").pop().expect("a refusal")["data"]["needed"].as_u64().expect("tokens");
    assert!(needed >= booked + IMAGE_TOKENS, "{booked} and then {needed}");
    assert_eq!(server.seen().len(), asked, "no model is asked over a ceiling");

    host.ctl(&["agent", "set", "a", "--tokens-per-day", "none"]).ok();
    for number in 1..=IMAGES_MAX {
        send(&host, own.path(), &format!("{number}.png"), &png(&number.to_string()));
    }
    let newest: Vec<_> = (1..=IMAGES_MAX).map(|number| shown(&png(&number.to_string()))).collect();
    let seen = last(&server);
    assert_eq!(images(&seen), newest);
    assert!(seen.body.to_string().contains("newer images are shown"));
}

#[test]
fn image_outside_of_the_workspace_is_refused() {
    let server = Server::start(|_| Act::Say("Noted.".to_owned()));
    let host = streaming::new_host("", &server, "openai", &["--images"]);
    let raw = Raw::of(&host);
    let digest = format!("{:064}", 0);
    for path in ["../../master.key", "/etc/passwd", "", "a\nb"] {
        let file = json!({ "name": "a.png", "text": "an image", "image": { "path": path, "digest": digest } });
        let body = json!({ "text": "look", "files": [file] }).to_string();
        let (status, refused) = raw.ask("POST", "/v1/agents/a/messages", &body);
        assert_eq!((status, text(&refused["error"], "code")), (400, "file_path".to_owned()), "{path}: {refused}");
    }
    assert!(server.seen().is_empty());
    let script = ["--json", "model", "add", "s", "--kind", "scripted", "--images"];
    host.ctl(&script).refused("model_malformed");
}

#[test]
fn image_from_a_webhook_reaches_the_model_as_a_file() {
    let server = Server::start(|_| Act::Say("A bird.".to_owned()));
    let host = streaming::new_host("[webhook]\nlisten = \"127.0.0.1:0\"\n", &server, "openai", &["--images"]);
    let (_receiver, hook) = add_shop(&host);
    let bird = png("bird");
    let file = json!({ "name": "my bird.png", "data": STANDARD.encode(&bird), "type": "image/png" });
    let (status, answer) = hook.send("e", &json!({ "sender": "ann", "text": "look", "files": [file] }).to_string());
    assert_eq!(status, 200, "{answer}");
    receipt(&host, answer["message_id"].as_str().expect("an id"), "received");
    let seen = last(&server);
    assert_eq!(images(&seen), [shown(&bird)]);
    let words = seen.body.to_string();
    assert!(words.contains("file my bird.png") && words.contains("inbox/my-bird.png"), "it is quoted: {words}");
}
