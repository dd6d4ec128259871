//! Writes JSON (RFC 8259), as dumps and traces need it.

use std::fmt::{Display, Formatter, Result, Write};
use std::mem;

/// A text in quotes.
pub(crate) struct Quoted<T>(pub(crate) T);

impl<T: Display> Display for Quoted<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_char('"')?;
        write!(Escaped(f), "{}", self.0)?;
        f.write_char('"')
    }
}

/// Escapes what is written to it.
struct Escaped<'a, 'b>(&'a mut Formatter<'b>);

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> Result {
        for part in text.split_inclusive(|char| matches!(char, '"' | '\\' | '\0'..' ')) {
            match part.char_indices().next_back() {
                Some((at, char @ ('"' | '\\'))) => write!(self.0, "{}\\{char}", &part[..at])?,
                Some((at, char @ '\0'..' ')) => write!(self.0, "{}\\u{:04x}", &part[..at], char as u32)?,
                _ => self.0.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// An object to which fields are added, until this is dropped.
pub(crate) struct Fields<'a> {
    text: &'a mut String,
    is_first: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn begin(text: &'a mut String) -> Self {
        text.push('{');
        Self { text, is_first: true }
    }

    /// The place for a value.
    pub(crate) fn name(&mut self, name: &str) -> &mut String {
        if !mem::take(&mut self.is_first) {
            self.text.push(',');
        }
        put(self.text, format_args!("\"{name}\":"));
        self.text
    }

    /// Adds a value that is JSON already: a number, `true`.
    pub(crate) fn value(&mut self, name: &str, value: impl Display) {
        put(self.name(name), value);
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, name: &str, value: impl Display) {
        self.value(name, Quoted(value));
    }

    /// Adds a value that is JSON already, if there is one.
    pub(crate) fn maybe(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }

    /// Adds an object.
    pub(crate) fn object(&mut self, name: &str) -> Fields<'_> {
        Fields::begin(self.name(name))
    }

    pub(crate) fn array<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut print: impl FnMut(&mut String, T),
    ) {
        let text = self.name(name);
        text.push('[');
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            print(text, item);
        }
        text.push(']');
    }

    /// Adds an array of objects.
    pub(crate) fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut print: impl FnMut(&mut Fields<'_>, T),
    ) {
        self.array(name, items, |text, item| print(&mut Fields::begin(text), item));
    }
}

impl Drop for Fields<'_> {
    fn drop(&mut self) {
        self.text.push('}');
    }
}

pub(crate) fn put(text: &mut String, value: impl Display) {
    put_any(text, &value);
}

fn put_any(text: &mut String, value: &dyn Display) {
    let _ = write!(text, "{value}"); // a `String` takes all
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn quotes_backslashes_and_control_characters_are_escaped() {
        assert_eq!(Quoted("a\"b\\c\nä\u{1f}").to_string(), r#""a\"b\\c\u000aä\u001f""#);
    }
}
