//! Every wire shape against its golden file, byte for byte, and back from the file into an equal value.
//!
//! A file holds exactly the serialized bytes, and one line break that is not part of them. A difference concerns the other side of the
//! seam: read `docs/contract.md` first, then rewrite the files with `IRONCLAW_GOLDEN=write cargo test -p ironclaw-contract
//! --features queues golden` and check `git diff`. See `golden/seam.rs` for the samples.

mod audit;
mod calls;
mod changes;
mod channels;
mod explanation;
mod files;
mod homes;
mod mcp;
mod models;
mod operator;
mod people;
mod report;
mod requests;
mod rows;
mod schedules;
mod seam;
mod skills;
mod transcripts;
mod usage;
mod waiting;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::PathBuf;

/// The variable that, set to `write`, rewrites the files instead of comparing them.
const REWRITE: &str = "IRONCLAW_GOLDEN";

type ReadBack = Box<dyn Fn(&[u8]) -> Result<(), String>>;
type Takes = Box<dyn Fn(&[u8]) -> bool>;

/// One sample of one wire shape.
struct Shape {
    /// The name of its file, without the extension.
    name: String,
    /// The name of its Rust type, without the path.
    of: String,
    /// The serialized bytes.
    bytes: Vec<u8>,
    /// Reads the bytes of the file; an error says how the value differs.
    read_back: ReadBack,
    /// Reads any bytes and returns whether the type accepts them.
    takes: Takes,
}

/// Makes a shape of the wire, compared as a value.
fn shape<T>(name: &str, sample: T) -> Shape
where
    T: Serialize + DeserializeOwned + PartialEq + Debug + 'static,
{
    let bytes = serde_json::to_vec(&sample).expect("serializes");
    let read_back = move |file: &[u8]| match serde_json::from_slice::<T>(file) {
        Ok(found) if found == sample => Ok(()),
        Ok(found) => Err(format!("reads back as {found:?}, which is not {sample:?}")),
        Err(error) => Err(format!("does not read back: {error}")),
    };
    Shape { read_back: Box::new(read_back), ..rewritten::<T>(name, bytes) }
}

/// Makes a shape of a closed list.
fn word<T>(name: &str, all: &[T]) -> Shape
where
    T: Serialize + DeserializeOwned + PartialEq + Debug + Clone + std::str::FromStr + 'static,
{
    let of = short_name::<T>();
    Shape { of, ..shape(name, all.to_vec()) }
}

/// Makes a shape whose type cannot be compared: the value read must be written as the same bytes.
fn shape_by_bytes<T: Serialize + DeserializeOwned + 'static>(name: &str, sample: &T) -> Shape {
    rewritten::<T>(name, serde_json::to_vec(sample).expect("serializes"))
}

fn rewritten<T: Serialize + DeserializeOwned + 'static>(name: &str, bytes: Vec<u8>) -> Shape {
    let read_back = |file: &[u8]| {
        let found: T = serde_json::from_slice(file).map_err(|error| format!("does not read back: {error}"))?;
        let again = serde_json::to_vec(&found).expect("serializes");
        if again == file { Ok(()) } else { Err(format!("reads back as {}", String::from_utf8_lossy(&again))) }
    };
    Shape {
        name: name.to_owned(),
        of: short_name::<T>(),
        bytes,
        read_back: Box::new(read_back),
        takes: Box::new(|text| serde_json::from_slice::<T>(text).is_ok()),
    }
}

/// Returns `LedgerLine` for `ironclaw_operator::LedgerLine`; of a generic type the outermost name.
fn short_name<T>() -> String {
    let path = std::any::type_name::<T>();
    let path = path.split('<').next().expect("split gives at least one part");
    path.rsplit("::").next().expect("split gives at least one part").to_owned()
}

/// One sample for each variant: the patterns are one `match` without a wildcard, so a new variant does not compile
/// until it has a line, and each line is a file.
macro_rules! every {
    ($type:ty { $($name:literal: $pattern:pat => $sample:expr;)+ }) => {{
        // The first matching pattern names the sample, so that a line with another line's pattern fails.
        let name = |sample: &$type| match sample { $($pattern => $name),+ };
        let mut shapes = Vec::new();
        $(
            let sample: $type = $sample;
            assert_eq!(name(&sample), $name, "the sample of {} is of another variant", $name);
            shapes.push(crate::golden::shape($name, sample));
        )+
        shapes
    }};
}
use every;

