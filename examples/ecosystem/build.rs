//! Writes the client and the server of the gRPC service in `grpc.rs`, from a description in Rust: protoc is not needed.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    let method = |name: &str, route: &str| {
        let number = "crate::grpc::Number";
        let codec = "tonic_prost::ProstCodec";
        Method::builder().name(name).route_name(route).input_type(number).output_type(number).codec_path(codec)
    };
    let sums = Service::builder()
        .name("Sums")
        .package("mini.example")
        .method(method("double", "Double").build())
        .method(method("count", "Count").server_streaming().build())
        .method(method("total", "Total").client_streaming().server_streaming().build())
        .build();
    Builder::new().build_transport(false).compile(&[sums]);
    println!("cargo::rerun-if-changed=build.rs");
}
