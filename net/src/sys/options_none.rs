//! Options that most systems have: the version for systems without all of them.

use std::io;
use std::time::Duration;

use socket2::Socket;

macro_rules! unsupported {
    ($($get:ident / $set:ident: $ty:ty;)*) => { $(
        pub(crate) fn $get(_: &Socket) -> io::Result<$ty> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn $set(_: &Socket, _: $ty) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }
    )* };
}

unsupported! {
    tclass / set_tclass: u32;
    keepalive_time / set_keepalive_time: Duration;
    keepalive_interval / set_keepalive_interval: Duration;
    keepalive_retries / set_keepalive_retries: u32;
}
