//! The runtimes that are compared, as table columns, and the hand-written limit beside them.

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Mini,
    Tokio,
    Smol,
    /// monoio on its epoll driver.
    Monoio,
    /// monoio on its io_uring driver.
    MonoioUring,
    /// No runtime: a bare epoll loop written for the row, or for sleeps a thread.
    Limit,
}

impl Peer {
    /// In the order of the rounds and of the columns.
    pub(crate) const ALL: [Self; 6] =
        [Self::Mini, Self::Tokio, Self::Smol, Self::Monoio, Self::MonoioUring, Self::Limit];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mini => "mini",
            Self::Tokio => "tokio",
            Self::Smol => "smol",
            Self::Monoio => "monoio",
            Self::MonoioUring => "monoio-uring",
            Self::Limit => "limit",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|peer| peer.name() == name).ok_or_else(|| format!("no peer is called `{name}`"))
    }

    /// Whether mini is compared with it as with an equal: a runtime other than mini.
    pub(crate) fn is_rival(self) -> bool {
        !matches!(self, Self::Mini | Self::Limit)
    }
}
