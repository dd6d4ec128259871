//! A compile error at a place in the user's source: promises that rustc underlines exactly the tokens it was made from.
//!
//! Made by `parse` and `args`, written out by `expand`.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// What is wrong, and where.
pub(crate) struct Error {
    first: Span,
    last: Span,
    message: String,
}

impl Error {
    /// Underlines one token.
    pub(crate) fn at(span: Span, message: impl Into<String>) -> Error {
        Error { first: span, last: span, message: message.into() }
    }

    /// Underlines all of `tokens`, or the whole attribute if there are none.
    pub(crate) fn over(tokens: &[TokenTree], message: impl Into<String>) -> Error {
        let span_of = |token: Option<&TokenTree>| token.map_or_else(Span::call_site, TokenTree::span);
        Error { first: span_of(tokens.first()), last: span_of(tokens.last()), message: message.into() }
    }

    /// The error as an item: `::core::compile_error! { "message" }`.
    ///
    /// Spans can't be joined on stable Rust, but rustc underlines a macro call from its first token to its last: the
    /// path carries the first span, the braces the last.
    pub(crate) fn into_tokens(self) -> TokenStream {
        let message = TokenStream::from(TokenTree::from(Literal::string(&self.message)));
        let tokens: [TokenTree; 8] = [
            Punct::new(':', Spacing::Joint).into(),
            Punct::new(':', Spacing::Alone).into(),
            Ident::new("core", self.first).into(),
            Punct::new(':', Spacing::Joint).into(),
            Punct::new(':', Spacing::Alone).into(),
            Ident::new("compile_error", self.first).into(),
            Punct::new('!', Spacing::Alone).into(),
            Group::new(Delimiter::Brace, message).into(),
        ];
        let last = tokens.len() - 1;
        let spanned = tokens.into_iter().enumerate().map(|(index, mut token)| {
            token.set_span(if index == last { self.last } else { self.first });
            token
        });
        spanned.collect()
    }
}
