//! Questions and answers in every order that the memory model allows.
//!
//! Caught: with a Relaxed store of *taken*, a Relaxed load of it; with a withdrawal that stores *free* whatever it
//! finds; with a question that does not forget an answer to the one before. Not caught, as in a model no load sees a
//! store of the future: a Relaxed question, or begin of the answer.

use loom::sync::Arc;
use loom::thread;

use super::*;

/// The thread is asked twice, its handler runs twice, and the first question is withdrawn.
#[test]
fn a_thread_that_answers_while_the_question_is_withdrawn_answers_the_next_one_whole() {
    loom::model(|| {
        let sample = Arc::new(Sample::new(2));
        let asker = sample.clone();
        let asker = thread::spawn(move || {
            for _ in 0..2 {
                if asker.ask(7) {
                    if let Some(words) = asker.take() {
                        assert!(matches!(words[..], [1] | [2, 2]), "torn: {words:?}");
                    }
                    asker.withdraw(7);
                }
            }
        });
        for number in 1..=2 {
            sample.answer(7, |words| {
                words.iter().for_each(|word| word.store(number, Relaxed));
                number
            });
        }
        asker.join().unwrap();
        assert!(sample.ask(8), "no question is left");
    });
}
