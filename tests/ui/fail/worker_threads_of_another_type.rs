mod rt {
    pub mod runtime {
        pub struct Builder;

        impl Builder {
            pub fn new_multi_thread() -> Self {
                Builder
            }

            pub fn worker_threads(self, _: usize) -> Self {
                self
            }

            pub fn build(self) -> std::io::Result<Self> {
                Ok(self)
            }

        }

        pub mod main {
            pub struct Body;

            impl Body {
                pub fn new<F>(_: F) -> Self {
                    Body
                }
            }

            pub trait Output {
                fn mini_output(&self, _: super::Builder) {}
            }

            impl Output for Body {}
        }
    }
}

const THREADS: &str = "4";

#[mini::main(worker_threads = THREADS, crate = rt)]
async fn main() {}
