//! The prompt of `ironctl chat`: the last lines of the conversation, then messages and answers.
//!
//! Never writes a history file: the host has the conversation. See [`super::progress`] for the progress line.

use super::attach::{self, Attachment};
use super::numbers::Numbers;
use super::progress::LiveTurn;
use super::prompt::{Parts, PasteMarks, Prompt};
use super::slash::{self, Line};
use super::unread;
use super::{failing, follow};
use crate::at::At;
use crate::client::Client;
use crate::commands::agent::set;
use crate::commands::file;
use crate::commands::inbox;
use crate::commands::mcp::quotation;
use crate::commands::review::Words;
use crate::commands::sources;
use crate::commands::usage;
use crate::commands::waiting::{self, Asked, question};
use crate::commands::why;
use crate::failure::Error;
use crate::output::Output;
use crate::terminal_line;
use ironclaw_contract::ids::{MessageId, SessionId};
use ironclaw_operator::{NewMessage, Recorded, Speaker, WaitingEntry, WaitingId, WaitingKind, routes};
use serde_json::json;
use std::time::Duration;

/// Lines of the conversation that are shown at the start.
const HISTORY_LINES: usize = 20;

/// The remark on a message with pasted text.
const PASTED: &str = "pasted text asks for nothing: the agent reads it as a quotation; type what to do with it";

pub struct Options {
    /// Name or id of the agent.
    pub agent: String,
    /// Name of the conversation.
    pub thread: Option<String>,
    /// Files to send with the first message.
    pub files: Vec<Attachment>,
    /// The identity that speaks.
    pub speak_as: Option<String>,
    /// The classes of calls that each message asks for.
    pub allow: Vec<String>,
    /// Time to wait for an answer.
    pub wait: Duration,
}

/// Runs the conversation until the person leaves.
pub async fn run(at: &At, client: &Client, options: Options) -> Result<(), Error> {
    let Options { agent, thread, files, speak_as, allow, wait } = options;
    let out = at.out;
    let agent = client.call(routes::AGENT, [&agent]).await?;
    let (id, name) = (agent.id.to_string(), agent.name);
    let mut conversation = Conversation {
        at,
        client,
        id,
        name,
        thread,
        files,
        speak_as,
        allow,
        wait,
        last: None,
        numbers: Numbers::default(),
        offered: Vec::new(),
        knows_pastes: false,
        shows_reasoning: false,
    };
    let marks = PasteMarks::keep(out)?;
    conversation.print_history().await?;
    out.remark(format!(
        "talking to {}; /help lists commands, /quit leaves, Ctrl-C cancels an answer",
        conversation.name
    ))?;
    conversation.remind().await?;
    let mut prompt = Prompt::open()?;
    drop(marks);
    let talked = conversation.talk(&mut prompt).await;
    prompt.print_unsent(conversation.out())?;
    talked
}

/// Returns whether an agent asks a question in this session.
fn is_question_in(entry: &WaitingEntry, session: SessionId) -> bool {
    entry.kind == WaitingKind::Question && entry.origin.as_ref().is_some_and(|origin| origin.session == session)
}

/// Creates the name of a new conversation from the time.
pub fn new_thread() -> String {
    let now = jiff::Zoned::now();
    format!("{}-{:03}", now.strftime("%Y%m%d-%H%M%S"), now.millisecond())
}

/// Prints the name of a new conversation and the command that returns to it.
pub fn remark_thread(out: Output, agent: &str, name: &str) -> Result<(), Error> {
    out.remark(format!("new conversation; return to it with `ironctl chat {agent} --thread {name}`"))
}

/// A conversation at the prompt.
struct Conversation<'a> {
    at: &'a At,
    client: &'a Client,
    /// Id of the agent.
    id: String,
    name: String,
    thread: Option<String>,
    /// Files to send with the next message.
    files: Vec<Attachment>,
    speak_as: Option<String>,
    /// The classes of calls that each message asks for; empty: as its words say.
    allow: Vec<String>,
    wait: Duration,
    last: Option<MessageId>,
    numbers: Numbers,
    /// The questions that were shown.
    offered: Vec<WaitingId>,
    /// True if the person read that pasted text asks for nothing.
    knows_pastes: bool,
    /// True if the thoughts of the model follow each answer.
    shows_reasoning: bool,
}

