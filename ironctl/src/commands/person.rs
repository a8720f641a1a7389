//! `ironctl person`: adds, lists, shows, sets, links, unlinks and removes people.
//!
//! Never guesses an identity from a name or a prefix: an identity is always a whole `channel:id`. See [`crate::commands::token`].

use super::review;
use super::token;
use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use crate::output::table::Columns;
use clap::Subcommand;
use ironclaw_operator::{
    DenialCode, KeptOfPerson, NewIdentity, NewPerson, NewPlace, NewRole, Person, RemovedPerson, TokenState, routes,
};
use serde_json::json;

/// The verbs of `ironctl person`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add a person
    #[command(after_help = "Example:\n  ironctl person add Bob\n  ironctl person add Carol --role admin")]
    Add {
        /// Name of the person
        name: String,
        /// Role: owner (everything), admin (runs agents and sessions) or member (talks to agents)
        #[arg(long, default_value = "member")]
        role: String,
    },
    /// List people
    #[command(after_help = "Example:\n  ironctl person list")]
    List,
    /// Show a person with identities and tokens
    #[command(after_help = "Example:\n  ironctl person show Bob")]
    Show {
        /// Name or id
        person: String,
    },
    /// Set the role of a person, and the place where the person is told
    #[command(
        after_help = "Example:\n  ironctl person set Bob --role admin\n  ironctl person set Bob --notify desk\n  ironctl person set Bob --notify none"
    )]
    Set {
        /// Name or id
        person: String,
        /// Role: owner, admin or member
        #[arg(long, required_unless_present = "notify")]
        role: Option<String>,
        /// Where the person is told about requests and incidents: a channel, an identity channel:id, or none
        #[arg(long, value_name = "CHANNEL|none")]
        notify: Option<String>,
        /// Give a higher role without a question
        #[arg(long)]
        yes: bool,
    },
    /// Link an account on a channel to a person
    #[command(
        after_help = "Example:\n  ironctl person link Bob telegram:4711\n  ironctl person link Bob loopback:bob-work"
    )]
    Link {
        /// Name or id
        person: String,
        /// Identity, channel:id; everything after the first colon is the id
        identity: String,
        /// Link it without a question
        #[arg(long)]
        yes: bool,
    },
    /// Unlink an account from a person
    #[command(after_help = "Example:\n  ironctl person unlink Bob telegram:4711")]
    Unlink {
        /// Name or id
        person: String,
        /// Identity, channel:id
        identity: String,
    },
    /// Remove a person with tokens, identities and roles
    #[command(after_help = "Example:\n  ironctl person remove Bob\n  ironctl person remove Bob --erase --yes")]
    Remove {
        /// Name or id
        person: String,
        /// Also erase the sessions of the person; without it, a person with sessions is not removed
        #[arg(long)]
        erase: bool,
        /// Remove the person without a confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add { name, role } => {
            let person = client.post(routes::ADD_PERSON, [], &NewPerson { name, role }).await?;
            at.out.json(&person)?;
            at.out.line(format!("added {}, {} ({})", person.name, person.role, person.id))?;
            let plain = person.name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.'));
            let named = if plain { person.name } else { person.id.to_string() };
            at.out.remark(format!("add a token for them: ironctl token add --person {named}"))
        }
        Action::List => {
            let people = client.call(routes::PEOPLE, []).await?;
            at.out.json(&people)?;
            list(at.out, people)
        }
        Action::Show { person } => {
            let person = client.call(routes::PERSON, [&person]).await?;
            at.out.json(&person)?;
            show(at.out, person)
        }
        Action::Set { person, role, notify, yes } => set(at.out, &client, &person, role, notify, yes).await,
        Action::Link { person, identity, yes } => {
            let mut new = NewIdentity { identity: identity.clone(), shown: None };
            let linked = match client.post(routes::LINK_IDENTITY, [&person], &new).await {
                Err(refused) if is_unseen(&refused) => {
                    new.shown = Some(
                        review::agreed(at.out, &client.post(routes::REVIEW_LINK, [&person], &new).await?, yes).await?,
                    );
                    client.post(routes::LINK_IDENTITY, [&person], &new).await
                }
                linked => linked,
            };
            let person = linked?;
            at.out.json(&person)?;
            at.out.line(format!("linked {identity} to {} ({})", person.name, person.id))?;
            warn(at.out, &person, &identity)
        }
        Action::Unlink { person, identity } => {
            let person = client.call(routes::UNLINK_IDENTITY, [&person, &identity]).await?;
            at.out.result(&person, format!("unlinked {identity}; its messages are refused"))
        }
        Action::Remove { person, erase, yes } => {
            let sessions = if erase { " and erase all their sessions" } else { "" };
            at.out.confirm(&format!("remove {person}{sessions}"), yes)?;
            let removed = client.query(routes::REMOVE_PERSON, [&person], json!({ "erase": erase })).await?;
            at.out.json(&removed)?;
            print_removed(at.out, removed)
        }
    }
}