fn all() -> Vec<Shape> {
    seam::shapes()
        .into_iter()
        .chain(operator::shapes())
        .chain(people::shapes())
        .chain(models::shapes())
        .chain(rows::shapes())
        .chain(calls::shapes())
        .chain(report::shapes())
        .chain(requests::shapes())
        .chain(schedules::shapes())
        .chain(mcp::shapes())
        .chain(usage::shapes())
        .chain(channels::shapes())
        .chain(homes::shapes())
        .chain(changes::shapes())
        .chain(explanation::shapes())
        .chain(waiting::shapes())
        .collect()
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden")
}

fn rewriting() -> bool {
    std::env::var(REWRITE).is_ok_and(|value| value == "write")
}

/// Returns the first difference of two texts, with some context.
fn difference(golden: &[u8], now: &[u8]) -> String {
    let at = golden.iter().zip(now).position(|(a, b)| a != b).unwrap_or(golden.len().min(now.len()));
    let around = |text: &[u8]| {
        let (from, to) = (at.saturating_sub(40).min(text.len()), (at + 60).min(text.len()));
        String::from_utf8_lossy(&text[from..to]).into_owned()
    };
    format!("differs from byte {at} on\n    golden …{}\n    now    …{}", around(golden), around(now))
}

#[test]
fn every_wire_shape_equals_its_golden_file_and_reads_back() {
    let mut complaints = Vec::new();
    for Shape { name, bytes, read_back, .. } in all() {
        let path = directory().join(format!("{name}.json"));
        if rewriting() {
            std::fs::write(&path, [&bytes[..], b"\n"].concat()).expect("the golden file is writable");
        }
        let golden = match std::fs::read(&path) {
            Ok(mut golden) => {
                golden.pop_if(|last| *last == b'\n');
                golden
            }
            Err(error) => {
                complaints.push(format!("{name}.json: {error}"));
                continue;
            }
        };
        if golden != bytes {
            complaints.push(format!("{name}.json {}", difference(&golden, &bytes)));
        }
        if let Err(why) = read_back(&golden) {
            complaints.push(format!("{name}.json {why}"));
        }
    }
    assert!(
        complaints.is_empty(),
        "the wire changed, and its owner on the other side of the seam must agree (docs/contract.md, \"To change the seam\"):\n  {}\n\
         once it has, {REWRITE}=write rewrites the files",
        complaints.join("\n  ")
    );
}

#[test]
fn every_golden_file_belongs_to_one_shape() {
    let names: Vec<String> = all().into_iter().map(|shape| shape.name).collect();
    let distinct: BTreeSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "two shapes share a file");
    for file in std::fs::read_dir(directory()).expect("the golden files are there") {
        let file = file.expect("readable").file_name().into_string().expect("UTF-8");
        if let Some(name) = file.strip_suffix(".json") {
            assert!(distinct.contains(&name.to_owned()), "{file} belongs to no shape: delete it");
        }
    }
}

/// Types that are on the wire only inside another type, which has a file.
const INSIDE: &[&str] = &[
    "AgentMcp",        // Agent
    "AgentMember",     // Agent
    "AgentMount",      // Agent
    "AgentPackages",   // Agent
    "AgentWiring",     // Agent
    "Approvals",       // Waiting
    "CallDetails",     // Waiting
    "ChangeDetails",   // Waiting
    "ChannelKind",     // Channel
    "CreateAgent",     // Change, its payload
    "DenialCode",      // Failure, its `code`
    "Details",         // Waiting
    "Egress",          // Change, its payload
    "EnabledTools",    // Change, its payload
    "EndpointWords",   // Why, ModelDetails
    "FailureBody",     // Failure
    "Feature",         // Preflight
    "Grant",           // Change, its payload
    "HostStatus",      // Status
    "McpAccess",       // Change, its payload
    "McpHeader",       // Change, its payload
    "McpHolder",       // McpServer
    "McpOauth",        // Change, its payload
    "McpRegister",     // Change, its payload
    "McpServerHeader", // McpServer
    "McpServerLogin",  // McpServer
    "McpServerTool",   // McpServer
    "McpTool",         // Change, its payload
    "McpUnfit",        // McpServer
    "MessageFile",     // NewMessage
    "MessageImage",    // NewMessage
    "ModelFailure",    // Why
    "Mount",           // Change, its payload
    "NamedPerson",     // Waiting
    "Origin",          // Waiting
    "OwnSource",       // Agent
    "OwnSender",       // Channel
    "Packages",        // Change, its payload
    "Part",            // Context, as it is read
    "Payload",         // NewChange
    "Permissions",     // Change, its payload
    "Persona",         // Change, its payload
    "QuestionDetails", // Waiting
    "ReaderStatus",    // SessionStatus
    "RefusedRequests", // Channel
    "Requester",       // Waiting
    "RequesterId",     // Waiting
    "SecretValue",     // NewModel
    "SentFile",        // CallWhy, MessageCall
    "SmallContext",    // Status, ModelDetails
    "ToolDifference",  // Change, its payload
    "Untrusted",       // adds nothing to what it wraps
    "WaitingCount",    // Status
    "WaitingEntry",    // Waiting, WaitingList
    "WaitingId",       // Waiting
    "WaitingSender",   // Channel
    "Wiring",          // Change, its payload
    "Written",         // Part, which is its form
];

