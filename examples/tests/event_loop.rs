//! The example `loop`: it checks what it prints. And the chapter of the guide that goes through it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use mini_tests::{LIMIT, within};

#[path = "../loop.rs"]
#[allow(dead_code)]
mod event_loop;

use event_loop::{JoinHandle, run, sleep, spawn, yield_now};

#[test]
fn every_section_holds() {
    within(LIMIT, || event_loop::check().unwrap());
}

/// What such a task owns is dropped, timers too.
#[test]
fn a_task_that_cancels_itself_is_dropped_at_its_next_wait() {
    within(LIMIT, || {
        let own: Rc<RefCell<Option<JoinHandle<()>>>> = Rc::default();
        let (handle, owned) = (own.clone(), Rc::new(()));
        let held = owned.clone();
        let has_reached = Rc::new(Cell::new(false));
        let reached = has_reached.clone();
        *own.borrow_mut() = Some(spawn(async move {
            let hour = sleep(Duration::from_secs(3600));
            yield_now().await;
            handle.borrow().as_ref().expect("it is there").cancel();
            reached.set(Rc::strong_count(&held) == 2);
            hour.await;
        }));
        assert!(run().unwrap().is_empty());
        assert!(has_reached.get(), "it has gone on after the call");
        assert_eq!(Rc::strong_count(&owned), 1);
    });
}

/// The code in the chapter is that of the program.
#[test]
fn the_guide_shows_what_the_program_does() {
    let program = include_str!("../loop.rs").replace("pub(crate) ", "");
    let chapter = include_str!("../../runtime/guide/event_loop.md");
    let code = program.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(chapter.contains("in less than 400 lines of code") && code.count() < 400);
    let pieces = chapter.split("```").skip(1).step_by(2);
    let pieces: Vec<&str> = pieces.filter_map(|piece| piece.strip_prefix("rust,ignore\n")).collect();
    assert!(pieces.len() >= 6);
    for piece in pieces {
        for part in piece.split("// ...\n").map(str::trim_end) {
            assert!(program.contains(part), "{part}");
        }
    }
}
