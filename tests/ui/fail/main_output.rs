struct Answer;

#[mini::main]
async fn main() -> Answer {
    Answer
}
