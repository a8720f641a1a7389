//! `ironctl person`: adds, lists, shows, links and unlinks the people that a host knows.
//!
//! Never takes a name or a prefix for an identity: one is written `channel:id` and kept whole. See [`crate::commands::token`].

use super::{At, token};
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::{NewIdentity, NewPerson, NewRole, Person};

/// What to do with people.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add a person
    #[command(after_help = "Example:\n  ironctl person add Bob\n  ironctl person add Carol --role admin")]
    Add {
        /// Their name
        name: String,
        /// owner (everything), admin (runs agents and sessions) or member (talks to agents)
        #[arg(long, default_value = "member")]
        role: String,
    },
    /// List the people
    #[command(after_help = "Example:\n  ironctl person list")]
    List,
    /// Show a person with identities and tokens
    #[command(after_help = "Example:\n  ironctl person show Bob")]
    Show {
        /// Name or id
        person: String,
    },
    /// Set what a person may do
    #[command(after_help = "Example:\n  ironctl person set Bob --role admin")]
    Set {
        /// Name or id
        person: String,
        /// owner, admin or member
        #[arg(long)]
        role: String,
    },
    /// Say that an account on a channel is this person's
    #[command(
        after_help = "Example:\n  ironctl person link Bob telegram:4711\n  ironctl person link Bob loopback:bob-work"
    )]
    Link {
        /// Name or id
        person: String,
        /// channel:id; everything behind the first colon is the id
        identity: String,
    },
    /// Take an account from a person
    #[command(after_help = "Example:\n  ironctl person unlink Bob telegram:4711")]
    Unlink {
        /// Name or id
        person: String,
        /// channel:id
        identity: String,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add { name, role } => {
            let person = client.add_person(&NewPerson { name, role }).await?;
            at.out.json(&person)?;
            at.out.line(format!("added {}, {} ({})", person.name, person.role, person.id))?;
            let plain = person.name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.'));
            let named = if plain { person.name } else { person.id.to_string() };
            at.out.remark(format!("give them a token: ironctl token add --person {named}"))
        }
        Action::List => {
            let people = client.people().await?;
            at.out.json(&people)?;
            list(at.out, people)
        }
        Action::Show { person } => {
            let person = client.person(&person).await?;
            at.out.json(&person)?;
            show(at.out, person)
        }
        Action::Set { person, role } => {
            let person = client.set_role(&person, &NewRole { role }).await?;
            at.out.json(&person)?;
            at.out.line(format!("{} is {} now", person.name, person.role))
        }
        Action::Link { person, identity } => {
            let person = client.link(&person, &NewIdentity { identity: identity.clone() }).await?;
            at.out.json(&person)?;
            at.out.line(format!("{identity} is {} ({}) now", person.name, person.id))?;
            warn(at.out, &person, &identity)
        }
        Action::Unlink { person, identity } => {
            let person = client.unlink(&person, &identity).await?;
            at.out.json(&person)?;
            at.out.line(format!("{identity} is nobody now; what comes from it is refused"))
        }
    }
}

/// Says what is odd about the identity that was linked just now.
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
        let live = person.tokens.iter().filter(|token| token.state == "live").count();
        [
            marked(person.name, &person.marks),
            person.role,
            identities.collect::<Vec<_>>().join("\n"),
            live.to_string(),
            person.id.to_string(),
        ]
    });
    out.table(["PERSON", "ROLE", "IDENTITIES", "LIVE TOKENS", "ID"], rows)
}

fn show(out: Output, person: Person) -> Result<(), Error> {
    let name = marked(person.name, &person.marks);
    let mut rows = vec![
        ["id".to_owned(), person.id.to_string()],
        ["role".to_owned(), person.role],
        ["added".to_owned(), clock::date_and_time(&person.created_at)],
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
