//! The order of wirings by reach: which messages, and of which people, can reach an agent.
//!
//! Pure. A wiring within the present one takes effect at once; any other one needs a change with a page. See [`crate::gateway::writers`].

use ironclaw_contract::seam::change::{Engage, Ignored, Senders, Sharing, UnknownSenders, Wiring};

/// Returns whether a wiring lets no message and no person reach the agent that the present one keeps away, in no wider session.
pub fn is_within(wanted: &Wiring, present: &Wiring) -> bool {
    wanted.engage == Engage::None
        || (wanted.channel == present.channel
            && answers_within(wanted, present)
            && senders(wanted.from) <= senders(present.from)
            && strangers(wanted.unknown) <= strangers(present.unknown)
            && context(wanted.ignored) <= context(present.ignored)
            && people(wanted.sharing) <= people(present.sharing))
}

/// Returns whether each message that the wiring answers is one that the present wiring answers.
fn answers_within(wanted: &Wiring, present: &Wiring) -> bool {
    match (wanted.engage, present.engage) {
        (_, Engage::None) => false,
        (_, Engage::All) | (Engage::None, _) => true,
        (Engage::Mention | Engage::MentionSticky, Engage::MentionSticky) | (Engage::Mention, Engage::Mention) => true,
        (Engage::Pattern, Engage::Pattern) => wanted.pattern == present.pattern,
        (Engage::All, _)
        | (Engage::Pattern, Engage::Mention | Engage::MentionSticky)
        | (Engage::Mention | Engage::MentionSticky, Engage::Pattern)
        | (Engage::MentionSticky, Engage::Mention) => false,
    }
}

const fn senders(from: Senders) -> u8 {
    match from {
        Senders::Known => 0,
        Senders::All => 1,
    }
}

const fn strangers(unknown: UnknownSenders) -> u8 {
    match unknown {
        UnknownSenders::Strict => 0,
        UnknownSenders::Request => 1,
        UnknownSenders::Public => 2,
    }
}

const fn context(ignored: Ignored) -> u8 {
    match ignored {
        Ignored::Drop => 0,
        Ignored::Accumulate => 1,
    }
}

const fn people(sharing: Sharing) -> u8 {
    match sharing {
        Sharing::Thread => 0,
        Sharing::Shared => 1,
        Sharing::Agent => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Wiring> {
        let mut found = vec![Wiring::new("desk".to_owned(), Engage::None)];
        let engages = [
            (Engage::All, None),
            (Engage::Pattern, Some("^a")),
            (Engage::Pattern, Some("b")),
            (Engage::Mention, None),
            (Engage::MentionSticky, None),
        ];
        for (engage, pattern) in engages {
            for from in [Senders::Known, Senders::All] {
                for unknown in [UnknownSenders::Strict, UnknownSenders::Request, UnknownSenders::Public] {
                    for ignored in [Ignored::Accumulate, Ignored::Drop] {
                        for sharing in [Sharing::Thread, Sharing::Shared, Sharing::Agent] {
                            let (channel, pattern) = ("desk".to_owned(), pattern.map(str::to_owned));
                            found.push(Wiring { channel, engage, pattern, from, unknown, ignored, sharing });
                        }
                    }
                }
            }
        }
        found
    }

    #[test]
    fn wider_wiring_in_any_field_is_not_within() {
        let narrow = Wiring { ignored: Ignored::Drop, ..Wiring::new("desk".to_owned(), Engage::Mention) };
        for wider in [
            Wiring { engage: Engage::MentionSticky, ..narrow.clone() },
            Wiring { engage: Engage::All, ..narrow.clone() },
            Wiring { engage: Engage::Pattern, pattern: Some("^a".to_owned()), ..narrow.clone() },
            Wiring { from: Senders::All, ..narrow.clone() },
            Wiring { unknown: UnknownSenders::Request, ..narrow.clone() },
            Wiring { unknown: UnknownSenders::Public, ..narrow.clone() },
            Wiring { ignored: Ignored::Accumulate, ..narrow.clone() },
            Wiring { sharing: Sharing::Shared, ..narrow.clone() },
            Wiring { sharing: Sharing::Agent, ..narrow.clone() },
            Wiring { channel: "other".to_owned(), ..narrow.clone() },
        ] {
            assert!(!is_within(&wider, &narrow), "{wider:?}");
        }
        let none = Wiring::new("desk".to_owned(), Engage::None);
        assert!(!is_within(&narrow, &none), "a first connection widens");
        assert!(is_within(&none, &narrow), "the end of a connection does not");
    }

    #[test]
    fn order_of_wirings_is_a_partial_order() {
        let all = all();
        for one in &all {
            assert!(is_within(one, one), "{one:?}");
            for other in all.iter().filter(|other| *other != one) {
                assert!(!(is_within(one, other) && is_within(other, one)), "{one:?} {other:?}");
                if !is_within(one, other) {
                    continue;
                }
                for third in all.iter().filter(|third| is_within(other, third)) {
                    assert!(is_within(one, third), "{one:?} {other:?} {third:?}");
                }
            }
        }
    }
}
