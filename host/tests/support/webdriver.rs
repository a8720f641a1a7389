//! A Chromium that a test drives over the WebDriver protocol of Debian's `chromium-driver`.
//!
//! Each command waits for its element with a bound, and never for a time alone. A failure names the selector and the page, and keeps a
//! picture. See [`actions`] for keys and pointers, and `console::browser` for its users.

pub(crate) mod actions;
mod wire;

use super::host_fixture::WAIT_MAX;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
pub(crate) use wire::Failure;
use wire::Wire;

const DRIVER: &str = "/usr/bin/chromedriver";

/// Starts of a driver that finds its port taken.
const DRIVER_STARTS_MAX: usize = 10;
const CHROMIUM: &str = "/usr/bin/chromium";
const REMEDY: &str = "run .ci/long browser, which installs it, or `apt-get install chromium chromium-driver`";

/// The key of the id of an element in JSON, which the protocol fixes.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// The time between two looks at a page.
const LOOK_EVERY: Duration = Duration::from_millis(15);

/// The end of a page in the message of a failure.
const SHOWN_MAX: usize = 3000;

/// The size of a window, and whether fingers use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) is_phone: bool,
}

pub(crate) const DESKTOP: Screen = Screen { width: 1280, height: 900, is_phone: false };
pub(crate) const PHONE: Screen = Screen { width: 360, height: 740, is_phone: true };

/// A running Chromium with a profile of its own. Dropping it ends its processes.
pub(crate) struct Browser {
    wire: Wire,
    session: String,
    driver: Child,
    screen: Screen,
    /// The profile and the downloads.
    directory: tempfile::TempDir,
}

/// An element of the current page.
pub(crate) struct Element<'a> {
    browser: &'a Browser,
    id: String,
}

impl Browser {
    /// Starts a driver on a free port, and Chromium with a fresh profile.
    pub(crate) fn start(screen: Screen) -> Self {
        for program in [DRIVER, CHROMIUM] {
            assert!(Path::new(program).is_file(), "{program} is missing: {REMEDY}");
        }
        let directory = tempfile::Builder::new().prefix("browser").tempdir().expect("a temporary directory");
        std::fs::create_dir(directory.path().join("downloads")).expect("a directory");
        let (driver, port) = start_driver(directory.path());
        let wire = Wire { port };
        let mut browser = Self { wire, session: String::new(), driver, screen, directory };
        let options = browser.options();
        let session = browser.wire.ask("POST", "/session", &options).unwrap_or_else(|failure| {
            panic!("Chromium does not start: {}: {}", failure.code, failure.message);
        });
        session["sessionId"].as_str().expect("a session").clone_into(&mut browser.session);
        browser.set_screen(screen);
        browser
    }

