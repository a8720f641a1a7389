//! The words of a prompt that the warnings of a schedule look for, beside the lexicon of scopes.
//!
//! A scope lets a call run, so its lexicon is narrow: a text for the person who asks, or a program in the jail, needs no scope. A run
//! without a person needs both in its list. Decides nothing and widens no scope. See [`super::asked`].

/// The verbs that send, with the person who asks behind them.
const SENDS: &[&str] = &[
    "send",
    "forward",
    "mail",
    "email",
    "e-mail",
    "message",
    "text",
    "deliver",
    "post",
    "share",
    "dm",
    "ping",
    "transmit",
    "schick",
    "schicke",
    "schickst",
    "sende",
    "sendest",
    "maile",
    "übermittle",
    "leite",
    "poste",
    "envía",
    "envia",
    "manda",
    "remite",
    "reenvía",
    "enviar",
    "envoie",
    "envoyer",
    "envoyez",
    "transmets",
    "transfère",
    "poster",
];

/// Spanish verbs that have the person in one word.
const SENDS_ME: &[&str] =
    &["envíame", "enviame", "mándame", "mandame", "envíamelo", "enviamelo", "mándamelo", "mandamelo"];

/// The person who asks, as the receiver.
const ME: &[&str] = &["me", "us", "myself", "mir", "mich", "uns", "moi", "nous", "mí"];

/// The words before a receiver.
const TO: &[&str] = &["to", "an", "a", "à", "para"];

/// The verbs that begin a clause about programs.
const RUNS: &[&str] = &[
    "run",
    "rerun",
    "execute",
    "build",
    "rebuild",
    "compile",
    "recompile",
    "lint",
    "benchmark",
    "launch",
    "invoke",
    "make",
    "test",
    "deploy",
    "führe",
    "starte",
    "kompiliere",
    "baue",
    "teste",
    "ejecuta",
    "ejecutar",
    "compila",
    "lanza",
    "exécute",
    "exécuter",
    "exécutez",
    "lance",
    "lancer",
    "compile",
    "compiler",
    "teste",
];

/// The objects behind such a verb that are programs. `make` and `test` are usual words, and need one.
const PROGRAMS: &[&str] = &[
    "test",
    "tests",
    "build",
    "builds",
    "suite",
    "script",
    "scripts",
    "command",
    "commands",
    "program",
    "programs",
    "make",
    "cargo",
    "npm",
    "pip",
    "pytest",
    "git",
    "linter",
    "lint",
    "benchmark",
    "benchmarks",
    "binary",
    "job",
    "check",
    "checks",
    "project",
    "code",
    "pipeline",
    "makefile",
    "python",
    "node",
    "bash",
    "sh",
    "skript",
    "programm",
    "befehl",
    "prueba",
    "pruebas",
    "commande",
    "programme",
];

/// Words between two clauses.
const BETWEEN: &[&str] =
    &["and", "then", "please", "und", "dann", "bitte", "y", "luego", "et", "puis", "first", "also"];

/// Words of a clause that are looked at.
const CLAUSE_WORDS_MAX: usize = 24;

/// The beginnings of a request for a reminder: the answer of the run is the reminder.
const REMINDS: &[&str] = &["remind", "erinner", "recu", "rappel", "rapel"];

/// Returns whether words ask for a reminder only.
pub(super) fn is_reminder(words: &str) -> bool {
    let words = words.trim_start().to_lowercase();
    REMINDS.iter().any(|begin| words.starts_with(begin))
}

/// Returns whether a prompt asks to send something to the person who wrote it.
pub(super) fn sends_to_author(prompt: &str) -> bool {
    sentences(prompt).iter().any(|words| {
        let has_one = words.iter().any(|word| SENDS_ME.contains(&word.as_str()));
        has_one || sends_to(words, |word| ME.contains(&word))
    })
}

/// Returns whether a prompt asks to send something to a receiver of this name.
pub(super) fn sends_to_name(prompt: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    sentences(prompt).iter().any(|words| sends_to(words, |word| word == name))
}

