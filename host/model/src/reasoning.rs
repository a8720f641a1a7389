//! The thoughts of a model beside its answer, for display.
//!
//! Never a part of an answer, and never in the prompt of another model. See [`crate::assembly`] and [`crate::thoughts`].

/// Bytes of the thoughts of one output that are kept.
pub const REASONING_BYTES_MAX: usize = 32 * 1024;
/// The mark behind thoughts that were longer.
const CUT: &str = "…";

/// The thoughts so far, up to the bound.
#[derive(Debug, Clone, Default)]
pub struct Reasoning {
    text: String,
    is_cut: bool,
}

impl Reasoning {
    pub fn push(&mut self, thought: &str) {
        if self.is_cut {
            return;
        }
        let room = REASONING_BYTES_MAX - CUT.len() - self.text.len();
        let end = thought.floor_char_boundary(room);
        self.text.push_str(&thought[..end]);
        if end < thought.len() {
            self.text.push_str(CUT);
            self.is_cut = true;
        }
    }

    /// Separates the next thoughts from those before.
    pub fn begin(&mut self) {
        if !self.text.trim().is_empty() && !self.text.ends_with("\n\n") {
            self.push("\n\n");
        }
    }

    /// Takes other thoughts if there are none.
    pub fn or(&mut self, others: impl FnOnce() -> String) {
        if self.text.trim().is_empty() {
            self.push(&others());
        }
    }

    /// Returns the thoughts; empty without any.
    pub fn finish(self) -> String {
        self.text.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_over_the_bound_are_cut_with_a_mark() {
        let mut reasoning = Reasoning::default();
        reasoning.push("a");
        reasoning.begin();
        reasoning.push(&"é".repeat(REASONING_BYTES_MAX));
        reasoning.push("b");
        let text = reasoning.finish();
        assert!(text.len() <= REASONING_BYTES_MAX && text.starts_with("a\n\né") && text.ends_with(CUT));
    }
}