impl Conversation<'_> {
    /// Returns the output, which escapes the host's marks in other text.
    fn out(&self) -> Output {
        self.at.out.reserving_marks()
    }

    /// Sends the lines of the prompt until the person leaves, or the host is lost.
    async fn talk(&mut self, prompt: &mut Prompt) -> Result<(), Error> {
        let out = self.at.out;
        while let Some(line) = prompt.read(self.out())? {
            match slash::read_line(&line) {
                Ok(Line::Quit) => break,
                Ok(Line::Say(said)) => {
                    prompt.keep(line);
                    let marks = PasteMarks::keep(out)?;
                    self.say(said).await?;
                    drop(marks);
                }
                Ok(command) => out.report(self.command(command).await)?,
                Err(error) => {
                    out.report(Err(error))?;
                    terminal_line::hold()?;
                }
            }
        }
        Ok(())
    }

    /// Prints the last lines of the conversation from the record of the host, and the unread replies of the agent that are not among
    /// them.
    async fn print_history(&self) -> Result<(), Error> {
        let query = json!({ "limit": HISTORY_LINES, "thread": self.thread, "as": self.speak_as });
        let lines = self.client.query(routes::HISTORY, [&self.id], query).await?.lines;
        for line in &lines {
            let author = match line.author {
                Speaker::Person => "you",
                Speaker::Agent => self.name.as_str(),
                Speaker::Host => "host",
            };
            self.out().line(format!("{author}> {}", line.shown_as.as_ref().unwrap_or(&line.text)))?;
        }
        unread::print(self.out(), self.client, &self.id, &lines).await?;
        failing::print(self.out(), self.client, &self.id).await
    }

    /// Sends a message and shows its answer. Only a lost host is a failure.
    async fn say(&mut self, said: Parts) -> Result<(), Error> {
        self.remark_pasted(&said)?;
        let message = NewMessage {
            text: said.text,
            speak_as: self.speak_as.clone(),
            thread: self.thread.clone(),
            quoted: said.quoted,
            allow: self.allow.clone(),
            ..NewMessage::default()
        };
        let recorded = match attach::send(self.at.out, self.client, &self.id, message, &mut self.files).await {
            Ok(recorded) => recorded,
            Err(error) => {
                self.out().report(Err(error))?;
                return Ok(terminal_line::hold()?);
            }
        };
        self.files.clear();
        self.show_answer(&recorded).await?;
        self.last = Some(recorded.message_id);
        self.answer_questions(recorded).await?;
        self.remind().await
    }

    /// Says once that pasted text asks for nothing, and again for a message without a typed word.
    fn remark_pasted(&mut self, said: &Parts) -> Result<(), Error> {
        if said.quoted.is_empty() || self.knows_pastes && said.has_typed_words() {
            return Ok(());
        }
        self.knows_pastes = true;
        self.at.out.remark(PASTED)
    }

    /// Offers an answer to each question of the conversation that waits for this person and was not shown before. The answer of the
    /// agent may ask the next one.
    async fn answer_questions(&mut self, mut recorded: Recorded) -> Result<(), Error> {
        loop {
            // The answer of the agent did arrive, so a failed request is no failure of the message.
            let Ok(mut waiting) = inbox::list_for_agent(self.client, &self.name).await else { return Ok(()) };
            waiting.retain(|entry| is_question_in(entry, recorded.session_id) && !self.offered.contains(&entry.id));
            let Some(next) = waiting.into_iter().next() else { return Ok(()) };
            self.offered.push(next.id);
            recorded = match self.ask(next.id).await {
                Ok(Some(answered)) => answered,
                Ok(None) => continue,
                Err(error) => return self.out().report(Err(error)),
            };
            self.show_answer(&recorded).await?;
            self.last = Some(recorded.message_id);
        }
    }

    /// Shows a question and takes the answer of the person; returns the message with it.
    async fn ask(&self, id: WaitingId) -> Result<Option<Recorded>, Error> {
        let waiting = waiting::read(self.client, id).await?;
        match waiting::ask(self.out(), self.client, &waiting, Words::One, 0).await? {
            Asked::Decided(answered) => Ok(question::recorded(&answered)),
            Asked::Edit | Asked::Left | Asked::Quit => Ok(None),
        }
    }

    /// Shows the answer to a message. Without one of the agent, what was typed ahead waits at the prompt: the person did not know it.
    async fn show_answer(&self, recorded: &Recorded) -> Result<(), Error> {
        let shown = self.follow(recorded).await;
        if !matches!(shown, Ok(true)) {
            terminal_line::hold()?;
        }
        let id = recorded.message_id.to_string();
        self.out().report(shown.map(drop).map_err(|error| error.while_waiting_for(&id)))?;
        match self.shows_reasoning {
            true => self.out().report(self.print_reasoning(&id).await),
            false => Ok(()),
        }
    }

    /// Prints the thoughts of the model beside its outputs for a message.
    async fn print_reasoning(&self, message: &str) -> Result<(), Error> {
        let reasoning = self.client.call(routes::REASONING, [&message]).await?;
        if reasoning.thoughts.is_empty() {
            return self.at.out.remark("the model sent no thoughts beside this answer");
        }
        self.at.out.remark("thoughts of the model, which are no part of its answer:")?;
        let lines = reasoning.thoughts.iter().flat_map(|thought| quotation(self.at.out, thought));
        lines.into_iter().try_for_each(|line| self.out().line(line))
    }

    /// Lists what the last reply rests on.
    async fn print_sources(&self) -> Result<(), Error> {
        let message = self.last.map_or_else(|| why::LAST.to_owned(), |last| last.to_string());
        let view = self.client.query(routes::MESSAGE, [&message], json!({ "sources": true })).await?;
        match &view.sources {
            Some(found) => sources::print(self.out(), found),
            None => self.at.out.remark("the last message has no reply of the agent"),
        }
    }

    /// Shows the thoughts behind each answer from now on, beginning with the last one, or stops that.
    async fn toggle_reasoning(&mut self) -> Result<(), Error> {
        self.shows_reasoning = !self.shows_reasoning;
        if !self.shows_reasoning {
            return self.at.out.remark("the thoughts of the model are not shown any longer");
        }
        self.at.out.remark("the thoughts of the model are shown behind each answer; /reasoning stops that")?;
        match self.last {
            Some(last) => self.print_reasoning(&last.to_string()).await,
            None => Ok(()),
        }
    }

    /// Follows a message; returns whether the agent answered it.
    async fn follow(&self, recorded: &Recorded) -> Result<bool, Error> {
        let mut turn = LiveTurn::new(self.out(), format!("{}> ", self.name));
        let view = follow::follow(self.client, recorded, self.wait, &mut turn, true).await?;
        turn.finish(self.client, &view, self.wait).await?;
        Ok(!view.notice)
    }

    /// Shows what waits for the person and concerns the agent.
    async fn remind(&mut self) -> Result<(), Error> {
        // The effect of a call is in words of the host, which may have marks.
        self.numbers.remind(self.at.out, self.client, &self.name).await
    }

    /// Runs a command that sends no message.
    async fn command(&mut self, line: Line) -> Result<(), Error> {
        let out = self.out();
        match line {
            Line::Help => slash::COMMANDS.iter().try_for_each(|(name, does)| out.line(format!("{name:<18} {does}"))),
            Line::Why => {
                let message = self.last.map_or_else(|| why::LAST.to_owned(), |last| last.to_string());
                why::print(out, self.client.call(routes::WHY_MESSAGE, [&message]).await?)
            }
            Line::Sources => self.print_sources().await,
            Line::Reasoning => self.toggle_reasoning().await,
            Line::New(name) => {
                let name = name.unwrap_or_else(new_thread);
                remark_thread(out, &self.name, &name)?;
                (self.thread, self.last) = (Some(name), None);
                Ok(())
            }
            Line::Model(None) => self.show_model().await,
            Line::Model(Some(name)) => {
                set::run(self.at, self.client, &self.name, set::Changes::with_model(name), false).await
            }
            Line::Files(directory) => self.list_files(directory.as_deref().unwrap_or_default()).await,
            Line::Usage => usage::print_of_agent(out, self.client, &self.id).await,
            Line::Inbox(None) => inbox::decide_each(self.at).await,
            Line::Inbox(Some(number)) => inbox::one(self.at, self.client, self.numbers.id(number)?).await,
            Line::Empty | Line::Say(_) | Line::Quit => Ok(()),
        }
    }

    /// Lists a directory of the workspace.
    async fn list_files(&self, directory: &str) -> Result<(), Error> {
        let query = json!({ "thread": self.thread, "as": self.speak_as });
        let session = match self.client.query(routes::CONVERSATION, [&self.id], query).await {
            Ok(found) => found.session_id.to_string(),
            // The conversation has no message yet, so it has no workspace.
            Err(Error::Refused(failure)) if failure.error.code == "session_unknown" && directory.is_empty() => {
                return self.out().line(file::NO_FILES);
            }
            Err(error) => return Err(error),
        };
        file::show(self.at, self.client, &session, directory, file::LEVELS).await
    }

    /// Prints the model endpoint of the agent, and the others if this person may list them.
    async fn show_model(&self) -> Result<(), Error> {
        let agent = self.client.call(routes::AGENT, [&self.id]).await?;
        let default = if agent.follows_default { " (the default)" } else { "" };
        self.out().line(format!("{} uses the model endpoint {}{default}", agent.name, agent.model))?;
        let Ok(models) = self.client.call(routes::MODELS, []).await else { return Ok(()) };
        let others: Vec<String> =
            models.into_iter().map(|model| model.name).filter(|name| *name != agent.model).collect();
        match others.is_empty() {
            true => self.out().remark("another one: ironctl model add"),
            false => self.out().remark(format!("/model NAME sets another one: {}", others.join(", "))),
        }
    }
}