#[test]
fn every_serialized_type_of_the_contract_has_a_shape() {
    let shapes: BTreeSet<String> = all().into_iter().map(|shape| shape.of).collect();
    let mut missing = Vec::new();
    for (path, source) in crate::frozen::sources() {
        // Up to the tests of the file, whose types are no wire types.
        let source = source.split("#[cfg(test)]").next().expect("split gives at least one part");
        for item in source.split("#[derive(").skip(1) {
            let (derives, rest) = item.split_once(']').expect("a derive ends");
            let declared = rest.lines().map(str::trim).find(|line| line.contains("struct ") || line.contains("enum "));
            let Some(declared) = declared.filter(|_| derives.contains("erialize")) else { continue };
            let (_, name) =
                declared.split_once("struct ").or_else(|| declared.split_once("enum ")).expect("found above");
            let name: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
            // `$name` belongs to the macro of the closed lists, which are in `seam::words`.
            if !name.is_empty() && !shapes.contains(&name) && !INSIDE.contains(&name.as_str()) {
                missing.push(format!("{name} in {path}"));
            }
        }
        for name in source.split("word!(").skip(1).filter_map(|word| word.split(" {").next()) {
            let name = name.lines().last().expect("has a line").trim();
            if name.chars().all(char::is_alphanumeric) && !shapes.contains(name) {
                missing.push(format!("{name} in {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "no golden file for {}", missing.join(", "));
}

/// Places that accept a field that the contract does not know, and the reason.
const TAKES_UNKNOWN_FIELDS: &[(&str, &str)] = &[
    (
        "verdict.local",
        "serde reads a unit variant by its tag alone; the host writes it, the sandbox may ignore the rest",
    ),
    ("verdict.row", "as verdict.local"),
    ("verdict.await", "as verdict.local"),
    ("call", "it holds a verdict.local"),
    ("span.quoted", "the author is a unit variant: read by its tag alone; only the host writes it"),
    ("span.model", "as span.quoted"),
    ("span.host", "as span.quoted"),
];

#[test]
fn unknown_field_is_refused_on_the_seam() {
    for Shape { name, bytes, takes, .. } in seam::shapes() {
        let Ok(Value::Object(object)) = serde_json::from_slice(&bytes) else { continue };
        let mut probes = vec![object.clone()];
        probes[0].insert("unknown_field".to_owned(), 1.into());
        for (field, inner) in &object {
            let Value::Object(inner) = inner else { continue };
            let mut inner = inner.clone();
            inner.insert("unknown_field".to_owned(), 1.into());
            probes.push(object.clone());
            probes.last_mut().expect("pushed").insert(field.clone(), Value::Object(inner));
        }
        let taken = probes.into_iter().any(|probe| takes(Value::Object(probe).to_string().as_bytes()));
        let listed = TAKES_UNKNOWN_FIELDS.iter().any(|(shape, _)| *shape == name);
        assert_eq!(taken, listed, "{name}: whether an unknown field is taken");
    }
}

#[test]
fn changed_byte_is_shown_with_its_context() {
    let shown = difference(br#"{"ask":"items","after_seq":4}"#, br#"{"ask":"items","after":4}"#);
    assert!(shown.contains("from byte 21"), "{shown}");
    assert!(shown.contains("after_seq") && shown.contains(r#""after":4"#), "{shown}");
}
