//! What many types of this crate are alike in, besides their names and types.

/// The future of a method: `inner`, which waits, and what `poll` makes of its end.
macro_rules! future {
    (
        $(#[$doc:meta])*
        $future:ident[$($param:tt),* $(: ?$sized:ident)?]
        { inner: $inner:ty $(, $field:ident: $type:ty)* } -> $output:ty,
        |$this:pat_param, $cx:ident| $poll:expr
    ) => {
        pin_project_lite::pin_project! {
            $(#[$doc])*
            #[must_use = "futures do nothing unless awaited"]
            pub struct $future<$($param),* $(: ?$sized)?> {
                #[pin]
                inner: $inner,
                $($field: $type,)*
            }
        }

        impl<$($param),* $(: ?$sized)?> Future for $future<$($param),*> {
            type Output = $output;

            #[inline]
            fn poll(self: std::pin::Pin<&mut Self>, $cx: &mut std::task::Context<'_>) -> std::task::Poll<$output> {
                let $this = self.project();
                $poll
            }
        }

        impl<$($param),* $(: ?$sized)?> std::fmt::Debug for $future<$($param),*> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($future)).finish_non_exhaustive()
            }
        }
    };
}

/// The text of an error.
macro_rules! error {
    ($error:ident $(<$param:ident $(: $bound:path)?>)? { $($kind:pat => $text:expr),* $(,)? }) => {
        impl $(<$param>)? std::fmt::Display for $error $(<$param>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $($kind => $text,)*
                })
            }
        }

        impl $(<$param $(: $bound)?>)? std::error::Error for $error $(<$param>)? {}
    };
}

pub(crate) use {error, future};