/// Returns whether a prompt asks to run programs.
pub(super) fn runs_programs(prompt: &str) -> bool {
    sentences(prompt).iter().any(|words| {
        (0..words.len()).any(|at| {
            let begins = at == 0 || words[at - 1] == "," || BETWEEN.contains(&words[at - 1].as_str());
            let word = words[at].as_str();
            if !begins || !RUNS.contains(&word) {
                return false;
            }
            let clause = || words[at + 1..].iter().take(CLAUSE_WORDS_MAX).take_while(|word| *word != ",");
            matches!(word, "execute" | "compile" | "recompile" | "lint" | "ejecuta" | "exécute" | "kompiliere")
                || clause()
                    .any(|word| PROGRAMS.contains(&word.as_str()) || word.contains(".sh") || word.contains(".py"))
        })
    })
}

/// Returns whether a verb that sends is before this receiver, which follows it at once or has a preposition.
fn sends_to(words: &[String], is_receiver: impl Fn(&str) -> bool) -> bool {
    let sends = |word: &String| SENDS.contains(&word.as_str());
    words.iter().enumerate().filter(|(_, word)| sends(word)).any(|(at, _)| {
        let behind = &words[at + 1..words.len().min(at + 1 + CLAUSE_WORDS_MAX)];
        behind.iter().enumerate().any(|(place, word)| {
            let is_placed =
                place == 0 || TO.contains(&behind[place - 1].as_str()) || matches!(word.as_str(), "mir" | "uns");
            is_placed && is_receiver(word)
        })
    })
}

/// Returns the words of each sentence in lower case; a comma is a word.
fn sentences(prompt: &str) -> Vec<Vec<String>> {
    let lower = prompt.to_lowercase();
    let ends = |character: char| matches!(character, ';' | '!' | '?' | '\n' | ':');
    let with_ends = lower.replace(". ", "\n");
    let words_of = |sentence: &str| -> Vec<String> {
        let spaced = sentence.replace(',', " , ").replace("-moi", " moi").replace("-nous", " nous");
        let trimmed = |word: &str| word.trim_matches(|end: char| "\"'`()[].*".contains(end)).to_owned();
        spaced.split_whitespace().map(trimmed).filter(|word| !word.is_empty()).collect()
    };
    with_ends.split(ends).map(words_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_that_sends_to_its_author_is_found() {
        for (prompt, sends) in [
            ("List the papers in /notes, and send the list to me.", true),
            ("Read /notes, summarise what changed and send it to me", true),
            ("Send me a summary of /notes", true),
            ("Email me the list every Monday.", true),
            ("Sieh /notes durch und schick mir eine Zusammenfassung.", true),
            ("Sieh /notes durch und schicke die Liste an mich.", true),
            ("Lee /notes y envíame un resumen.", true),
            ("Lis /notes et envoie-moi un résumé.", true),
            ("Summarise /notes.", false),
            ("Tell me what changed in /notes.", false),
            ("Send it to Bob and tell me about it.", false),
            ("Remind me to send the invoice.", false),
        ] {
            assert_eq!(sends_to_author(prompt), sends, "{prompt}");
        }
        assert!(sends_to_name("Read it and forward it to Team.", "team"));
        assert!(!sends_to_name("Read the notes of the team.", "team"));
    }

    #[test]
    fn prompt_that_runs_programs_is_found() {
        for (prompt, runs) in [
            ("Run the tests and tell me what fails", true),
            ("Execute make in /workspace", true),
            ("Pull the changes, then build the project.", true),
            ("Run check.sh in /workspace.", true),
            ("Starte die Tests im Workspace: führe das Skript aus.", true),
            ("Exécute les tests.", true),
            ("Ejecuta las pruebas.", true),
            ("Make a list of the papers.", false),
            ("Run through my notes and summarise them.", false),
            ("Tell me how the tests run.", false),
            ("Remind me to run the tests.", false),
        ] {
            assert_eq!(runs_programs(prompt), runs, "{prompt}");
        }
    }

    #[test]
    fn reminder_needs_no_more_than_an_answer() {
        for words in ["Remind me", "remind us", "Erinnere mich", "Recuérdame", "Rappelle-moi"] {
            assert!(is_reminder(words), "{words}");
        }
        assert!(!is_reminder("write"));
    }
}
