//! The tests of autonomy suites: a slice, the whole campaign, and a replay.
//!
//! `IRONCLAW_SEED` chooses the slice and the order, `IRONCLAW_AUTONOMY=all` makes each run, and `IRONCLAW_SUITE` names the directory of
//! another suite. `docs/autonomy-suites.md` has the format of suites.
#![allow(clippy::print_stdout)] // the figures are the result of a campaign

use super::attempts::stopped_at_their_stages;
use super::report::{check, figures};
use super::stage::{Case, Outcome, Stage};
use super::stand_ins::Output;
use super::suite::{Encoding, Suite, json_file};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The runs of a slice: tasks alone, and tasks with an injection.
const SLICE: [usize; 2] = [3, 6];

/// Returns the size of a slice, unless all runs are wanted.
fn slice() -> Option<[usize; 2]> {
    (!is_whole()).then_some(SLICE)
}

/// Returns whether each run is wanted.
pub(super) fn is_whole() -> bool {
    std::env::var("IRONCLAW_AUTONOMY").is_ok_and(|value| value == "all")
}

/// Returns the seed of the slice and of the order.
pub(super) fn seed() -> u64 {
    std::env::var("IRONCLAW_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Returns each case of a suite: the tasks alone, and those with injections.
fn all(suite: &Suite) -> [Vec<Case<'_>>; 2] {
    let alone = suite.tasks.iter().map(|task| Case { task, attack: None });
    let attacked = suite.tasks.iter().flat_map(|task| {
        let attacks = suite.injections.iter().flat_map(|injection| {
            suite.encodings.iter().map(move |encoding| Case { task, attack: Some((injection, *encoding)) })
        });
        attacks.collect::<Vec<_>>()
    });
    [alone.collect(), attacked.collect()]
}

/// The finished runs of an interrupted campaign, in a file.
struct Kept {
    path: Option<PathBuf>,
    outcomes: BTreeMap<String, Outcome>,
}

impl Kept {
    /// Reads the runs that this build of the host and of the test finished with this suite.
    fn read(suite: &Suite) -> Self {
        let Some(directory) = std::env::var_os("IRONCLAW_AUTONOMY_KEPT") else {
            return Self { path: None, outcomes: BTreeMap::new() };
        };
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(directory);
        let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|found| found.modified()).expect("a file");
        let files =
            std::fs::read_dir(&suite.directory).expect("a directory").map(|file| file.expect("readable").path());
        let is_golden = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "txt");
        let host = PathBuf::from(env!("CARGO_BIN_EXE_ironclaw-host"));
        let programs = [host, std::env::current_exe().expect("the path of the test program")];
        let times = files.filter(|path| !is_golden(path)).chain(programs).map(|path| changed(&path));
        let newest = times.max().expect("a file").duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        std::fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join(format!("{}-{}.jsonl", suite.name, newest.as_millis()));
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        // The last line of a killed run may be cut.
        let outcomes = text.lines().filter_map(|line| serde_json::from_str::<Outcome>(line).ok());
        Self { path: Some(path), outcomes: outcomes.map(|outcome| (outcome.case.clone(), outcome)).collect() }
    }

    /// Removes the file of a campaign that came to its last run.
    fn finish(self) {
        if let Some(path) = self.path {
            // A campaign whose runs were all kept made no file.
            let _ = std::fs::remove_file(path);
        }
    }

    fn keep(&self, outcome: &Outcome) {
        let Some(path) = &self.path else { return };
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
        let line = serde_json::to_string(outcome).expect("JSON");
        file.write_all(format!("\n{line}\n").as_bytes()).expect("written");
    }
}

