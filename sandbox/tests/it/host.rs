//! A minimal host for tests: it makes the queues, answers on the model socket, and reads the rows.

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{BootId, CallId, ItemId, SessionId, TurnId};
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::inbound::{InboundWriter, MessageIn, Turn};
use ironclaw_contract::seam::link::{BELL, FromSandbox, Hello, TurnLimits, Welcome};
use ironclaw_contract::seam::outbound::{Found, OutboundReader, RawRow};
use ironclaw_contract::seam::seal::{ItemKind, Ref};
use ironclaw_contract::seam::socket::{
    Call, Context, Item, Purpose, Request, Response, Verdict, read_frame, write_frame,
};
use ironclaw_sandbox::link::Link;
use ironclaw_sandbox::{Paths, launch};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// The longest wait of a test. A test that waits longer fails.
const WAIT_MAX: Duration = Duration::from_secs(20);

pub const KEY: [u8; 32] = [7; 32];

pub const LIMITS: TurnLimits =
    TurnLimits { model_calls_max: 4, tool_calls_max: 4, result_bytes_max: 1000, context_bytes_max: 10_000 };

/// The reaction of the model socket to a request.
pub enum Answer {
    Say(Response),
    HangUp,
}

pub struct Host {
    root: TempDir,
    pub paths: Paths,
    link: Option<UnixStream>,
    inbound: InboundWriter,
    /// The messages that each turn projects.
    messages: Vec<MessageIn>,
    asked: Receiver<Request>,
    answers: Sender<Answer>,
    /// The items that a request `items` returns, in pages of two.
    pub items: Arc<Mutex<Vec<Item>>>,
    /// The number in each request `items`.
    pub listed: Arc<Mutex<Vec<u64>>>,
    boot: BootId,
    /// The items of the last request for a reply.
    pub named: RefCell<Vec<u64>>,
    /// Number of parts of the last request for a reply.
    pub parts: Cell<usize>,
    seq: u64,
    cursor: u64,
    sandbox: Option<JoinHandle<Result<(), launch::Error>>>,
}

impl Host {
    /// Makes queues, socket and workspace without a sandbox.
    pub fn prepare() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let paths = Paths::below(&root.path().canonicalize().expect("exists"));
        for place in [&paths.inbound, &paths.outbound, &paths.workspace, &paths.run] {
            std::fs::create_dir(place).expect("made");
        }
        let inbound = InboundWriter::open(&paths.inbound_db(), &SessionKey::new(KEY)).expect("made");
        let items = Arc::new(Mutex::new(Vec::new()));
        let listed = Arc::new(Mutex::new(Vec::new()));
        let (asked, answers) = serve_model(&paths.model_socket(), Arc::clone(&items), Arc::clone(&listed));
        let (boot, named, parts, seq, cursor) = (BootId::new(), RefCell::default(), Cell::default(), 0, 0);
        Self {
            root,
            paths,
            link: None,
            inbound,
            messages: Vec::new(),
            asked,
            answers,
            items,
            listed,
            boot,
            named,
            parts,
            seq,
            cursor,
            sandbox: None,
        }
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Starts a sandbox in a thread of this process, without its walls, up to its hello.
    pub fn launch(&mut self) -> Hello {
        let (host, sandbox) = UnixStream::pair().expect("a socketpair");
        let paths = self.paths.clone();
        self.sandbox = Some(std::thread::spawn(move || launch::serve(Link::new(sandbox.into()), &paths)));
        self.attach(host)
    }

    /// Sets the host's end of the link of a running sandbox, and reads its hello.
    pub fn attach(&mut self, link: UnixStream) -> Hello {
        self.set_link(link);
        match self.hear() {
            FromSandbox::Hello(hello) => hello,
            FromSandbox::Fatal(fatal) => panic!("{}", fatal.fatal),
        }
    }

    pub fn set_link(&mut self, link: UnixStream) {
        link.set_read_timeout(Some(WAIT_MAX)).expect("set");
        self.link = Some(link);
    }

    pub fn close_link(&mut self) {
        drop(self.link.take());
    }

    /// Starts a sandbox, sends the welcome and waits for its first bell.
    pub fn welcomed(limits: TurnLimits) -> Self {
        let mut host = Self::prepare();
        host.launch();
        host.say(&welcome(limits));
        host.bell();
        host
    }

    pub fn hear(&mut self) -> FromSandbox {
        let frame = read_frame(self.link()).expect("read").expect("a frame");
        serde_json::from_slice(&frame).expect("a frame of the handshake")
    }

    pub fn say(&mut self, welcome: &Welcome) {
        write_frame(self.link(), welcome).expect("written");
    }

    pub fn link(&mut self) -> &mut UnixStream {
        self.link.as_mut().expect("the link is open")
    }

    pub fn ring(&mut self) {
        self.link().write_all(&[BELL]).expect("rung");
    }

    /// Waits for one bell.
    pub fn bell(&mut self) {
        let mut byte = [0];
        self.link().read_exact(&mut byte).expect("a bell");
        assert_eq!(byte, [BELL]);
    }

    /// Closes the link and returns the result of the sandbox.
    pub fn close(&mut self) -> Result<(), launch::Error> {
        self.close_link();
        self.ended()
    }

    /// Waits for the end of the sandbox and returns its result.
    pub fn ended(&mut self) -> Result<(), launch::Error> {
        self.sandbox.take().expect("a launched sandbox").join().expect("no panic")
    }

    /// Adds a message to those that the next turn projects.
    pub fn project(&mut self, text: &str) -> MessageIn {
        let seal = self.sealed(ItemKind::Message);
        let message = MessageIn { bytes: text.len() as u64, seal };
        self.messages.push(message.clone());
        message
    }

