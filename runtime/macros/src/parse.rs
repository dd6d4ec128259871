//! The function under an attribute, taken apart: promises that every token comes out once, with the span it had.
//!
//! Called by `expand`. Tokens that a `macro_rules!` macro passes on arrive in groups without delimiters (`$vis`,
//! `$body`, `$item`), which are opened first. Other groups, above all the body, stay unchanged.
//!
//! Only one form is taken: `async fn name() -> R { body }`, behind attributes and a visibility. An error points at the
//! first token that does not fit. rustc itself has checked that the tokens are an item.
//!
//! Rejected:
//! - Looking for the body from the front: a return type may hold braces (`[u8; { N }]`); the body is what stands last.
//! - An error for a second test attribute: rustc warns of `#[test]` twice, and a second `#[mini::test]` finds no
//!   `async`.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::args::Entry;
use crate::error::Error;

/// A function item with a body.
pub(crate) struct Function {
    /// `#[...]`, doc comments included, and `pub`, `pub(...)` or nothing.
    pub(crate) head: TokenStream,
    pub(crate) asyncness: Ident,
    pub(crate) fn_token: Ident,
    pub(crate) name: Ident,
    pub(crate) params: Group,
    /// `-> R` or nothing, and a `where` clause, which means the same wherever it stands.
    pub(crate) output: TokenStream,
    pub(crate) body: Group,
}

impl Function {
    /// Takes an item apart.
    pub(crate) fn parse(entry: Entry, item: &[TokenTree]) -> Result<Function, Error> {
        use TokenTree::{Group, Ident};

        let is_head = |token: &TokenTree| is_punct(token, '#') || is_ident(token, "pub") || matches!(token, Group(_));
        let (head, rest) = item.split_at(item.iter().take_while(|token| is_head(token)).count());
        let is_async = |token: &TokenTree| is_ident(token, "async");
        let is_fn = |token: &TokenTree| is_ident(token, "fn");
        let (at, what) = match rest {
            [first, ..] if is_fn(first) => (first, "needs an `async fn`: write `async` before this `fn`"),
            [first, ..] if !is_async(first) => (first, "needs an `async fn`: this is not one"),
            [_, second, ..] if !is_fn(second) => (second, "needs an `async fn`, with nothing before `fn` but `async`"),
            [_, _, _, params, ..] if !is_empty_parentheses(params) => (params, "needs a function without parameters"),
            [Ident(asyncness), Ident(fn_token), Ident(name), Group(params), output @ .., Group(body)]
                if body.delimiter() == Delimiter::Brace =>
            {
                return Ok(Function {
                    head: head.iter().cloned().collect(),
                    asyncness: asyncness.clone(),
                    fn_token: fn_token.clone(),
                    name: name.clone(),
                    params: params.clone(),
                    output: output.iter().cloned().collect(),
                    body: body.clone(),
                });
            }
            [_, _, name, ..] => (name, "needs a function with a body"),
            _ => return Err(Error::at(Span::call_site(), format!("{entry} needs an `async fn`"))),
        };
        Err(Error::at(at.span(), format!("{entry} {what}")))
    }

    /// Whether it is called `main`.
    pub(crate) fn is_main(&self) -> bool {
        self.name.to_string() == "main"
    }
}

/// `tokens` with the groups that `macro_rules!` variables leave around their values opened.
pub(crate) fn flatten(tokens: impl IntoIterator<Item = TokenTree>) -> Vec<TokenTree> {
    let open = |token: TokenTree| match transparent(&token) {
        Some(inner) => flatten(inner),
        None => vec![token],
    };
    tokens.into_iter().flat_map(open).collect()
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

fn is_empty_parentheses(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group)
        if group.delimiter() == Delimiter::Parenthesis && group.stream().is_empty())
}