/// Returns whether the host refused a step because its page was not shown.
fn is_unseen(refused: &Error) -> bool {
    matches!(refused, Error::Refused(failure) if failure.error.code == DenialCode::PageUnseen.name())
}

/// Sets the role first, and then the place.
async fn set(
    out: Output,
    client: &Client,
    person: &str,
    role: Option<String>,
    notify: Option<String>,
    yes: bool,
) -> Result<(), Error> {
    let mut last = None;
    if let Some(role) = role {
        let mut new = NewRole { role, shown: None };
        let set = match client.post(routes::SET_ROLE, [&person], &new).await {
            Err(refused) if is_unseen(&refused) => {
                new.shown =
                    Some(review::agreed(out, &client.post(routes::REVIEW_ROLE, [&person], &new).await?, yes).await?);
                client.post(routes::SET_ROLE, [&person], &new).await
            }
            set => set,
        }?;
        out.line(format!("{} now has the role {}", set.name, set.role))?;
        last = Some(set);
    }
    if let Some(notify) = notify {
        let set = client.post(routes::SET_PLACE, [&person], &NewPlace { notify }).await?;
        out.line(match &set.notify {
            Some(place) => format!("{} is now told at {place}", set.name),
            None => format!("{} is told nowhere now", set.name),
        })?;
        last = Some(set);
    }
    last.map_or(Ok(()), |person| out.json(&person))
}

/// Prints the parts of a removed person, and the data that stays.
fn print_removed(out: Output, removed: RemovedPerson) -> Result<(), Error> {
    let RemovedPerson { id, name, role: _, tokens, identities, agents, changes, sessions, kept } = removed;
    out.line(format!("removed {name} ({id})"))?;
    let ids: Vec<String> = tokens.iter().map(ToString::to_string).collect();
    let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
    for (what, parts) in [
        ("revoked tokens", ids),
        ("unlinked identities", identities),
        ("ended roles at agents", agents),
        ("withdrawn changes", changes),
    ] {
        if !parts.is_empty() {
            out.line(format!("{what}: {}", parts.join(" ")))?;
        }
    }
    if sessions > 0 {
        out.line(format!("erased sessions: {sessions}"))?;
    }
    let KeptOfPerson { changes, notes } = kept;
    out.line(format!("kept: entries of the ledger with the id; changes: {changes}; notes of agents: {notes}"))
}

/// Warns about suspicious characters of the linked identity.
fn warn(out: Output, person: &Person, identity: &str) -> Result<(), Error> {
    let linked = person.identities.iter().find(|found| found.identity == identity);
    for mark in linked.into_iter().flat_map(|linked| &linked.marks) {
        out.remark(format!("look twice: {identity} {mark}"))?;
    }
    Ok(())
}

fn marked(text: String, marks: &[String]) -> String {
    if marks.is_empty() { text } else { format!("{text}  [! {}]", marks.join("; ")) }
}

fn list(out: Output, people: Vec<Person>) -> Result<(), Error> {
    let rows = people.into_iter().map(|person| {
        let identities = person.identities.into_iter().map(|found| marked(found.identity, &found.marks));
        let live = person.tokens.iter().filter(|token| token.state == TokenState::Live).count();
        [
            marked(person.name, &person.marks),
            person.role.to_string(),
            identities.collect::<Vec<_>>().join("\n"),
            person.notify.unwrap_or_default(),
            live.to_string(),
            person.id.to_string(),
        ]
    });
    let columns = Columns::new(["PERSON", "ROLE", "IDENTITIES", "TOLD AT", "LIVE TOKENS", "ID"]);
    out.table(columns.with_least(&["LIVE TOKENS"]), rows)
}

fn show(out: Output, person: Person) -> Result<(), Error> {
    let name = marked(person.name, &person.marks);
    let mut rows = vec![
        ["id".to_owned(), person.id.to_string()],
        ["role".to_owned(), person.role.to_string()],
        ["added".to_owned(), clock::date_and_time(&person.created_at)],
        ["told at".to_owned(), person.notify.unwrap_or_else(|| "nowhere".to_owned())],
    ];
    for identity in person.identities {
        rows.push(["identity".to_owned(), marked(identity.identity, &identity.marks)]);
    }
    out.table(["PERSON", name.as_str()], rows)?;
    if person.tokens.is_empty() {
        return out.line("no tokens");
    }
    token::table(out, person.tokens)
}
