//! Literals as text, which is all that a macro gets to see of them: promises to know strings and integers from the
//! rest.
//!
//! Called by `args`, with what `Literal` displays.

/// What stands between the quotes of a string literal, raw or not. Escapes are left alone: no flavor or path has any.
pub(crate) fn string_content(literal: &str) -> Option<String> {
    let quoted = literal.strip_prefix('r').map_or(literal, |raw| raw.trim_matches('#'));
    Some(quoted.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// Whether a literal is an integer, in any base and with any suffix.
pub(crate) fn is_integer(literal: &str) -> bool {
    let is_prefixed = ["0x", "0o", "0b"].iter().any(|prefix| literal.starts_with(prefix));
    let has_exponent = literal.contains(['e', 'E']) && !literal.ends_with("size");
    let is_float = literal.contains(['.', 'f']) || has_exponent;
    literal.starts_with(|first: char| first.is_ascii_digit()) && (is_prefixed || !is_float)
}

/// Whether a literal is an integer that is zero.
pub(crate) fn is_zero(literal: &str) -> bool {
    let digits = literal.strip_prefix("0x").or(literal.strip_prefix("0o")).or(literal.strip_prefix("0b"));
    let digits = digits.unwrap_or(literal);
    let end = digits.find(['i', 'u']).unwrap_or(digits.len());
    is_integer(literal) && digits[..end].chars().all(|char| matches!(char, '0' | '_'))
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
    use super::{is_integer, is_zero, milliseconds, string_content};

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
    fn integers_are_told_from_other_literals() {
        for literal in ["1", "0", "4usize", "4_isize", "1_000u32", "0x1e", "0b11", "0o17", "0xffu8"] {
            assert!(is_integer(literal), "{literal}");
        }
        for literal in ["1.0", "1.", "1e3", "2E3", "1f32", "1.5f64", "\"4\"", "'4'", "b'4'", "r\"4\""] {
            assert!(!is_integer(literal), "{literal}");
        }
    }

    #[test]
    fn zero_is_known_in_every_base_and_type() {
        for literal in ["0", "00", "0_0", "0usize", "0_u8", "0i32", "0x0", "0x00usize", "0b0", "0o0"] {
            assert!(is_zero(literal), "{literal}");
        }
        for literal in ["1", "10", "0x10", "0b01", "0x0e", "0.0", "0f32", "\"0\""] {
            assert!(!is_zero(literal), "{literal}");
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
