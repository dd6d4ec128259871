//! The macros of scopes.

/// Runs a body with children that borrow, all in this task, and ends when body and children have ended.
///
/// Children are `Send`, so that the task may move between workers; for others use [`local_scope!`](crate::local_scope).
/// `s` can be cloned into a child, which may then spawn too. The output is the output of the body.
///
/// Children run concurrently with the body and with each other, on one task: they may borrow values that live outside
/// the scope, even mutably, and need not be `'static`. See [`task::Scope::spawn`].
///
/// A `?` or a `return` in the body ends the body alone; the scope then waits for its children. To cancel them at the
/// first error, use [`try_scope!`](crate::try_scope). With `move |s|` the scope owns the values that the body uses, and
/// children borrow from them: such a scope can be spawned.
///
/// [`task::Scope::spawn`]: crate::task::Scope::spawn
///
/// # Examples
///
/// ```
/// # mini::block_on(async {
/// let words = ["a", "few", "words"];
/// let mut longest = 0;
/// let lengths = mini::scope!(|s| {
///     s.spawn(async { longest = words.iter().map(|word| word.len()).max().unwrap() });
///     let first = s.spawn(async { words[0].len() });
///     let second = s.spawn(async { words[1].len() });
///     first.await + second.await
/// })
/// .await;
/// assert_eq!((lengths, longest), (4, 5));
/// # });
/// ```
///
/// # Panics
///
/// If the body or a child panics: when the others have been dropped.
///
/// # Cancel safety
///
/// Dropping the scope's future drops the body, then the children.
#[macro_export]
macro_rules! scope {
    ($($scope:tt)*) => { $crate::__scope!(Scope $($scope)*) };
}

/// Runs a body with children like [`scope!`](crate::scope); the first error cancels the rest.
///
/// The body returns a `Result`, and so does each child. The first `Err`, of the body or of a child, read or not,
/// cancels the others: they are dropped, then the scope is ready with that error. So awaiting the handle of a child
/// returns `Ok`; if the child fails, the body does not continue.
///
/// # Examples
///
/// ```
/// # async fn fetch(name: &str) -> std::io::Result<usize> { Ok(name.len()) }
/// # async fn watch(fails: bool) -> std::io::Result<()> {
/// #     if fails { Err(std::io::Error::other("the watch has failed")) } else { Ok(()) }
/// # }
/// # mini::block_on(async {
/// let name = String::from("page");
/// let sum = mini::try_scope!(|s| {
///     let page = s.spawn(fetch(&name));
///     s.spawn(watch(false));
///     Ok::<_, std::io::Error>(page.await? + 1)
/// });
/// assert_eq!(sum.await.unwrap(), 5);
///
/// let failed = mini::try_scope!(|s| {
///     s.spawn(watch(true));
///     std::future::pending().await
/// });
/// let failed: std::io::Result<()> = failed.await;
/// assert_eq!(failed.unwrap_err().to_string(), "the watch has failed");
/// # });
/// ```
///
/// # Errors
///
/// Returns the first error of the body or a child.
///
/// # Panics
///
/// If the body or a child panics: when the others have been dropped.
///
/// # Cancel safety
///
/// Dropping the scope's future drops the body, then the children.
#[macro_export]
macro_rules! try_scope {
    ($($scope:tt)*) => { $crate::__scope!(TryScope $($scope)*) };
}

/// Runs a body with children like [`scope!`](crate::scope); the children need not be `Send`.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc};
///
/// # mini::block_on(async {
/// let count = Rc::new(Cell::new(0));
/// mini::local_scope!(|s| {
///     for n in 1..=3 {
///         let count = count.clone();
///         s.spawn(async move { count.set(count.get() + n) });
///     }
/// })
/// .await;
/// assert_eq!(count.get(), 6);
/// # });
/// ```
///
/// # Panics
///
/// If the body or a child panics: when the others have been dropped.
///
/// # Cancel safety
///
/// Dropping the scope's future drops the body, then the children.
#[macro_export]
macro_rules! local_scope {
    ($($scope:tt)*) => { $crate::__scope!(LocalScope $($scope)*) };
}

/// Runs a body with children like [`try_scope!`](crate::try_scope); the children need not be `Send`.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
///
/// # mini::block_on(async {
/// let name = Rc::new(String::from("page"));
/// let length = mini::try_local_scope!(|s| {
///     let length = s.spawn(async { Ok::<_, std::fmt::Error>(name.len()) });
///     Ok(length.await? + 1)
/// });
/// assert_eq!(length.await, Ok(5));
/// # });
/// ```
///
/// # Errors
///
/// Returns the first error of the body or a child.
///
/// # Panics
///
/// If the body or a child panics: when the others have been dropped.
///
/// # Cancel safety
///
/// Dropping the scope's future drops the body, then the children.
#[macro_export]
macro_rules! try_local_scope {
    ($($scope:tt)*) => { $crate::__scope!(TryLocalScope $($scope)*) };
}

// The body is the arm of a `match`, where no lint minds its braces.
#[doc(hidden)]
#[macro_export]
macro_rules! __scope {
    ($kind:ident |$s:ident| $body:expr) => {
        async {
            let scope = $crate::task::$kind::new();
            let body = ::std::pin::pin!(::std::option::Option::Some(async {
                match &scope {
                    $s => $body,
                }
            }));
            scope.clone().run(body).await
        }
    };
    ($kind:ident move |$s:ident| $body:expr) => {
        async move {
            let scope = $crate::task::$kind::new();
            let body = ::std::pin::pin!(::std::option::Option::Some(async {
                match &scope {
                    $s => $body,
                }
            }));
            scope.clone().run(body).await
        }
    };
    ($kind:ident $($other:tt)*) => {
        ::core::compile_error!("a scope is written `|s| { ... }` or `move |s| { ... }`, with `s.spawn(future)` in it")
    };
}
