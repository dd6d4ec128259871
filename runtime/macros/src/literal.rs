//! Literals as text, which is all that a macro gets to see of them: promises to know strings from the rest.
//!
//! Called by `args`, with what `Literal` displays.

/// What stands between the quotes of a string literal, raw or not. Escapes are left alone: no flavor or path has any.
pub(crate) fn string_content(literal: &str) -> Option<String> {
    let quoted = literal.strip_prefix('r').map_or(literal, |raw| raw.trim_matches('#'));
    Some(quoted.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// The milliseconds of a time such as `10s`: an integer and one of four units.
pub(crate) fn milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|char: char| !char.is_ascii_digit())?);
    let factor = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::{milliseconds, string_content};

    #[test]
    fn times_are_an_integer_and_a_unit() {
        let times = [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000), ("0s", 0), ("010s", 10_000)];
        for (text, expected) in times {
            assert_eq!(milliseconds(text), Some(expected), "{text}");
        }
        for text in ["", "s", "10", "10 s", " 10s", "1.5s", "-1s", "10S", "10sec", "1h30m", "5124095576030432h", "10µs"]
        {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }

    #[test]
    fn a_string_is_unquoted_and_nothing_else_is() {
        assert_eq!(string_content("\"a::b\"").as_deref(), Some("a::b"));
        assert_eq!(string_content("r\"a\"").as_deref(), Some("a"));
        assert_eq!(string_content("r##\"a\"##").as_deref(), Some("a"));
        assert_eq!(string_content("\"\"").as_deref(), Some(""));
        for literal in ["1", "'a'", "b\"a\"", "c\"a\"", "br\"a\""] {
            assert_eq!(string_content(literal), None, "{literal}");
        }
    }
}