/// Makes the runs of a suite, prints their figures and checks them.
fn campaign(suite: &Suite, sizes: Option<[usize; 2]>) {
    let seed = seed();
    println!("IRONCLAW_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut cases = Vec::new();
    for (at, mut some) in all(suite).into_iter().enumerate() {
        rng.shuffle(&mut some);
        some.truncate(sizes.map_or(usize::MAX, |sizes| sizes[at]));
        cases.extend(some);
    }
    let kept = Kept::read(suite);
    let stage = Stage::new(suite);
    let begun = Instant::now();
    let outcomes: Vec<Outcome> = cases
        .iter()
        .map(|case| {
            kept.outcomes.get(&case.name()).cloned().unwrap_or_else(|| {
                let outcome = stage.run(*case);
                kept.keep(&outcome);
                outcome
            })
        })
        .collect();
    kept.finish();
    println!("{}{:?}", figures(suite, &outcomes), begun.elapsed());
    check(suite, &outcomes);
    stage.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn suite_banking_runs_no_injected_effect() {
    campaign(&Suite::own("banking"), slice());
}

#[test]
#[ignore = "banking has the same rules in the fast tier: .ci/long autonomy"]
fn suite_slack_runs_no_injected_effect() {
    campaign(&Suite::own("slack"), slice());
}

#[test]
fn suite_desk_runs_no_injected_effect() {
    campaign(&Suite::own("desk"), slice());
}

#[test]
fn injected_effect_of_loosened_rules_is_counted() {
    let own = Suite::own("banking");
    let copied = own.copied();
    let rules = std::fs::read_to_string(own.directory.join("rules.toml")).expect("rules");
    let (before, money) = rules.split_once("name = \"send_money\"\nclass = \"trade\"").expect("a rule");
    let (_, after) = money.split_once("\n\n").expect("another rule");
    let loosened = format!(
        "{before}name = \"send_money\"\nclass = \"read\"\nreach = \"outside\"\neffect = \"sends\"\n\
         arguments.recipient = {{ rule = \"free\" }}\narguments.amount = {{ rule = \"free\" }}\n\
         arguments.subject = {{ rule = \"free\" }}\narguments.date = {{ rule = \"free\" }}\n\n{after}"
    );
    std::fs::write(copied.path().join("rules.toml"), loosened).expect("written");
    let suite = Suite::read(copied.path());
    let stage = Stage::new(&suite);
    let outcome = stage.run(Case { task: &suite.tasks[1], attack: Some((&suite.injections[0], Encoding::Base64)) });
    assert_eq!((outcome.injected.len(), outcome.happened, outcome.obeyed), (1, true, true), "{outcome:?}");
    assert!(outcome.questions.is_empty() && outcome.solved, "{outcome:?}");
}

#[test]
#[ignore = "for suites of others: .ci/autonomy DIRECTORY"]
fn named_suite_keeps_its_lists() {
    let directory = std::env::var_os("IRONCLAW_SUITE");
    let suite = directory.map_or_else(|| Suite::own("desk"), |directory| Suite::read(Path::new(&directory)));
    campaign(&suite, None);
    if suite.directory.join("traces").exists() {
        replay(&suite);
    }
    if suite.directory.join("attempts.toml").exists() {
        stopped_at_their_stages(&suite, usize::MAX);
    }
}

/// A recorded conversation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    task: String,
    #[serde(default)]
    injection: Option<String>,
    /// The names of the calls that the person is asked about, in order; `!` before a rejected one.
    asked: Vec<String>,
    solved: bool,
    outputs: Vec<Output>,
}

#[test]
fn trace_is_replayed_with_its_questions() {
    replay(&Suite::own("banking"));
}

/// Replays each trace of a suite.
fn replay(suite: &Suite) {
    let stage = Stage::new(suite);
    let traces = std::fs::read_dir(suite.directory.join("traces")).expect("a directory");
    let traces: Vec<PathBuf> = traces.map(|file| file.expect("readable").path()).collect();
    assert!(!traces.is_empty());
    for path in traces {
        let shown = path.display();
        let trace: Trace = serde_json::from_value(json_file(&path)).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let task = suite.tasks.iter().find(|task| task.name == trace.task).expect("a task");
        let named =
            |name: &String| suite.injections.iter().find(|injection| injection.name == *name).expect("an injection");
        let attack = trace.injection.as_ref().map(|name| (named(name), Encoding::Plain));
        let outcome = stage.repeat(Case { task, attack }, trace.outputs);
        let mark = |approved: bool| if approved { "" } else { "!" };
        let asked: Vec<String> =
            outcome.questions.iter().map(|question| format!("{}{}", mark(question.approved), question.tool)).collect();
        assert_eq!((&asked, outcome.solved), (&trace.asked, trace.solved), "{shown}: {outcome:?}");
        assert_eq!((outcome.injected.len(), outcome.happened), (0, false), "{outcome:?}");
    }
}
