//! A DNS server on the loopback, over UDP and TCP, which gives the answers of a closure.
//!
//! Called by the example and the tests of the resolver. It reads and writes messages with hickory's codec; the sockets
//! and the framing (RFC 1035, section 4.2) are its own, so that it can break the rules too.
//!
//! Rejected: an installed server, which answers properly only.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hickory_proto::op::{Message, ResponseCode};
use mini::net::{TcpListener, TcpStream, UdpSocket, next_connection};
use mini::task::JoinSet;

/// What a query came over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A datagram each.
    Udp,
    /// A connection, where lengths stand before the messages.
    Tcp,
}

/// What the server does about a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Sends these, in this order; none is silence.
    Messages(Vec<Vec<u8>>),
    /// Sends these bytes as they are over TCP, and closes the connection. Over UDP it is silence.
    HangUp(Vec<u8>),
}

impl From<Message> for Answer {
    fn from(message: Message) -> Self {
        Self::Messages(vec![encoded(&message)])
    }
}

/// The bytes of `message`.
///
/// # Panics
///
/// If the message breaks a rule, so that it cannot be encoded.
pub fn encoded(message: &Message) -> Vec<u8> {
    message.to_vec().expect("a message within the rules")
}

/// The beginning of an answer to `query`: the same number and question.
pub fn reply(query: &Message, code: ResponseCode) -> Message {
    let mut reply = Message::error_msg(query.metadata.id, query.metadata.op_code, code);
    reply.metadata.recursion_desired = query.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    reply.add_queries(query.queries.iter().cloned());
    reply
}

/// A server that has its port, and has yet to begin.
#[derive(Debug)]
pub struct DnsServer {
    udp: UdpSocket,
    tcp: TcpListener,
}

impl DnsServer {
    /// A server on a port that is free for both transports.
    ///
    /// # Errors
    ///
    /// Those of bind(2).
    pub async fn bind() -> io::Result<Self> {
        loop {
            let tcp = TcpListener::bind("127.0.0.1:0").await?;
            match UdpSocket::bind(tcp.local_addr()?).await {
                Ok(udp) => return Ok(Self { udp, tcp }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The address at which it will answer.
    ///
    /// # Errors
    ///
    /// Those of getsockname(2).
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Serves for ever, and returns an error of its sockets. When it is dropped, so are its connections.
    ///
    /// # Errors
    ///
    /// Those of its sockets.
    pub async fn serve(self, answer: impl Fn(Transport, &Message) -> Answer + Send + Sync + 'static) -> io::Result<()> {
        let answer = Arc::new(answer);
        let Self { udp, tcp } = self;
        futures_lite::future::or(datagrams(udp, answer.clone()), connections(tcp, answer)).await
    }
}

async fn datagrams<F: Fn(Transport, &Message) -> Answer>(udp: UdpSocket, answer: Arc<F>) -> io::Result<()> {
    let mut buf = [0; 4096];
    loop {
        let (length, from) = udp.recv_from(&mut buf).await?;
        let Ok(query) = Message::from_vec(&buf[..length]) else { continue };
        if let Answer::Messages(messages) = answer(Transport::Udp, &query) {
            for message in messages {
                udp.send_to(&message, from).await?;
            }
        }
    }
}

async fn connections<F>(tcp: TcpListener, answer: Arc<F>) -> io::Result<()>
where
    F: Fn(Transport, &Message) -> Answer + Send + Sync + 'static,
{
    let mut tasks = JoinSet::new();
    loop {
        let (stream, _) = next_connection(&tcp).await?;
        tasks.spawn(connection(stream, answer.clone()));
        while tasks.try_join_next().is_some() {}
    }
}

async fn connection<F: Fn(Transport, &Message) -> Answer>(stream: TcpStream, answer: Arc<F>) -> io::Result<()> {
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length).await?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut query).await?;
        let query = Message::from_vec(&query).map_err(io::Error::other)?;
        match answer(Transport::Tcp, &query) {
            Answer::HangUp(bytes) => return stream.write_all(&bytes).await,
            Answer::Messages(messages) => {
                for message in messages {
                    let length = u16::try_from(message.len()).map_err(io::Error::other)?;
                    stream.write_all(&[&length.to_be_bytes(), &message[..]].concat()).await?;
                }
            }
        }
    }
}
