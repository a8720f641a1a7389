//! The part of a prompt that a model reads: the bound on a conversation, and the size of a context that the host learned.
//!
//! What was learned only makes prompts shorter. It ends with a change of the endpoint, with a larger count, or by itself. See
//! [`ironclaw_model::context_size`].

use ironclaw_model::context_size::conversation_bytes_max;
use ironclaw_model::endpoint::{Endpoint, Spec};
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::tables::context_sizes::{self as table, ContextSize, SizeSource};
use ironclaw_store::times::DAY_MS;
use std::sync::Arc;

/// Days after which the host sends long prompts again.
const DAYS_KEPT: i64 = 30;

/// Answers that agree before a count or a refusal without a number is believed.
const ANSWERS_MIN: u32 = 2;

/// The largest difference of two answers that agree, as a divisor.
const AGREES_WITHIN: u64 = 8;

/// An answer of an endpoint about the size of its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign {
    pub tokens: u64,
    pub source: SizeSource,
}

/// The part of a prompt that a model reads.
#[derive(Debug, Clone, Copy)]
pub struct Reads {
    /// Tokens of prompt and output together.
    tokens: u64,
    /// Most tokens of the output.
    output: u32,
}

impl Reads {
    /// Returns the bytes of a conversation beside `fixed` bytes of instructions and tools.
    pub fn bytes_max(self, fixed: usize) -> u64 {
        conversation_bytes_max(self.tokens, self.output, fixed)
    }
}

/// Returns the endpoint of a chain that the host asks first.
fn first(chain: &[Arc<Endpoint>]) -> Option<&Arc<Endpoint>> {
    chain.iter().find(|endpoint| !endpoint.is_resting()).or(chain.first())
}

/// Returns what the first endpoint of a chain reads; `None` if nothing says so.
pub fn by_first(tx: &ReadTx<'_>, chain: &[Arc<Endpoint>]) -> Result<Option<Reads>, Error> {
    let Some(endpoint) = first(chain) else { return Ok(None) };
    let learned = learned(tx, &endpoint.spec)?.map(|size| size.tokens);
    let tokens = endpoint.spec.settings.context_tokens.into_iter().chain(learned).min();
    Ok(tokens.map(|tokens| Reads { tokens, output: endpoint.output_tokens_max(learned) }))
}

/// Returns what the host learned about an endpoint, if it believes it and it is less than the operator says.
pub fn learned(tx: &ReadTx<'_>, spec: &Spec) -> Result<Option<ContextSize>, Error> {
    let found = table::find(tx, &spec.name)?.filter(|size| is_fresh(size, tx.wall()));
    let is_less = |size: &ContextSize| spec.settings.context_tokens.is_none_or(|set| size.tokens < set);
    Ok(found.filter(|size| is_believed(size) && is_less(size)))
}

/// Notes an answer about the size of a context. Returns the size if people do not know of it yet.
pub fn note(tx: &mut WriteTx<'_>, spec: &Spec, sign: Sign) -> Result<Option<ContextSize>, Error> {
    let now = tx.wall();
    let before = table::find(tx, &spec.name)?.filter(|size| is_fresh(size, now));
    let size = joined(before.as_ref(), sign, &spec.name, now);
    let is_unchanged = |before: &ContextSize| is_believed(before) && before.tokens == size.tokens;
    if before.as_ref().is_some_and(is_unchanged) {
        return Ok(None);
    }
    table::put(tx, &size)?;
    // A refusal is a fact for people at once, even if the number is not believed yet.
    let was_said = |before: &ContextSize| is_believed(before) || before.source == SizeSource::Refused;
    let is_new = before.as_ref().is_none_or(|before| !was_said(before) || before.tokens < size.tokens);
    let is_said = size.source == SizeSource::Refused || learned(tx, spec)?.is_some();
    Ok((is_new && is_said).then_some(size))
}

/// Returns whether a server counts more tokens than the host learned about its endpoint.
pub fn is_refuted(tx: &ReadTx<'_>, spec: &Spec, tokens: u64) -> Result<bool, Error> {
    let size = table::find(tx, &spec.name)?;
    Ok(size.is_some_and(|size| tokens > size.tokens + size.tokens / AGREES_WITHIN))
}

/// Forgets what was learned about an endpoint if its server counts more tokens than that.
pub fn forget_refuted(tx: &mut WriteTx<'_>, spec: &Spec, tokens: u64) -> Result<(), Error> {
    if is_refuted(tx, spec, tokens)? {
        table::delete(tx, &spec.name)?;
    }
    Ok(())
}

