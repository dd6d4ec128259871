//! The runtimes that are compared, as table columns.

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Mini,
    Tokio,
    Smol,
}

impl Peer {
    /// In the order of the rounds and of the columns.
    pub(crate) const ALL: [Self; 3] = [Self::Mini, Self::Tokio, Self::Smol];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mini => "mini",
            Self::Tokio => "tokio",
            Self::Smol => "smol",
        }
    }

    pub(crate) fn parse(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|peer| peer.name() == name).ok_or_else(|| format!("no peer is called `{name}`"))
    }
}
