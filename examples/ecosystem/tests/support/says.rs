//! A server that breaks every protocol.

use std::io;
use std::net::SocketAddr;

use mini::net::TcpListener;

/// Answers the first message with `bytes`, and then closes the connection, or keeps it until the caller is gone.
pub(crate) async fn says(bytes: Vec<u8>, keeps: bool) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    mini::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let mut buf = [0; 1024];
        stream.read(&mut buf).await?;
        stream.write_all(&bytes).await?;
        while keeps && stream.read(&mut buf).await? > 0 {}
        io::Result::Ok(())
    });
    Ok(address)
}