fn is_fresh(size: &ContextSize, now: i64) -> bool {
    // A clock that was ahead keeps nothing longer.
    (now - size.learned_at).unsigned_abs() < (DAYS_KEPT * DAY_MS).unsigned_abs()
}

const fn is_believed(size: &ContextSize) -> bool {
    matches!(size.source, SizeSource::Stated) || size.answers >= ANSWERS_MIN
}

/// Returns what an answer makes of what was known: one that agrees counts, and one that does not begins again.
fn joined(before: Option<&ContextSize>, sign: Sign, model: &str, now: i64) -> ContextSize {
    use SizeSource::{Counted, Refused, Stated};
    let Sign { tokens, source } = sign;
    let is_near = |before: &ContextSize| before.tokens.abs_diff(tokens) <= before.tokens / AGREES_WITHIN;
    // A refused prompt has more tokens than the model reads, so a smaller one agrees.
    let is_bound = |before: &ContextSize| (before.source, source) == (Refused, Refused) && tokens < before.tokens;
    let Some(before) = before.filter(|before| is_near(before) || is_bound(before)) else {
        return ContextSize { model: model.to_owned(), tokens, source, answers: 1, learned_at: now };
    };
    let (tokens, source) = match (before.source, source) {
        (_, Stated) | (Refused, Counted) => (tokens, source),
        (Stated, _) | (Counted, Refused) => (before.tokens, before.source),
        (Counted, Counted) => (before.tokens.max(tokens), Counted),
        (Refused, Refused) => (before.tokens.min(tokens), Refused),
    };
    let answers = before.answers.saturating_add(1);
    ContextSize { model: model.to_owned(), tokens, source, answers, learned_at: now }
}

/// Returns the words for people about what was learned: the number, what the host does, and what to do.
pub fn sentence(spec: &Spec, size: &ContextSize) -> String {
    let (name, tokens) = (&spec.name, size.tokens);
    let why = match size.source {
        SizeSource::Stated => format!("the server of model endpoint {name} says that its model reads {tokens} tokens"),
        SizeSource::Counted => format!(
            "the model of endpoint {name} reads only about {tokens} tokens: its server drops the rest of a longer prompt without an error"
        ),
        SizeSource::Refused => {
            format!(
                "model endpoint {name} could not answer a prompt of {tokens} tokens, which is too long for its model"
            )
        }
    };
    format!(
        "{why}. Its prompts are shorter now, with a summary of the oldest part. For longer ones, raise {} and run \
         `ironctl model set {name} --context TOKENS`",
        spec.context_setting()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_that_agree_are_believed_or_one_statement() {
        let sign = |source| move |tokens| Sign { tokens, source };
        let (counted, stated, refused) =
            (sign(SizeSource::Counted), sign(SizeSource::Stated), sign(SizeSource::Refused));
        for (signs, tokens, believed) in [
            (vec![counted(4096)], 4096, false),
            (vec![counted(4096), counted(4000)], 4096, true),
            (vec![counted(4096), counted(8192)], 8192, false),
            (vec![counted(4096), counted(8192), counted(8192)], 8192, true),
            (vec![stated(4096)], 4096, true),
            (vec![counted(4000), stated(4096)], 4096, true),
            (vec![stated(4096), counted(4000)], 4096, true),
            (vec![stated(4096), stated(32_768)], 32_768, true),
            (vec![refused(9000)], 9000, false),
            (vec![refused(9000), refused(5000)], 5000, true),
            (vec![refused(5000), refused(9000)], 9000, false),
            (vec![refused(9000), stated(4096)], 4096, true),
        ] {
            let joined = |before: Option<ContextSize>, sign: &Sign| Some(joined(before.as_ref(), *sign, "m", 1));
            let size = signs.iter().fold(None, joined).expect("a sign");
            assert_eq!((size.tokens, is_believed(&size)), (tokens, believed), "{signs:?}");
        }
    }

    #[test]
    fn what_was_learned_ends_after_its_days() {
        let source = SizeSource::Stated;
        let size = ContextSize { model: "m".to_owned(), tokens: 4096, source, answers: 1, learned_at: 1000 };
        assert!(is_fresh(&size, 1000 + DAYS_KEPT * DAY_MS - 1) && is_fresh(&size, 0));
        assert!(!is_fresh(&size, 1000 + DAYS_KEPT * DAY_MS) && !is_fresh(&size, -DAYS_KEPT * DAY_MS));
    }
}
