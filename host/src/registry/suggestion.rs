//! The known name that is nearest to an unknown one, for the hint of a refusal.
//!
//! Suggests only names that the asker may list: agents that they may talk to, channels to operators, people to owners. See
//! [`ironclaw_text::nearest`].

use super::roles::role_for;
use ironclaw_state::{Error, ReadTx};
use ironclaw_store::refusal::Refusal;
use ironclaw_store::tables;
use ironclaw_store::tables::people::{Person, Role};
use ironclaw_text::nearest::nearest;

/// Least similarity of the unknown and the suggested name, from 0 to 1.
const SIMILARITY_MIN: f64 = 0.8;

/// A name that the record does not have, by the kind of its object.
#[derive(Debug, Clone, Copy)]
pub enum Unknown<'a> {
    /// A name of an agent.
    Agent(&'a str),
    /// A name of a channel.
    Channel(&'a str),
    /// A name of a person.
    Person(&'a str),
}

impl Unknown<'_> {
    /// Puts the nearest name that the asker may see before the hint of a refusal.
    pub fn suggest(self, tx: &ReadTx<'_>, by: &Person, refusal: Refusal) -> Result<Refusal, Error> {
        let (Self::Agent(unknown) | Self::Channel(unknown) | Self::Person(unknown)) = self;
        let names = self.listed_for(tx, by)?;
        Ok(match nearest(unknown, names.iter().map(String::as_str), SIMILARITY_MIN) {
            Some(name) => Refusal { hint: format!("did you mean {name}? {}", refusal.hint), ..refusal },
            None => refusal,
        })
    }

    /// Returns the names of this kind that the API lists for a person.
    fn listed_for(self, tx: &ReadTx<'_>, by: &Person) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        match self {
            Self::Agent(_) => {
                for agent in tables::agents::agents(tx)? {
                    if role_for(tx, by, &agent)?.may_talk() {
                        names.push(agent.name);
                    }
                }
            }
            Self::Channel(_) if by.role.covers(Role::Admin) => {
                names.extend(tables::channels::all(tx)?.into_iter().map(|channel| channel.name));
            }
            Self::Person(_) if by.role.covers(Role::Owner) => {
                names.extend(tables::people::people(tx)?.into_iter().map(|person| person.name));
            }
            Self::Channel(_) | Self::Person(_) => {}
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::decide::proof::{Approved, Direct};
    use crate::gateway::writers::{self, agents::create_agent};
    use crate::registry::{self, AgentDraft};
    use crate::sessions::store::tests::{draft, make_owner};
    use ironclaw_contract::seam::change::Access;
    use ironclaw_operator::DenialCode;
    use ironclaw_state::WriteTx;
    use ironclaw_store::record;

    /// Returns the hint of a refusal about an unknown name, for a person.
    fn hint(tx: &WriteTx<'_>, by: &Person, unknown: Unknown<'_>) -> String {
        let refusal = Refusal::new(DenialCode::NotFound, "there is none").hint("look");
        unknown.suggest(tx, by, refusal).expect("read").hint
    }

    #[test]
    fn suggestion_has_only_names_that_the_asker_may_list() {
        record::in_a_new_one(|tx, _| {
            let owner = make_owner(tx);
            for (name, access) in [("open", Access::Everyone), ("secret", Access::Members)] {
                let draft = AgentDraft { access, ..draft(name) };
                create_agent(tx, &Direct::by_test(owner.id), draft).expect("a name");
            }
            let member = registry::add_person(tx, "Mara", Role::Member, owner.id).expect("a name");
            let admin = registry::add_person(tx, "Adam", Role::Admin, owner.id).expect("a name");
            let new = tables::channels::NewChannel {
                name: "desk",
                kind: ironclaw_operator::ChannelKind::Webhook,
                url: "https://example.org/",
                idempotent: false,
                wrapped: b"wrapped",
                created_at: 1,
            };
            tables::channels::insert(tx, &new).expect("a channel");
            let cases = [
                (&member, Unknown::Agent("opne"), "did you mean open? look"),
                (&member, Unknown::Agent("secert"), "look"),
                (&admin, Unknown::Agent("secert"), "did you mean secret? look"),
                (&member, Unknown::Channel("dsek"), "look"),
                (&admin, Unknown::Channel("dsek"), "did you mean desk? look"),
                (&admin, Unknown::Person("Marra"), "look"),
                (&owner, Unknown::Person("Marra"), "did you mean Mara? look"),
                (&owner, Unknown::Person("Zoe"), "look"),
            ];
            for (by, unknown, expected) in cases {
                assert_eq!(hint(tx, by, unknown), expected, "{unknown:?} for {}", by.name);
            }
            // A member of the agent may list it.
            let agent = registry::find_agent(tx, "secret").expect("read").expect("an agent");
            let role = Some(ironclaw_contract::seam::change::AgentRole::Member);
            writers::roles::set(tx, &Approved::by_test(owner.id), agent.id, member.id, role).expect("a role");
            assert_eq!(hint(tx, &member, Unknown::Agent("secert")), "did you mean secret? look");
        });
    }
}
