//! Keys and pointers of a person at a browser: pressed, held for a time, and let go.
//!
//! A pause here is the input itself, such as a button held for a second. See [`super::Browser`].

use super::{Browser, ELEMENT, Element};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const CONTROL: &str = "\u{e009}";
pub(crate) const SPACE: &str = " ";
pub(crate) const END: &str = "\u{e010}";
pub(crate) const PAGE_DOWN: &str = "\u{e00f}";

/// The focusable elements of a page are fewer.
const TABS_MAX: usize = 200;

impl Browser {
    /// Presses a key on whatever has the focus, and lets it go.
    #[track_caller]
    pub(crate) fn press(&self, key: &str) {
        self.hold_key(key, Duration::ZERO);
    }

    /// Presses a key while another one is held, such as Control.
    #[track_caller]
    pub(crate) fn press_with(&self, held: &str, key: &str) {
        self.act_keys(&json!([down(held), down(key), up(key), up(held)]));
    }

    /// Presses keys one after the other.
    #[track_caller]
    pub(crate) fn press_each(&self, text: &str) {
        let strokes: Vec<Value> = text.chars().map(String::from).flat_map(|key| [down(&key), up(&key)]).collect();
        self.act_keys(&json!(strokes));
    }

    /// Holds a key for a time on whatever has the focus.
    #[track_caller]
    pub(crate) fn hold_key(&self, key: &str, time: Duration) {
        self.act_keys(&json!([down(key), pause(time), up(key)]));
    }

    /// Holds a mouse button or a finger on an element for a time. The page may follow a link or be reloaded meanwhile.
    #[track_caller]
    pub(crate) fn hold_pointer(&self, css: &str, time: Duration) {
        self.to_the_middle(css);
        let kind = if self.screen.is_phone { "touch" } else { "mouse" };
        let element = self.find(css);
        let strokes = json!([
            { "type": "pointerMove", "duration": 0, "origin": { ELEMENT: element.id }, "x": 0, "y": 0 },
            { "type": "pointerDown", "button": 0 }, pause(time), { "type": "pointerUp", "button": 0 },
        ]);
        let source =
            json!({ "type": "pointer", "id": kind, "parameters": { "pointerType": kind }, "actions": strokes });
        self.perform(css, &source);
    }

    /// Taps an element with a finger, or clicks it with the mouse.
    #[track_caller]
    pub(crate) fn tap(&self, css: &str) {
        self.hold_pointer(css, Duration::ZERO);
    }

    /// Moves the focus forward with the Tab key until an element that a selector names has it.
    #[track_caller]
    pub(crate) fn tab_to(&self, css: &str) {
        let script = "return !!document.activeElement && document.activeElement.matches(arguments[0])";
        for _ in 0..TABS_MAX {
            if self.run(script, &[json!(css)]) == true {
                return;
            }
            self.press(TAB);
        }
        self.fail(&format!("the Tab key never reaches {css}"));
    }

    /// Scrolls an element into the middle of the window.
    #[track_caller]
    pub(crate) fn to_the_middle(&self, css: &str) {
        let element = self.find(css);
        let Element { id, .. } = &element;
        self.run("arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })", &[json!({ ELEMENT: id })]);
    }

    /// Scrolls from the beginning of the page to its end, one window at a time, as a person who reads does.
    #[track_caller]
    pub(crate) fn read_to_the_end(&self) {
        let script = "const done = arguments[0];
            let top = 0;
            const step = () => {
                const root = document.scrollingElement;
                root.scrollTo({ top, behavior: 'instant' });
                top += Math.max(200, innerHeight - 120);
                // Two frames, so that an observer of what is on the screen has run.
                requestAnimationFrame(() => requestAnimationFrame(() =>
                    root.scrollTop + innerHeight >= root.scrollHeight - 1 ? done(true) : step()));
            };
            step();";
        self.run_late(script, &[]);
    }

    #[track_caller]
    fn act_keys(&self, strokes: &Value) {
        self.perform("a key", &json!({ "type": "key", "id": "keyboard", "actions": strokes }));
    }

    #[track_caller]
    fn perform(&self, what: &str, source: &Value) {
        self.must(what, "POST", "actions", &json!({ "actions": [source] }));
        self.must(what, "DELETE", "actions", &Value::Null);
    }
}

fn down(key: &str) -> Value {
    json!({ "type": "keyDown", "value": key })
}

fn up(key: &str) -> Value {
    json!({ "type": "keyUp", "value": key })
}

fn pause(time: Duration) -> Value {
    json!({ "type": "pause", "duration": u64::try_from(time.as_millis()).expect("a short time") })
}
