//! A process that runs out of files, in a process of its own.

use std::fs::File;
use std::pin::pin;
use std::task::Poll;

use super::rig::{Rig, Task, alone};
use crate::TcpListener;

#[test]
fn running_out_of_files_neither_loses_a_connection_nor_ends_the_listener() {
    let name = "tests::limits::running_out_of_files_neither_loses_a_connection_nor_ends_the_listener";
    alone(name, 64, || {
        let mut rig = Rig::new();
        let listener = rig.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let addr = listener.local_addr().unwrap();
        let task = Task::new();
        {
            let mut accept = pin!(listener.accept());
            assert!(task.poll(accept.as_mut()).is_pending());
            let _clients = [(); 2].map(|()| std::net::TcpStream::connect(addr).unwrap());
            rig.settle();
            let mut hoard = Vec::new();
            while let Ok(file) = File::open("/dev/null") {
                hoard.push(file);
            }
            for _ in 0..3 {
                let error = match task.poll(pin!(listener.accept())) {
                    Poll::Ready(Err(error)) => error,
                    other => panic!("{other:?}"),
                };
                assert_eq!(error.raw_os_error(), Some(libc::EMFILE));
            }
            drop(hoard);
            // The edge is long consumed; both connections are still there.
            assert!(matches!(task.poll(accept.as_mut()), Poll::Ready(Ok(_))));
            assert!(matches!(task.poll(pin!(listener.accept())), Poll::Ready(Ok(_))));
        }
        assert!(task.poll(pin!(listener.accept())).is_pending());
    });
}
