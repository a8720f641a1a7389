//! Tests of the web console in a real Chromium. `.ci/long browser` runs them by name, and keeps their pictures.
//!
//! The real daemon serves the pages. A test reads the record over the API, never over the console. See `support::webdriver`.

mod accessible;
mod conversation;
mod decisions;
mod driver;
mod foreign;
mod forms;
mod hostile_files;
mod hostile_strings;
mod keyboard;
mod long_page;
mod meanwhile;
mod page_server;
mod phone;
mod questions;
mod restart;
mod sign_in;
mod status;

use crate::e2e::requests::{Stream, inbox, request};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::webdriver::actions::ENTER;
use crate::support::webdriver::{Browser, Screen};
use serde_json::{Value, json};
use std::time::Duration;

/// A hold that decides. The page asks for a second.
const HELD: Duration = Duration::from_millis(1400);

/// A hold that is let go early.
const LET_GO: Duration = Duration::from_millis(300);

/// A browser with a session of a person.
struct Console {
    browser: Browser,
    /// Scheme, name and port.
    origin: String,
}

impl Console {
    /// Signs the owner in with a code of `ironctl console`.
    fn sign_in(host: &TestHost, screen: Screen) -> Self {
        Self::sign_in_with(&new_code(host), screen)
    }

    /// Signs a person in with this answer of `ironctl console --print --json`.
    fn sign_in_with(code: &Value, screen: Screen) -> Self {
        let console = Self { browser: Browser::start(screen), origin: origin(code) };
        console.enter(code);
        console
    }

    /// Types a code into the page at its address.
    fn enter(&self, code: &Value) {
        self.browser.go(code["url"].as_str().expect("a url"));
        self.browser.type_keys("form[action='/sign-in'] input[name=code]", code["code"].as_str().expect("a code"));
        self.browser.click("form[action='/sign-in'] button");
        self.browser.until("the inbox", |browser| browser.url().ends_with("/inbox"));
    }

    fn go(&self, path: &str) {
        self.browser.go(&format!("{}{path}", self.origin));
    }

    /// Opens the page of something that waits from the inbox, and reads it to its end.
    fn open(&self, id: &str) {
        self.open_unread(id);
        self.browser.read_to_the_end();
    }

    /// Opens the page of something that waits from the inbox.
    fn open_unread(&self, id: &str) {
        self.go("/inbox");
        self.browser.click(&format!("#waiting-list li[data-id='{id}'] a"));
        self.browser.until_shown(&format!("article.page[data-id='{id}']"));
    }

    /// Types the word that approves the page that is open.
    fn approve_by_typing(&self) {
        self.browser.type_keys("#typed", &format!("approve{ENTER}"));
        self.browser.until_gone("form.approve");
    }

    /// Opens a new conversation with agent `a`.
    fn converse(&self) {
        self.go("/conversations");
        self.browser.run("document.querySelector('form.new [name=agent]').value = 'a'", &[]);
        self.browser.click("#begin");
        self.browser.until_shown("#talk");
    }

    /// Writes a message into the open conversation and sends it.
    fn say(&self, text: &str) {
        self.browser.type_keys("#text", text);
        self.browser.click("#send-button");
        self.browser
            .until("an empty box", |browser| browser.run("return document.querySelector('#text')?.value", &[]) == "");
    }

    /// Waits until the open conversation has these words in a line of the agent.
    fn until_said(&self, words: &str) {
        let script =
            "return [...document.querySelectorAll('#talk .said.agent')].some(e => e.innerText.includes(arguments[0]))";
        self.browser.until(&format!("{words:?} of the agent"), |browser| browser.run(script, &[json!(words)]) == true);
    }

    /// Returns the code of the refusal on the page.
    fn refusal(&self) -> Option<String> {
        self.browser.attribute(".notice.bad [data-code]", "data-code")
    }
}

/// Has `ironctl` print a code for the owner.
fn new_code(host: &TestHost) -> Value {
    host.ctl(&["--json", "console", "--print"]).ok().json()
}

/// Ends the session of the browser that is signed in.
fn remove_session(host: &TestHost) {
    let listed = host.ctl(&["--json", "token", "list"]).ok().json();
    let is_own = |token: &&Value| token["face"] == "console" && token["state"] == "live";
    let own = listed.as_array().expect("a list").iter().find(is_own).expect("a session");
    host.ctl(&["token", "remove", own["id"].as_str().expect("an id")]).ok();
}

/// Returns the origin of the console: the address without its path.
fn origin(code: &Value) -> String {
    let url = code["url"].as_str().expect("a url");
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}

/// Waits until this has a status.
fn until_status(raw: &Raw, id: &str, status: &str) {
    let mut seen = Value::Null;
    wait_for(&format!("{id} to be {status}"), || {
        seen = request(raw, &json!(id));
        seen["status"] == status
    });
}

/// Sends a message whose turn asks people, and returns the ids of the calls and questions that then wait.
fn asked(raw: &Raw, body: &Value) -> Vec<String> {
    let message = raw.send_body("a", body);
    crate::e2e::requests::delivered(raw, &message);
    inbox(raw).iter().map(|entry| entry["id"].as_str().expect("an id").to_owned()).collect()
}

/// Returns the body of a message that asks for a post and permits reading alone, so that the post waits.
fn post(text: &str, url: &str) -> Value {
    json!({ "text": format!("post {text} at {url}"), "allow": ["read"] })
}

/// Returns a stream of a message, which keeps its person present, and the first request of its turn.
fn present(raw: &Raw, body: &Value) -> (Stream, String) {
    let message = raw.send_body("a", body);
    let mut stream = Stream::open(raw, &message);
    let id = stream.next("request")["id"].as_str().expect("an id").to_owned();
    (stream, id)
}

/// Checks that the ledger has a yes or a no of the owner on the console for this.
#[track_caller]
fn check_decided_here(host: &TestHost, event: &str, id: &str) {
    let entries = host.entries(event);
    let of_it: Vec<&Value> = entries.iter().filter(|entry| entry["data"].to_string().contains(id)).collect();
    assert_eq!(of_it.len(), 1, "{event} of {id}: {entries:#?}");
    assert_eq!(of_it[0]["data"]["face"], "console", "{:#}", of_it[0]);
}