    /// Opens a turn that answers these messages, and rings.
    pub fn open(&mut self, messages: &[&MessageIn]) -> Turn {
        self.open_until(messages, i64::MAX)
    }

    pub fn open_until(&mut self, messages: &[&MessageIn], deadline: i64) -> Turn {
        let messages = messages.iter().map(|message| message.seal.item.message()).collect();
        let turn = Turn { turn: TurnId::new(), messages, deadline, cursor: self.cursor };
        self.inbound.open_turn(&turn, &self.messages).expect("projected");
        self.ring();
        turn
    }

    /// Closes the turn, without a bell.
    pub fn close_turn(&mut self) {
        self.inbound.clear().expect("projected");
    }

    /// Returns the next request on the model socket that is not `items`.
    pub fn asked(&self) -> Request {
        self.asked.recv_timeout(WAIT_MAX).expect("a request")
    }

    /// Returns the refs of the next request, which must be `generate` for a reply.
    pub fn asked_to_generate(&self) -> Vec<u64> {
        self.asked_for(Purpose::Reply)
    }

    /// Returns the items of the next request, which must be `generate` with this purpose. A range names items of the last request for a
    /// reply.
    pub fn asked_for(&self, wanted: Purpose) -> Vec<u64> {
        let Request::Generate { purpose, refs, .. } = self.asked() else { panic!("another request") };
        assert_eq!(purpose, wanted);
        let (count, mut all) = (refs.len(), Vec::new());
        for part in refs {
            match part {
                Context::Ref(reference) => all.push(reference.seq),
                Context::Earlier(range) => {
                    let named = self.named.borrow();
                    assert!(named.contains(&range.from) && named.contains(&range.upto), "{range:?} of {named:?}");
                    all.extend(named.iter().filter(|seq| (range.from..=range.upto).contains(*seq)));
                }
                Context::Text(text) => panic!("a text without a seal: {text:?}"),
            }
        }
        if wanted == Purpose::Reply {
            self.parts.set(count);
            self.named.replace(all.clone());
        }
        all
    }

    pub fn answer(&self, response: Response) {
        self.answers.send(Answer::Say(response)).expect("the socket waits for an answer");
    }

    pub fn hang_up(&self) {
        self.answers.send(Answer::HangUp).expect("the socket waits for an answer");
    }

    /// Answers with an output.
    pub fn answer_output(&mut self, bytes: u64, calls: Vec<Call>) -> Ref {
        let item = self.sealed(ItemKind::Output);
        self.answer(Response::Output { item: item.clone(), bytes, calls });
        item
    }

    /// Answers with a result.
    pub fn answer_result(&mut self, bytes: u64) -> Ref {
        let item = self.sealed(ItemKind::Result);
        self.answer(Response::Sealed { item: item.clone(), bytes });
        item
    }

    pub fn sealed(&mut self, kind: ItemKind) -> Ref {
        let (seq, digest, seal) = (self.next_seq(), Digest::of(b"body"), Digest::of(b"seal"));
        Ref { item: ItemId::new(), kind, seq, issued_at: 1, boot: self.boot, digest, seal }
    }

    fn next_seq(&mut self) -> u64 {
        self.seq += 2;
        self.seq
    }

    /// Returns the content of the outbound queue.
    pub fn found(&self) -> Found {
        let mut reader = OutboundReader::open(&self.paths.outbound_db(), &SessionKey::new(KEY)).expect("opened");
        reader.look(0).expect("in order")
    }

    pub fn rows(&self) -> Vec<RawRow> {
        let rows = self.found().rows.into_iter();
        rows.map(|row| row.check(Ok::<RawRow, Infallible>).unwrap_or_else(|never| match never {})).collect()
    }

    /// Returns content and turn of every row.
    pub fn said(&self) -> Vec<(String, String)> {
        self.rows().into_iter().map(|row| (row.content, row.turn)).collect()
    }
}

pub fn welcome(turn: TurnLimits) -> Welcome {
    let key = SessionKey::new(KEY).to_hex().to_string();
    Welcome { session: SessionId::new(), key, turn, failpoint: None }
}

pub fn call(tool: &str, arguments: &str, verdict: Verdict) -> Call {
    Call { call_id: CallId::new(), tool: tool.into(), arguments: arguments.into(), verdict }
}

/// Serves one connection at a time. Passes each request to the test, and returns the answer of the test.
fn serve_model(
    path: &Path,
    items: Arc<Mutex<Vec<Item>>>,
    listed: Arc<Mutex<Vec<u64>>>,
) -> (Receiver<Request>, Sender<Answer>) {
    let listener = UnixListener::bind(path).expect("bound");
    let (asked, asked_of_test) = channel();
    let (answers, answers_of_test) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            while let Ok(Some(frame)) = read_frame(&mut stream) {
                let request: Request = serde_json::from_slice(&frame).expect("a request of the contract");
                let answer = if let Request::Items { after_seq } = request {
                    listed.lock().expect("not poisoned").push(after_seq);
                    Answer::Say(page(&items.lock().expect("not poisoned"), after_seq))
                } else {
                    let Ok(answer) =
                        asked.send(request).map_err(drop).and_then(|()| answers_of_test.recv().map_err(drop))
                    else {
                        return;
                    };
                    answer
                };
                match answer {
                    Answer::Say(response) => {
                        // The sandbox may have ended. The next read then notices it.
                        let _ = write_frame(&mut stream, &response);
                    }
                    Answer::HangUp => break,
                }
            }
        }
    });
    (asked_of_test, answers)
}

fn page(items: &[Item], after_seq: u64) -> Response {
    let newer: Vec<Item> = items.iter().filter(|item| item.reference.seq > after_seq).cloned().collect();
    let more = newer.len() > 2;
    Response::Items { items: newer.into_iter().take(2).collect(), more }
}
