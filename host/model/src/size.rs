//! The size of a prompt in bytes, and the estimate of its tokens.
//!
//! Never asks a provider: its own count replaces the estimate later. See [`crate::endpoint::Spec::estimate`].

use super::image::IMAGE_TOKENS;
use super::prices::Prices;
use super::{OUTPUT_TOKENS_BOOKED, Part, PastCall, Prompt, ToolSchema, Usage};

/// Bytes of a text that count as one token.
const BYTES_PER_TOKEN: u64 = 4;

/// Returns an estimate of the tokens in a text: one for four bytes.
pub const fn tokens_estimated(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

impl Prompt {
    /// Returns the estimated usage of a request with this prompt at these prices. Each image counts [`IMAGE_TOKENS`], if the
    /// endpoint takes images.
    pub fn estimate(&self, prices: Prices, takes_images: bool) -> Usage {
        let images = if takes_images { self.images() } else { 0 };
        let input_tokens = tokens_estimated(self.bytes()) + images * IMAGE_TOKENS;
        let output_tokens = OUTPUT_TOKENS_BOOKED;
        Usage { input_tokens, output_tokens, cost_micros: prices.cost(input_tokens, output_tokens) }
    }

    /// Returns the number of images that a model gets if it takes images.
    pub fn images(&self) -> u64 {
        let shown = |part: &&Part| matches!(part, Part::Image { content, .. } if content.is_shown());
        self.parts.iter().filter(shown).count() as u64
    }

    /// Returns the size of a request body with this prompt for an estimate of its tokens: an image has the bytes of its tokens, and
    /// not those of its content.
    pub(crate) fn counted_bytes(&self, body_bytes: usize, takes_images: bool) -> usize {
        if !takes_images {
            return body_bytes;
        }
        let encoded = |part: &Part| match part {
            Part::Image { content, .. } => content.encoded_bytes(),
            _ => 0,
        };
        let encoded: usize = self.parts.iter().map(encoded).sum();
        let counted = usize::try_from(self.images() * IMAGE_TOKENS * BYTES_PER_TOKEN).expect("few images");
        body_bytes.saturating_sub(encoded) + counted
    }

    /// Returns the size of the instructions and the tools in bytes, which no shorter conversation changes.
    pub fn fixed_bytes(&self) -> usize {
        let tool = |tool: &ToolSchema| tool.name.len() + tool.description.len() + tool.parameters.to_string().len();
        self.system.len() + self.tools.iter().map(tool).sum::<usize>()
    }

    /// Returns the size of the texts of the prompt in bytes.
    pub fn bytes(&self) -> usize {
        self.fixed_bytes() + self.conversation_bytes()
    }

    /// Returns the size of the conversation in bytes.
    pub fn conversation_bytes(&self) -> usize {
        let call = |call: &PastCall| call.call_id.len() + call.tool.len() + call.arguments.len();
        let part = |part: &Part| match part {
            Part::Person { text }
            | Part::Task { text }
            | Part::Notice { text }
            | Part::HostNotice { text }
            | Part::Time { text }
            | Part::Remark { text }
            | Part::Failure { text }
            | Part::Summary { text } => text.len(),
            Part::Context { author: name, text } | Part::Agent { agent: name, text, .. } => name.len() + text.len(),
            Part::Image { path, .. } => path.len(),
            Part::Assistant { text, calls, attached } => {
                let state = attached.as_ref().map_or(0, |attached| attached.state.len());
                text.len() + calls.iter().map(call).sum::<usize>() + state
            }
            Part::Result { call_id, text, .. } => call_id.len() + text.len(),
        };
        self.parts.iter().map(part).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::image::{Image, ImageContent, ImageType, LeftOut};
    use super::*;
    use ironclaw_contract::canonical::Digest;
    use ironclaw_contract::seam::socket::Purpose;

    #[test]
    fn image_counts_a_fixed_number_of_tokens_where_it_is_shown() {
        let read = |bytes: usize| ImageContent::Read(Image { kind: ImageType::Gif, base64: "A".repeat(bytes).into() });
        let prompt = |content: ImageContent| {
            let parts = vec![Part::Image { path: "four".to_owned(), content }];
            Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts }
        };
        let tokens = |content, takes_images| prompt(content).estimate(Prices::default(), takes_images).input_tokens;
        let unread = || ImageContent::Unread(Digest::of(b""));
        for content in [unread(), read(40), read(4000)] {
            assert_eq!(tokens(content.clone(), true), 1 + IMAGE_TOKENS);
            assert_eq!(tokens(content, false), 1);
        }
        assert_eq!(tokens(ImageContent::LeftOut(LeftOut::TooMany), true), 1);
        assert_eq!(prompt(read(4000)).counted_bytes(4100, true), 100 + 6400);
        assert_eq!(prompt(read(4000)).counted_bytes(100, false), 100);
    }
}
