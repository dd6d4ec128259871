//! A certificate that is made on the spot, and the settings of both sides of a TLS connection with it.
//!
//! Called by the examples and tests of TLS, of WebSockets over TLS, and of QUIC. The certificate signs itself, so that
//! a client that trusts it needs nothing else.
//!
//! Rejected: a certificate in a file, which would be a private key in the repository, and would expire.

use std::error::Error;
use std::sync::Arc;

use futures_rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// An error before there was a connection.
pub type Failure = Box<dyn Error + Send + Sync>;

/// A server's certificate with its key.
#[derive(Debug)]
pub struct Identity {
    /// The certificate, as `openssl` and `curl` want it.
    pub pem: String,
    /// The private key, in the same form.
    pub key_pem: String,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Identity {
    /// A new certificate for these names, which may be addresses.
    ///
    /// # Errors
    ///
    /// If the key cannot be made, or a name is not valid.
    pub fn new(names: &[&str]) -> Result<Self, Failure> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names)?;
        Ok(Self {
            pem: made.cert.pem(),
            key_pem: made.signing_key.serialize_pem(),
            certificate: made.cert.der().clone(),
            key: made.signing_key.serialize_der().into(),
        })
    }

    /// Settings of the server that this certificate is for; clients need none.
    ///
    /// # Errors
    ///
    /// If the key does not fit.
    pub fn server(&self) -> Result<ServerConfig, Failure> {
        let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        let chain = vec![self.certificate.clone()];
        Ok(builder.with_no_client_auth().with_single_cert(chain, self.key.clone_key().into())?)
    }

    /// Settings of a client that trusts this certificate, and no other.
    ///
    /// # Errors
    ///
    /// If the certificate can't be trusted.
    pub fn client(&self) -> Result<ClientConfig, Failure> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
        Ok(builder.with_root_certificates(roots).with_no_client_auth())
    }

    /// As [`server`](Identity::server), for QUIC.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn quic_server(&self) -> Result<quinn::ServerConfig, Failure> {
        Ok(quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(self.server()?)?)))
    }

    /// As [`client`](Identity::client), for QUIC.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn quic_client(&self) -> Result<quinn::ClientConfig, Failure> {
        Ok(quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(self.client()?)?)))
    }
}

/// Named here, as other crates may bring a second provider into the program: then rustls would have no default.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
