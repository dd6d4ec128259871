//! The function under an attribute, taken apart: promises that every token comes out once, with the span it had.
//!
//! Called by `expand`. Tokens that a `macro_rules!` macro passes on arrive in groups without delimiters (`$vis`,
//! `$body`, `$item`); the walk opens each group that it meets. Other groups, above all the body, stay unchanged.
//!
//! Rejected:
//! - Looking for the body from the front: a return type may hold braces (`[u8; { N }]`); the body is what stands last.

use std::collections::VecDeque;
use std::ops::Range;

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::args::Entry;
use crate::error::Error;

/// A function item with a body.
pub(crate) struct Function {
    /// `#[...]`, doc comments included.
    pub(crate) attributes: Vec<TokenTree>,
    /// `pub`, `pub(...)` or nothing.
    pub(crate) visibility: Vec<TokenTree>,
    pub(crate) asyncness: Option<Ident>,
    pub(crate) fn_token: Ident,
    pub(crate) name: Ident,
    pub(crate) params: Group,
    /// `-> R` or nothing.
    pub(crate) output: Vec<TokenTree>,
    pub(crate) body: Group,
    /// `const`, `unsafe`, `extern "C"`.
    qualifiers: Vec<TokenTree>,
    generics: Vec<TokenTree>,
    where_clause: Vec<TokenTree>,
}

impl Function {
    /// Takes `item` apart.
    pub(crate) fn parse(entry: Entry, item: TokenStream) -> Result<Function, Error> {
        let error = |at: Span, what: &str| Error::at(at, format!("{entry} {what}"));
        let mut tokens = Tokens(item.into_iter().collect());
        let last = tokens.take_last();
        let attributes = tokens.take_attributes();
        let visibility = tokens.take_visibility();
        let (asyncness, qualifiers) = tokens.take_qualifiers();
        let Some(fn_token) = tokens.take_ident("fn") else {
            // `const` and `unsafe` open other items as well.
            let first = qualifiers.into_iter().chain(tokens.take()).chain(last).next();
            let at = first.map_or_else(Span::call_site, |token| token.span());
            return Err(error(at, "needs an `async fn`, and this is not a function"));
        };
        let Some(TokenTree::Ident(name)) = tokens.take() else {
            return Err(error(fn_token.span(), "expects a name after this `fn`"));
        };
        let generics = tokens.take_generics();
        let Some(TokenTree::Group(params)) = tokens.take() else {
            return Err(error(name.span(), "expects a parameter list after this name"));
        };
        let (output, where_clause) = tokens.split_at_where();
        let body = match last {
            Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => body,
            _ => return Err(error(name.span(), "needs a function with a body")),
        };
        Ok(Function {
            attributes,
            visibility,
            asyncness,
            fn_token,
            name,
            params,
            output,
            body,
            qualifiers,
            generics,
            where_clause,
        })
    }

    /// The reasons why `entry` cannot run this function; none if it can.
    pub(crate) fn faults(&self, entry: Entry) -> Vec<Error> {
        let mut faults = Vec::new();
        if self.asyncness.is_none() {
            let message = format!("{entry} needs an `async fn`: write `async` before this `fn`");
            faults.push(Error::at(self.fn_token.span(), message));
        }
        if let Some(first) = self.qualifiers.first() {
            faults.push(Error::over(&self.qualifiers, format!("a function under {entry} can't be `{first}`")));
        }
        if !self.generics.is_empty() {
            let message = format!("a function under {entry} can't have generic parameters");
            faults.push(Error::over(&self.generics, message));
        }
        if self.is_method() {
            let message = format!("{entry} works on a free function, not on a method");
            faults.push(Error::at(self.params.span(), message));
        } else if !self.params.stream().is_empty() {
            let message = format!("a function under {entry} takes no arguments");
            faults.push(Error::at(self.params.span(), message));
        }
        if !self.where_clause.is_empty() {
            let message = format!("a function under {entry} can't have a `where` clause");
            faults.push(Error::over(&self.where_clause, message));
        }
        if let (Entry::Test, Some(at)) = (entry, self.test_attribute()) {
            let message = format!("{entry} already makes this a test: remove this attribute");
            faults.push(Error::over(&self.attributes[at], message));
        }
        faults
    }

    /// Whether the signature is `fn name() -> R` but for a missing `async`, so that it can be made a sync function.
    pub(crate) fn is_plain(&self) -> bool {
        self.qualifiers.is_empty()
            && self.generics.is_empty()
            && self.params.stream().is_empty()
            && self.where_clause.is_empty()
    }

    /// Whether the first parameter is some form of `self`.
    pub(crate) fn is_method(&self) -> bool {
        let before_type = self.params.stream().into_iter().take_while(|token| !is_punct(token, ':'));
        before_type.take_while(|token| !is_punct(token, ',')).any(|token| is_ident(&token, "self"))
    }

    /// Where in `attributes` the `#` and `[...]` stand that would register the function as a test a second time.
    pub(crate) fn test_attribute(&self) -> Option<Range<usize>> {
        let is_test = |attribute: &[TokenTree]| match attribute {
            [_, TokenTree::Group(content)] => is_test_path(&content.stream().to_string()),
            _ => false,
        };
        let index = self.attributes.chunks(2).position(is_test)?;
        Some(index * 2..index * 2 + 2)
    }
}

/// The tokens not yet taken.
struct Tokens(VecDeque<TokenTree>);

