//! `Sockets`: those of a simulation, by their numbers, of which each is given once, in order.

use super::event::Id;
use super::socket::Socket;

/// One that is gone leaves eight bytes behind.
#[derive(Debug, Default)]
pub(super) struct Sockets(Vec<Option<Box<Socket>>>);

impl Sockets {
    pub(super) fn add(&mut self, socket: Socket) -> Id {
        self.0.push(Some(Box::new(socket)));
        Id(self.0.len() as u64)
    }

    pub(super) fn get(&self, id: Id) -> Option<&Socket> {
        self.0.get(place(id))?.as_deref()
    }

    pub(super) fn get_mut(&mut self, id: Id) -> Option<&mut Socket> {
        self.0.get_mut(place(id))?.as_deref_mut()
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Socket> {
        self.0.get_mut(place(id))?.take().map(|socket| *socket)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Id, &mut Socket)> {
        let all = self.0.iter_mut().enumerate();
        all.filter_map(|(at, socket)| Some((Id(at as u64 + 1), socket.as_deref_mut()?)))
    }
}

fn place(id: Id) -> usize {
    id.0 as usize - 1
}
