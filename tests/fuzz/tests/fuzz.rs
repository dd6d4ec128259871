//! Each model on a number of seeds.

use mini_fuzz::{sockets, tasks, timers, try_seeds};

#[test]
fn timers_agree_with_a_list_of_deadlines() {
    println!("{} runs", try_seeds(400, timers::run));
}

#[test]
fn sockets_agree_with_queues_of_bytes() {
    println!("{} runs", try_seeds(200, sockets::run));
}

#[test]
fn tasks_agree_with_a_model_of_their_lives() {
    println!("{} runs", try_seeds(200, tasks::run));
}