    fn options(&self) -> Value {
        let profile = self.directory.path().join("profile");
        let mut arguments = vec![
            "--headless=new".to_owned(),
            format!("--user-data-dir={}", profile.display()),
            "--window-size=1280,900".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
        ];
        // Chromium has no sandbox for root.
        if nix::unistd::geteuid().is_root() {
            arguments.push("--no-sandbox".to_owned());
            eprint_once("Chromium runs without its sandbox, because root runs this test.");
        }
        let preferences = json!({
            "download.default_directory": self.downloads(), "download.prompt_for_download": false,
            "plugins.always_open_pdf_externally": true, "safebrowsing.enabled": false,
        });
        json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            // An unexpected dialog makes the next command fail.
            "unhandledPromptBehavior": "ignore",
            "goog:chromeOptions": { "binary": CHROMIUM, "args": arguments, "prefs": preferences },
        } } })
    }

    /// Gives the current window another size, which an emulation holds, because a window of Chromium is at least 500 pixels wide.
    pub(crate) fn set_screen(&mut self, screen: Screen) {
        self.screen = screen;
        self.emulate();
    }

    fn emulate(&self) {
        let Screen { width, height, is_phone } = self.screen;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let touch = json!({ "enabled": is_phone, "maxTouchPoints": 1 });
        self.devtools("Emulation.setTouchEmulationEnabled", &touch);
    }

    /// Sets media features such as `prefers-color-scheme` for the current window.
    pub(crate) fn set_media(&self, features: &[(&str, &str)]) {
        let features: Vec<Value> = features.iter().map(|one| json!({ "name": one.0, "value": one.1 })).collect();
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Lets the pages of the current window run scripts, or not.
    pub(crate) fn set_scripts(&self, are_on: bool) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": !are_on }));
    }

    /// Sends a command of the protocol of the developer tools.
    #[track_caller]
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.must(command, "POST", "goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// Loads a page.
    #[track_caller]
    pub(crate) fn go(&self, url: &str) {
        self.must(url, "POST", "url", &json!({ "url": url }));
    }

    #[track_caller]
    pub(crate) fn reload(&self) {
        self.must("reload", "POST", "refresh", &json!({}));
    }

    #[track_caller]
    pub(crate) fn url(&self) -> String {
        text(self.must("the address", "GET", "url", &Value::Null))
    }

    #[track_caller]
    pub(crate) fn source(&self) -> String {
        text(self.must("the source", "GET", "source", &Value::Null))
    }

    /// Runs a script and returns its result.
    #[track_caller]
    pub(crate) fn run(&self, script: &str, arguments: &[Value]) -> Value {
        self.must(script, "POST", "execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// Runs a script that calls its last argument with its result.
    #[track_caller]
    pub(crate) fn run_late(&self, script: &str, arguments: &[Value]) -> Value {
        self.must(script, "POST", "execute/async", &json!({ "script": script, "args": arguments }))
    }

    /// Returns the elements that a selector has now.
    #[track_caller]
    pub(crate) fn elements(&self, css: &str) -> Vec<Element<'_>> {
        let query = json!({ "using": "css selector", "value": css });
        let found = self.must(css, "POST", "elements", &query);
        found.as_array().into_iter().flatten().map(|one| self.element(one)).collect()
    }

    #[track_caller]
    pub(crate) fn has(&self, css: &str) -> bool {
        !self.elements(css).is_empty()
    }

    /// Waits for an element.
    #[track_caller]
    pub(crate) fn find(&self, css: &str) -> Element<'_> {
        self.act("find", css, Ok)
    }

    /// Waits until an element can be clicked, and clicks it once.
    #[track_caller]
    pub(crate) fn click(&self, css: &str) {
        self.act("click", css, |element| {
            // The header stays over what is at the top of the window.
            let middle = "arguments[0].scrollIntoView({ block: 'center', behavior: 'instant' })";
            let arguments = json!({ "script": middle, "args": [{ ELEMENT: element.id }] });
            self.ask("POST", "execute/sync", &arguments)?;
            element.ask("POST", "click", &json!({})).map(drop)
        });
    }

    /// Waits for an element and returns its visible text.
    #[track_caller]
    pub(crate) fn text(&self, css: &str) -> String {
        self.act("read", css, |element| element.ask("GET", "text", &Value::Null).map(text))
    }

    #[track_caller]
    pub(crate) fn attribute(&self, css: &str, name: &str) -> Option<String> {
        let path = format!("attribute/{name}");
        self.act("read", css, |element| Ok(element.ask("GET", &path, &Value::Null)?.as_str().map(str::to_owned)))
    }

    /// Types into an element, or gives the path of a file to a field for files.
    #[track_caller]
    pub(crate) fn type_keys(&self, css: &str, keys: &str) {
        self.act("type into", css, |element| element.ask("POST", "value", &json!({ "text": keys })).map(drop));
    }

    /// Waits until a condition about the page holds.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let until = Instant::now() + WAIT_MAX;
        while !holds(self) {
            if Instant::now() > until {
                self.fail(&format!("waited {WAIT_MAX:?} for {what}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until the visible text of an element contains these words.
    #[track_caller]
    pub(crate) fn until_text(&self, css: &str, words: &str) {
        // By script, because the page may replace the element at any moment.
        let script = "const e = document.querySelector(arguments[0]); return !!e && e.innerText.includes(arguments[1])";
        let holds = |browser: &Self| browser.run(script, &[json!(css), json!(words)]) == true;
        self.until(&format!("{words:?} in {css}"), holds);
    }

    /// Waits until an element is there and shown.
    #[track_caller]
    pub(crate) fn until_shown(&self, css: &str) {
        self.until(&format!("{css} to be shown"), |browser| browser.is_shown(css));
    }

    #[track_caller]
    pub(crate) fn until_gone(&self, css: &str) {
        self.until(&format!("{css} to be gone"), |browser| !browser.is_shown(css));
    }

    #[track_caller]
    pub(crate) fn is_shown(&self, css: &str) -> bool {
        let script = "const e = document.querySelector(arguments[0]); return !!e && e.checkVisibility()";
        self.run(script, &[json!(css)]) == true
    }

    /// Opens a tab and makes it the current one. Returns its handle.
    #[track_caller]
    pub(crate) fn open_tab(&self) -> String {
        let made = self.must("a new tab", "POST", "window/new", &json!({ "type": "tab" }));
        let handle = made["handle"].as_str().expect("a handle").to_owned();
        self.enter_tab(&handle);
        self.emulate();
        handle
    }

    #[track_caller]
    pub(crate) fn tab(&self) -> String {
        text(self.must("the tab", "GET", "window", &Value::Null))
    }

    #[track_caller]
    pub(crate) fn tabs(&self) -> usize {
        self.must("the tabs", "GET", "window/handles", &Value::Null).as_array().map_or(0, Vec::len)
    }

    #[track_caller]
    pub(crate) fn enter_tab(&self, handle: &str) {
        self.must(handle, "POST", "window", &json!({ "handle": handle }));
        // A person sees the tab that they enter: the others are hidden.
        self.devtools("Page.bringToFront", &json!({}));
    }

    /// Enters the frame with this number, or leaves all frames.
    #[track_caller]
    pub(crate) fn enter_frame(&self, number: Option<u32>) {
        self.must("a frame", "POST", "frame", &json!({ "id": number }));
    }

    /// Returns the cookies that the current page's address gets, those of `HttpOnly` included.
    #[track_caller]
    pub(crate) fn cookies(&self) -> Vec<Value> {
        self.must("the cookies", "GET", "cookie", &Value::Null).as_array().cloned().unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn forget_cookies(&self) {
        self.must("the cookies", "DELETE", "cookie", &Value::Null);
    }

    /// Returns the text of an open dialog.
    pub(crate) fn dialog(&self) -> Option<String> {
        self.ask("GET", "alert/text", &Value::Null).ok().map(text)
    }

    #[track_caller]
    pub(crate) fn accept_dialog(&self) {
        self.must("the dialog", "POST", "alert/accept", &json!({}));
    }

    fn downloads(&self) -> PathBuf {
        self.directory.path().join("downloads")
    }

    /// Returns the number of downloads with this content, whatever Chromium calls them.
    pub(crate) fn kept_files(&self, content: &[u8]) -> usize {
        let files = std::fs::read_dir(self.downloads()).expect("a directory").flatten();
        files.filter(|file| std::fs::read(file.path()).is_ok_and(|found| found == content)).count()
    }

    /// Keeps a picture of the window in `target/long/browser`.
    #[track_caller]
    pub(crate) fn keep_picture(&self, name: &str) {
        let taken = self.must("a picture", "GET", "screenshot", &Value::Null);
        let bytes = STANDARD.decode(taken.as_str().unwrap_or_default()).expect("base64");
        let directory = kept("browser");
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join(format!("{name}.png")), bytes).expect("written");
    }

    /// Fails, with the address and the text of the page, and keeps a picture.
    #[track_caller]
    pub(crate) fn fail(&self, what: &str) -> ! {
        let script = "return document.title + '\\n' + (document.body ? document.body.innerText : '')";
        let page = self.ask("POST", "execute/sync", &json!({ "script": script, "args": [] })).map(text);
        let page = page.unwrap_or_else(|failure| format!("({}: {})", failure.code, failure.message));
        let url = self.ask("GET", "url", &Value::Null).map(text).unwrap_or_default();
        if let Ok(Value::String(taken)) = self.ask("GET", "screenshot", &Value::Null) {
            let directory = kept("browser");
            let name = format!("failed-{}.png", std::process::id());
            let _ = std::fs::create_dir_all(&directory);
            let _ = std::fs::write(directory.join(name), STANDARD.decode(taken).unwrap_or_default());
        }
        let page: String = page.chars().take(SHOWN_MAX).collect();
        panic!("{what}\n  at {url}\n{page}");
    }

    /// Waits for an element that takes an action, and looks for it again if the page replaced it meanwhile.
    #[track_caller]
    fn act<'a, T>(&'a self, verb: &str, css: &str, action: impl Fn(Element<'a>) -> Result<T, Failure>) -> T {
        let until = Instant::now() + WAIT_MAX;
        let query = json!({ "using": "css selector", "value": css });
        loop {
            let found = self.ask("POST", "element", &query).map(|found| self.element(&found));
            let failure = match found.and_then(&action) {
                Ok(done) => return done,
                Err(failure) => failure,
            };
            let may_pass = [
                "no such element",
                "stale element reference",
                "element click intercepted",
                "element not interactable",
                "move target out of bounds",
            ];
            if !may_pass.contains(&failure.code.as_str()) || Instant::now() > until {
                self.fail(&format!("cannot {verb} {css}: {}: {}", failure.code, failure.message));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn element(&self, found: &Value) -> Element<'_> {
        Element { browser: self, id: found[ELEMENT].as_str().expect("an id").to_owned() }
    }

    #[track_caller]
    fn must(&self, what: &str, method: &str, path: &str, body: &Value) -> Value {
        match self.ask(method, path, body) {
            Ok(value) => value,
            Err(failure) => self.fail(&format!("{what}: {}: {}", failure.code, failure.message)),
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        self.wire.ask(method, &format!("/session/{}/{path}", self.session), body)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends Chromium, which has a group of its own.
        let _ = self.wire.ask("DELETE", &format!("/session/{}", self.session), &Value::Null);
        if let Ok(group) = i32::try_from(self.driver.id()) {
            let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), nix::sys::signal::Signal::SIGKILL);
        }
        let _ = self.driver.wait();
    }
}

impl Element<'_> {
    #[track_caller]
    pub(crate) fn click(&self) {
        self.must("POST", "click");
    }

    #[track_caller]
    fn must(&self, method: &str, path: &str) -> Value {
        match self.ask(method, path, &json!({})) {
            Ok(value) => value,
            Err(failure) => self.browser.fail(&format!("{path}: {}: {}", failure.code, failure.message)),
        }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Failure> {
        self.browser.ask(method, &format!("element/{}/{path}", self.id), body)
    }
}

/// Returns a directory below `target/long` of the workspace.
pub(crate) fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/long").join(name)
}

/// Starts a driver in a process group of its own, and returns it with its port. The driver takes a free port of IPv4, and ends if another
/// program has the same one of IPv6.
fn start_driver(home: &Path) -> (Child, u16) {
    let started = (0..DRIVER_STARTS_MAX).find_map(|_| try_driver(home));
    started.unwrap_or_else(|| panic!("{DRIVER} ended {DRIVER_STARTS_MAX} times before it listened"))
}

fn try_driver(home: &Path) -> Option<(Child, u16)> {
    let mut command = Command::new(DRIVER);
    command.arg("--port=0").env("HOME", home).env("TMPDIR", home).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut driver = command.spawn().expect("the driver runs");
    let mut output = BufReader::new(driver.stdout.take().expect("piped"));
    let port = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
        let (_, port) = line.trim_end_matches('.').rsplit_once("started successfully on port ")?;
        port.parse().ok()
    });
    let Some(port) = port else {
        let _ = driver.wait();
        return None;
    };
    // The driver must not wait for a full pipe.
    std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    Some((driver, port))
}

fn text(value: Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[allow(clippy::print_stderr, reason = "a fact about the run, beside the results of the tests")]
fn eprint_once(line: &'static str) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| eprintln!("{line}"));
}