impl Tokens {
    /// The next token, which is not a group without delimiters: those are opened where they stand.
    fn peek(&mut self) -> Option<&TokenTree> {
        while let Some(inner) = self.0.front().and_then(transparent) {
            self.0.pop_front();
            for token in inner.into_iter().collect::<Vec<_>>().into_iter().rev() {
                self.0.push_front(token);
            }
        }
        self.0.front()
    }

    fn take(&mut self) -> Option<TokenTree> {
        self.peek()?;
        self.0.pop_front()
    }

    /// The last token; groups without delimiters are opened.
    fn take_last(&mut self) -> Option<TokenTree> {
        while let Some(inner) = self.0.back().and_then(transparent) {
            self.0.pop_back();
            self.0.extend(inner);
        }
        self.0.pop_back()
    }

    fn take_ident(&mut self, text: &str) -> Option<Ident> {
        match self.peek() {
            Some(token) if is_ident(token, text) => match self.take() {
                Some(TokenTree::Ident(ident)) => Some(ident),
                _ => None,
            },
            _ => None,
        }
    }

    fn take_group(&mut self, delimiter: Delimiter) -> Option<TokenTree> {
        match self.peek() {
            Some(TokenTree::Group(group)) if group.delimiter() == delimiter => self.take(),
            _ => None,
        }
    }

    /// `#` and `[...]` in turn.
    fn take_attributes(&mut self) -> Vec<TokenTree> {
        let mut attributes = Vec::new();
        while self.peek().is_some_and(|token| is_punct(token, '#')) {
            attributes.extend(self.take());
            attributes.extend(self.take_group(Delimiter::Bracket));
        }
        attributes
    }

    fn take_visibility(&mut self) -> Vec<TokenTree> {
        let mut visibility = Vec::new();
        if let Some(keyword) = self.take_ident("pub") {
            visibility.push(keyword.into());
            visibility.extend(self.take_group(Delimiter::Parenthesis));
        }
        visibility
    }

    /// What may stand before `fn`, in any order: rustc has already checked that it is a function's.
    fn take_qualifiers(&mut self) -> (Option<Ident>, Vec<TokenTree>) {
        let mut asyncness = None;
        let mut others = Vec::new();
        while let Some(token) = self.peek() {
            let is_other = ["const", "unsafe", "safe", "extern"].iter().any(|text| is_ident(token, text));
            if is_other || (!others.is_empty() && matches!(token, TokenTree::Literal(_))) {
                others.extend(self.take());
            } else if let Some(ident) = self.take_ident("async") {
                asyncness = Some(ident);
            } else {
                break;
            }
        }
        (asyncness, others)
    }

    /// `<...>`, if it comes next.
    fn take_generics(&mut self) -> Vec<TokenTree> {
        let mut generics = Vec::new();
        let mut depth = 0;
        // The `>` of an arrow, as in `F: Fn() -> u8`, closes nothing.
        let mut follows_dash = false;
        while let Some(token) = self.peek() {
            match token {
                token if is_punct(token, '<') => depth += 1,
                token if is_punct(token, '>') && !follows_dash => depth -= 1,
                _ if depth == 0 => break,
                _ => {}
            }
            follows_dash = is_punct(token, '-');
            generics.extend(self.take());
            if depth == 0 {
                break;
            }
        }
        generics
    }

    /// The rest, before and from `where`; groups without delimiters stay as they are.
    fn split_at_where(self) -> (Vec<TokenTree>, Vec<TokenTree>) {
        let mut output = Vec::from(self.0);
        let at = output.iter().position(|token| is_ident(token, "where")).unwrap_or(output.len());
        let where_clause = output.split_off(at);
        (output, where_clause)
    }
}

/// Whether `token` is the identifier or keyword `text`.
pub(crate) fn is_ident(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == text)
}

/// Whether `token` is the character `char`, alone or as a part of a longer operator.
pub(crate) fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

/// What is in `token` if it is a group without delimiters.
pub(crate) fn transparent(token: &TokenTree) -> Option<TokenStream> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => Some(group.stream()),
        _ => None,
    }
}

/// Whether an attribute's text names the standard test attribute or this package's. Those of other crates may well
/// go together with this one.
fn is_test_path(attribute: &str) -> bool {
    let path: String = attribute.chars().take_while(|char| *char != '(').filter(|char| !char.is_whitespace()).collect();
    let path = path.trim_start_matches("::");
    let is_standard = path.starts_with("core::prelude::") || path.starts_with("std::prelude::");
    path == "test" || path == "mini::test" || (is_standard && path.ends_with("::test"))
}

#[cfg(test)]
mod tests {
    use super::is_test_path;

    #[test]
    fn the_standard_test_attribute_is_known_by_every_path() {
        for path in
            ["test", "core::prelude::v1::test", ":: core :: prelude :: v1 :: test", "::std::prelude::rust_2024::test"]
        {
            assert!(is_test_path(path), "{path}");
        }
        assert!(is_test_path("mini :: test"));
        assert!(is_test_path("mini::test(start_paused = true)"));
    }

    #[test]
    fn other_attributes_are_no_tests() {
        for path in
            ["cfg(test)", "other::test", "should_panic", "doc = \"test\"", "test_case(1)", "core::prelude::v1::bench"]
        {
            assert!(!is_test_path(path), "{path}");
        }
    }
}
