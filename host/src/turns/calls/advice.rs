//! Words for a model about a call that does not run: the reason, and the next step that it may take.
//!
//! Pure. Never quotes the call.

use ironclaw_contract::operator::DenialCode;

/// Returns the sentence for a model about a refused call with this code.
pub const fn advice(code: DenialCode) -> &'static str {
    match code {
        DenialCode::CallToolUnknown => "there is no such tool; use one of the tools that you were given",
        DenialCode::CallToolNotEnabled => {
            "the tool is not enabled for you; ask for it with request_capability_change of kind enabled_tools, or go on without it"
        }
        DenialCode::CallMalformed => {
            "the arguments are not strict JSON of the form that the tool takes; correct them and call again"
        }
        DenialCode::CallUnclassified => "an argument has no rule; use only the arguments of the tool's schema",
        DenialCode::CallNoRoom => "the turn has no room for another call; answer with what you have",
        DenialCode::CallPrincipal => "you take no calls of this class from this sender; say so in your answer",
        DenialCode::CallScope => {
            "the request did not ask for calls of this class; say in your answer what you would do, so that the person can ask for it"
        }
        DenialCode::CallOrigin | DenialCode::CallOutward => {
            "your context holds text of others, so a person has to ask for exactly this; say in your answer what you would do"
        }
        DenialCode::CallRepeated => {
            "the same call may have happened already, before the host restarted; say so in your answer, and do not try again"
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
        DenialCode::ApprovalLost | DenialCode::ApprovalUsed => {
            "its approval is no longer valid, so it did not run; say so in your answer"
        }
        DenialCode::CallAlwaysAsks | DenialCode::CallNeedsPerson => {
            "it needs the yes of a person, and no person can be asked; say in your answer what you would do"
        }
        DenialCode::EgressNewHost
        | DenialCode::EgressNewMethod
        | DenialCode::EgressNewPath
        | DenialCode::EgressCredential
        | DenialCode::EgressUpload => {
            "no grant has this request; ask for it with request_capability_change of kind egress, or go on without it"
        }
        _ => "it is not possible; say so in your answer",
    }
}
