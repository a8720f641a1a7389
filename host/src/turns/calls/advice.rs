//! Words for a model about a call that does not run: the reason, and the next step that it may take.
//!
//! Pure. Never quotes the call.

use ironclaw_operator::DenialCode;

/// Returns the sentence for a model about a call that does not run, because of this code.
pub fn advice(code: DenialCode) -> &'static str {
    sentence(code).unwrap_or_else(|| code.meaning())
}

/// Returns the sentence of its own that a code has; each code that a call can have has one.
const fn sentence(code: DenialCode) -> Option<&'static str> {
    Some(match code {
        DenialCode::CallToolUnknown => "there is no such tool; use one of the tools that you were given",
        DenialCode::CallToolNotEnabled => {
            "the tool is not enabled for you; ask for it with request_capability_change of kind enabled_tools, or go on without it"
        }
        DenialCode::CallServerChanged => {
            "the MCP server changed the tool since people confirmed it; go on without it, and say in your answer that it has to be confirmed again"
        }
        DenialCode::CallMalformed => {
            "the arguments are not strict JSON of the form that the tool takes; correct them and call again"
        }
        DenialCode::CallUnclassified => "an argument has no rule; use only the arguments of the tool's schema",
        DenialCode::CallNoRoom => "the turn has no room for another call; answer with what you have",
        DenialCode::CallSchedule => {
            "the list that was approved with this schedule does not have this call; do without it, and say so in your answer"
        }
        DenialCode::CallPrincipal => "you take no calls of this class from this sender; say so in your answer",
        DenialCode::CallScope => {
            "the request did not ask for calls of this class; say in your answer what you would do, so that the person can ask for it"
        }
        DenialCode::CallOrigin => {
            "your context holds text of others, so a person has to ask for exactly this; say in your answer what you would do"
        }
        DenialCode::CallOutward => {
            "it sends a value out that no person typed, and your context holds text of others; say in your answer what you would send, so that the person can type it"
        }
        DenialCode::CallRepeated => {
            "an equal call of this task ran already or may have run, and you had not seen its outcome; if it ran, you will be told in a later turn; do not make it again"
        }
        DenialCode::CallAlwaysAsks => {
            "every call of this tool needs the yes of a person, and no person can be asked; say in your answer what you would do"
        }
        DenialCode::CallNeedsPerson => {
            "it needs the yes of a person, and no person can be asked; say in your answer what you would do"
        }
        DenialCode::EgressNewHost => {
            "you have no grant of this host; ask for it with request_capability_change of kind egress, or go on without it"
        }
        DenialCode::EgressNewMethod => {
            "your grant of this host does not have this method; use one that it has, or ask for the method with request_capability_change of kind egress"
        }
        DenialCode::EgressNewPath => {
            "your grant of this host does not have this path; use one that it has, or ask for the path with request_capability_change of kind egress"
        }
        DenialCode::EgressCredential => {
            "the secret of the grant would reach a path that the grant does not have; use a path that it has, or ask with request_capability_change of kind egress"
        }
        DenialCode::EgressPush => "git push is not possible; say in your answer what is ready to push",
        DenialCode::EgressTunnelSni => {
            "a tunnel takes TLS that names its granted host in clear, without ECH; use a program or an option that does"
        }
        DenialCode::EgressTooMuch => "the command made too many requests; let it make fewer",
        DenialCode::EgressUpload => {
            "the body is longer than your grant of this host permits; send less, or ask for more with request_capability_change of kind egress"
        }
        _ => return input_advice(code),
    })
}

/// Returns the sentence of a code about the value of a control field.
const fn input_advice(code: DenialCode) -> Option<&'static str> {
    Some(match code {
        DenialCode::CallInput => {
            "a field that names the receiver or the object of the call takes a value that the person typed, or one that its server returned with an id; pass it by its id if you have it, or ask the person for it"
        }
        DenialCode::CallLinkUnknown => {
            "the reference names no value that is available in this conversation; pass {\"@link\": ID} with an id from the line of the host below a message of the person or below a result"
        }
        DenialCode::CallLinkType => {
            "the value behind the reference does not fit this field; pass one of the type that the field takes"
        }
        DenialCode::CallLinkLabel => {
            "the value does not have the origin that this field needs; pass another value by its id if there is one, or do not make this call and tell the person why"
        }
        DenialCode::CallLinkUsed => {
            "a call used the value already, or this call uses it twice, so a person has to agree to the further use; say in your answer what you would do"
        }
        _ => return request_advice(code),
    })
}

/// Returns the sentence of a code about an approval request or a destination.
const fn request_advice(code: DenialCode) -> Option<&'static str> {
    Some(match code {
        DenialCode::CallDestination => {
            "you have no destination of that name; use one that you have, or ask for it with request_capability_change of kind destinations"
        }
        DenialCode::CallFile => {
            "the host cannot copy this file; name a regular file of the workspace, and no link, of at most 8 MiB"
        }
        DenialCode::CallDestinationEnded => {
            "the address or the agent behind the destination is no longer the one that people approved; say so in your answer"
        }
        DenialCode::CallGroup => "no trust group has both of you; say so in your answer",
        DenialCode::CallRootPerson => "the person you work for may not talk to that agent; say so in your answer",
        DenialCode::CallHops => "the chain of messages between agents ends here; answer with what you have",
        DenialCode::CallSends => {
            "you have sent too many messages in this minute or this run; go on without it, and say so in your answer"
        }
        DenialCode::CallAskedTooOften => {
            "too many of your calls wait for people already, or were asked about today; go on without it, and say so in your answer"
        }
        DenialCode::CallRejected => {
            "a person said no to exactly this call, or no person decided in time; do not make it again until the person writes again"
        }
        DenialCode::CallWithdrawn => {
            "the question about this call was withdrawn, so it did not run; say so in your answer"
        }
        DenialCode::CallExpired => "no person decided about this call in time; say so in your answer",
        DenialCode::ApprovalLost => {
            "its approval is no longer valid, so it did not run; say so in your answer, and do not make it again"
        }
        DenialCode::ShownDiffers => {
            "a grant, a secret or an address changed after the approval, so it did not run; make the call again if it is still needed"
        }
        DenialCode::AllowanceLost => {
            "the permission to repeat it has ended, so it did not run; a person has to ask for it again"
        }
        DenialCode::ApprovalUsed => "its approval is used up, so it did not run; say so in your answer",
        // Not a code of a call; a test goes over all codes.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns::calls::{codes_of_calls, refusal};
    use std::collections::BTreeSet;

    #[test]
    fn each_code_of_a_call_has_its_own_sentence_and_a_line() {
        let manual = include_str!("../../../../docs/refusals.md");
        let mut sentences = BTreeSet::new();
        for code in codes_of_calls() {
            let own = sentence(code).unwrap_or_else(|| panic!("{code} has no sentence: add one to `sentence`"));
            assert!(sentences.insert(own), "{code} has the sentence of another code");
            assert!(!own.contains(['.', '\n']) && own.len() < 200, "{code}: {own}");
            assert_eq!(refusal(code, "").text, format!("refused ({code}): {own}"));
            assert!(manual.contains(&format!("| `{code}` | {} | {} |", code.status(), code.meaning())), "{code}");
        }
    }

    #[test]
    fn no_other_code_has_a_sentence() {
        let of_calls: Vec<_> = codes_of_calls().collect();
        assert!(of_calls.len() >= 17, "{of_calls:?}");
        for code in DenialCode::ALL.iter().filter(|code| !of_calls.contains(code)) {
            assert_eq!(sentence(*code), None, "{code} is in no list of codes of calls");
        }
    }
}
