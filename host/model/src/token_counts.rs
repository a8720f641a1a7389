//! The token counts in an answer, at the places and in the forms that servers use.
//!
//! Never adds the counts of two places: the first one that has a number counts. See [`crate::openai`] and [`crate::anthropic`].

use super::assembly::TokenCounts;
use serde_json::Value;

/// Names of the tokens of the prompt: in Chat Completions, and for servers that use the names of Messages there.
const INPUT: [&str; 2] = ["prompt_tokens", "input_tokens"];
/// Names of the tokens of the output.
const OUTPUT: [&str; 2] = ["completion_tokens", "output_tokens"];

/// Returns a count, which some servers write as a fraction or as a text.
pub fn tokens(value: &Value) -> Option<u64> {
    let number = || match value {
        Value::String(text) => text.trim().parse::<f64>().ok(),
        other => other.as_f64(),
    };
    // A float holds each count up to 2^53 exactly; the caller bounds it.
    value.as_u64().or_else(|| number().filter(|number| (0.0..=1e15).contains(number)).map(|number| number as u64))
}

/// Returns the counts in an answer or an event of Chat Completions.
pub fn in_chat(body: &Value) -> TokenCounts {
    let choice = &body["choices"][0];
    let places = [&body["usage"], &choice["usage"], &choice["delta"]["usage"], &body["x_groq"]["usage"]];
    let first = |names: [&str; 2]| places.iter().find_map(|usage| names.iter().find_map(|name| tokens(&usage[*name])));
    let timings = &body["timings"];
    // llama.cpp counts apart what its cache already had.
    let processed = || Some(tokens(&timings["prompt_n"])?.saturating_add(tokens(&timings["cache_n"]).unwrap_or(0)));
    TokenCounts {
        input: first(INPUT).or_else(processed),
        output: first(OUTPUT).or_else(|| tokens(&timings["predicted_n"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn counts_are_read_wherever_servers_put_them() {
        let usage = json!({ "prompt_tokens": 7, "completion_tokens": 3 });
        for body in [
            json!({ "usage": usage }),
            json!({ "choices": [{ "usage": usage }] }),
            json!({ "choices": [{ "delta": { "usage": usage } }] }),
            json!({ "x_groq": { "usage": usage } }),
            json!({ "usage": { "input_tokens": 7, "output_tokens": 3 } }),
            json!({ "usage": { "prompt_tokens": 7.0, "completion_tokens": "3" } }),
            json!({ "timings": { "prompt_n": 5, "cache_n": 2, "predicted_n": 3 } }),
            json!({ "timings": { "prompt_n": 99, "predicted_n": 99 }, "usage": usage }),
        ] {
            assert_eq!(in_chat(&body), TokenCounts { input: Some(7), output: Some(3) }, "{body}");
        }
    }

    #[test]
    fn odd_counts_are_none() {
        for odd in [json!(-1), json!("many"), json!(null), json!(1e300), json!([7]), json!("NaN")] {
            assert_eq!(tokens(&odd), None, "{odd}");
        }
        assert_eq!(tokens(&json!(u64::MAX)), Some(u64::MAX));
        assert_eq!(in_chat(&json!({ "usage": null })), TokenCounts::default());
    }
}
